/* Host memory that CUDA handed out (pinned, managed) or was told of (registered).

   It is taken when it is touched, and counts nowhere: pinned memory is the host's, and managed memory
   moves between host and card as kernels ask for it, of which there are none. */
#include "virtual.h"

#include <stdlib.h>
#include <sys/mman.h>

static struct range {
    char *start;
    size_t bytes;
    enum vc_host_kind kind;
} *ranges;
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void add(void *start, size_t bytes, enum vc_host_kind kind)
{
    pthread_mutex_lock(&lock);
    if (count == room) {
        room = room ? room * 2 : 64;
        ranges = realloc(ranges, room * sizeof *ranges);
    }
    ranges[count++] = (struct range){start, bytes, kind};
    pthread_mutex_unlock(&lock);
}

void *vc_host_allocate(size_t bytes, enum vc_host_kind kind)
{
    size_t some = bytes ? bytes : 1;
    void *start = mmap(NULL, some, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    add(start, some, kind);
    return start;
}

void vc_host_register(void *pointer, size_t bytes)
{
    add(pointer, bytes, VC_REGISTERED);
}

int vc_host_release(void *pointer)
{
    struct range found = {0};
    pthread_mutex_lock(&lock);
    for (size_t i = count; i-- > 0;)
        if (ranges[i].start == pointer) {
            found = ranges[i];
            ranges[i] = ranges[--count];
            break;
        }
    pthread_mutex_unlock(&lock);
    if (found.kind == VC_PINNED || found.kind == VC_MANAGED)
        munmap(found.start, found.bytes);
    return found.kind == VC_NOT_OURS;
}

enum vc_host_kind vc_host_kind_of(const void *pointer)
{
    enum vc_host_kind kind = VC_NOT_OURS;
    const char *at = pointer;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        if (at >= ranges[i].start && at < ranges[i].start + ranges[i].bytes)
            kind = ranges[i].kind;
    pthread_mutex_unlock(&lock);
    return kind;
}
