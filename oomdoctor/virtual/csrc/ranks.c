/* Exchanges small messages between ranks of one machine, through files in shared memory.

   A program steers itself by what the other ranks say (shapes, counts, pickled objects), so these have
   to arrive. The ranks of a communicator share a page, where each says who it is and what it has taken;
   a message is a file, which its sender deletes when nobody needs it any more, and the receiver of a
   message to it alone. With a waiting time of 0 a rank runs alone. */
#include "ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_KEPT 4096 /* messages to all that somebody may still want */
#define LONGEST_S 600  /* as long as NCCL waits in torch */
#define LAST_S 20      /* a rank that ends waits so long for others to take what it sent */
#define PAUSE_S 0.0005

static struct vc_ranks *joined;
static int owner; /* the process, since a fork of it ends, too */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct vc_values vc_room_for(size_t bytes)
{
    unsigned char *room = calloc(2, bytes + 1);
    return (struct vc_values){bytes, room, room + bytes};
}

static int is_alone(const struct vc_ranks *ranks)
{
    return vc_settings()->peer_wait_s <= 0 || !ranks->members;
}

static void path_of(char *path, size_t room, const struct vc_ranks *ranks, int from, int to,
                    unsigned long number)
{
    int end = snprintf(path, room, "/dev/shm/oomdoctor-%ld-%s", (long)getuid(), ranks->name);
    if (to == VC_TO_ALL)
        snprintf(path + end, room - (size_t)end, "-%lu-%d", number, from);
    else
        snprintf(path + end, room - (size_t)end, "-%d-to-%d-%lu", from, to, number);
}

static void *shared_page(const char *path, size_t bytes)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *page = MAP_FAILED;
    if (file >= 0 && !ftruncate(file, (off_t)bytes))
        page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    return page == MAP_FAILED ? NULL : page;
}

static void path_of_page(char *path, size_t room, const struct vc_ranks *ranks)
{
    snprintf(path, room, "/dev/shm/oomdoctor-%ld-%s-members", (long)getuid(), ranks->name);
}

void vc_join(struct vc_ranks *ranks)
{
    char path[200];
    size_t count = (size_t)ranks->count;
    ranks->sent = calloc(count, sizeof *ranks->sent);
    ranks->received = calloc(count, sizeof *ranks->received);
    if (vc_settings()->peer_wait_s <= 0 || count < 2)
        return;
    path_of_page(path, sizeof path, ranks);
    ranks->members = shared_page(path, count * sizeof *ranks->members);
    if (ranks->members)
        __atomic_store_n(&ranks->members[ranks->rank].pid, getpid(), __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&lock);
    owner = getpid();
    ranks->next = joined;
    joined = ranks;
    pthread_mutex_unlock(&lock);
}

/* Whether a rank may still send or take something. */
static int is_there(const struct vc_ranks *ranks, int rank)
{
    const struct vc_member *member = &ranks->members[rank];
    int pid = __atomic_load_n(&member->pid, __ATOMIC_SEQ_CST);
    int left = __atomic_load_n(&member->left, __ATOMIC_SEQ_CST);
    return pid && !left && (!kill(pid, 0) || errno != ESRCH);
}

static int is_awaited(const struct vc_ranks *ranks, int rank, double waited)
{
    int has_joined = __atomic_load_n(&ranks->members[rank].pid, __ATOMIC_SEQ_CST) != 0;
    return has_joined ? is_there(ranks, rank) && waited < LONGEST_S
                      : waited < vc_settings()->peer_wait_s;
}

void vc_tell_taken(struct vc_ranks *ranks, unsigned long oldest)
{
    unsigned long taken = oldest < ranks->messages ? oldest : ranks->messages;
    if (ranks->members)
        __atomic_store_n(&ranks->members[ranks->rank].taken, taken, __ATOMIC_SEQ_CST);
}

/* Messages to all below this number are of no use any more. */
static unsigned long taken_by_all(const struct vc_ranks *ranks)
{
    unsigned long least = ranks->messages;
    for (int rank = 0; rank < ranks->count; rank++) {
        int pid = __atomic_load_n(&ranks->members[rank].pid, __ATOMIC_SEQ_CST);
        unsigned long taken = __atomic_load_n(&ranks->members[rank].taken, __ATOMIC_SEQ_CST);
        if (rank != ranks->rank && (!pid || is_there(ranks, rank)) && taken < least)
            least = taken;
    }
    return least;
}

static void delete_taken(struct vc_ranks *ranks, unsigned long below)
{
    char path[200];
    for (; ranks->deleted < below; ranks->deleted++) {
        path_of(path, sizeof path, ranks, ranks->rank, VC_TO_ALL, ranks->deleted);
        unlink(path);
    }
}

static int write_file(const char *path, const struct vc_values *values)
{
    char unfinished[220];
    snprintf(unfinished, sizeof unfinished, "%s.new", path);
    int file = open(unfinished, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        return 0;
    size_t bytes = memchr(values->known, 1, values->bytes) ? 2 * values->bytes : 0;
    int whole = write(file, values->data, bytes) == (ssize_t)bytes;
    close(file);
    return whole && !rename(unfinished, path);
}

void vc_post(struct vc_ranks *ranks, int to, unsigned long number, const struct vc_values *values)
{
    char path[200];
    if (is_alone(ranks))
        return;
    path_of(path, sizeof path, ranks, ranks->rank, to, number);
    if (!write_file(path, values))
        vc_report(VC_ASSUMED, "a message between ranks did not fit into /dev/shm");
    delete_taken(ranks, taken_by_all(ranks));
    if (number > MOST_KEPT && to == VC_TO_ALL)
        delete_taken(ranks, number - MOST_KEPT);
}

/* -1: it is not there. An empty file is a message of which nothing is known. */
static int read_file(const char *path, struct vc_values *values)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t got = read(file, values->data, 2 * values->bytes);
    close(file);
    if (got != (ssize_t)(2 * values->bytes))
        memset(values->data, 0, 2 * values->bytes);
    return got == 0 || got == (ssize_t)(2 * values->bytes);
}

int vc_fetch(struct vc_ranks *ranks, int from, int to, unsigned long number, int waits,
             struct vc_values *values)
{
    char path[200];
    int found = -1;
    if (is_alone(ranks))
        return 0;
    path_of(path, sizeof path, ranks, from, to, number);
    for (double waited = 0;; waited += PAUSE_S) {
        int awaited = waits && is_awaited(ranks, from, waited);
        if ((found = read_file(path, values)) >= 0 || !awaited)
            break;
        usleep((unsigned int)(PAUSE_S * 1e6));
    }
    if (found >= 0 && to != VC_TO_ALL)
        unlink(path);
    if (waits && found <= 0)
        vc_report(VC_ASSUMED, found ? "a rank did not send in time what another waited for"
                                    : "a rank sent a message of another size than was waited for");
    return found > 0;
}

/* Whether another rank has yet to take something that this one sent; what nobody will is deleted. */
static int is_owing(struct vc_ranks *ranks)
{
    char path[200];
    int owes = 0;
    delete_taken(ranks, taken_by_all(ranks));
    for (int rank = 0; rank < ranks->count; rank++) {
        int there = is_there(ranks, rank) && rank != ranks->rank;
        owes |= there && ranks->deleted < ranks->messages;
        /* they are taken in order: the last one stands for all */
        path_of(path, sizeof path, ranks, ranks->rank, rank, ranks->sent[rank] - 1);
        owes |= there && ranks->sent[rank] && !access(path, F_OK);
    }
    return owes;
}

static void delete_files(struct vc_ranks *ranks)
{
    char path[200];
    delete_taken(ranks, ranks->messages);
    for (int rank = 0; rank < ranks->count; rank++)
        for (unsigned long number = ranks->sent[rank]; number-- > 0;) {
            path_of(path, sizeof path, ranks, ranks->rank, rank, number);
            if (unlink(path))
                break; /* it was taken, and so were those before it */
        }
}

void vc_leave(struct vc_ranks *ranks)
{
    char path[200];
    if (!ranks->members)
        return;
    vc_drop_transfers(ranks);
    vc_tell_taken(ranks, vc_oldest_transfer(ranks));
    __atomic_store_n(&ranks->members[ranks->rank].left, 1, __ATOMIC_SEQ_CST);
    for (double waited = 0; is_owing(ranks) && waited < LAST_S; waited += PAUSE_S)
        usleep((unsigned int)(PAUSE_S * 1e6));
    delete_files(ranks);
    path_of_page(path, sizeof path, ranks);
    unlink(path);
    pthread_mutex_lock(&lock);
    for (struct vc_ranks **at = &joined; *at; at = &(*at)->next)
        if (*at == ranks) {
            *at = ranks->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    munmap(ranks->members, (size_t)ranks->count * sizeof *ranks->members);
    ranks->members = NULL;
}

__attribute__((destructor)) static void leave_all(void)
{
    while (joined && owner == getpid())
        vc_leave(joined);
}
