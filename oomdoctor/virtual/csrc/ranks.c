/* Exchanges small messages between ranks of one machine, through files in shared memory.

   A program steers itself by what the other ranks say (shapes, counts, pickled objects), so these have
   to arrive. A rank that does not answer in time is taken to hold what we hold; with a waiting time of
   0 a rank runs alone. A rank deletes its files when it ends. */
#include "ranks.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEPT 64 /* messages that a slow rank may still want */

static char **mine;
static size_t written;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void path_of(char *path, size_t room, const struct vc_ranks *ranks, int message, int rank)
{
    snprintf(path, room, "/dev/shm/oomdoctor-%ld-%s-%d-%d", (long)getuid(), ranks->name, message,
             rank);
}

static void note_file(const char *path)
{
    pthread_mutex_lock(&lock);
    mine = realloc(mine, (written + 1) * sizeof *mine);
    mine[written++] = strdup(path);
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void delete_files(void)
{
    for (size_t i = 0; i < written; i++)
        unlink(mine[i]);
}

void vc_post(struct vc_ranks *ranks, int message, const void *data, size_t bytes)
{
    char path[200], unfinished[220];
    if (vc_settings()->peer_wait_s <= 0)
        return;
    path_of(path, sizeof path, ranks, message, ranks->rank);
    snprintf(unfinished, sizeof unfinished, "%s.new", path);
    int file = open(unfinished, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    int whole = write(file, data, bytes) == (ssize_t)bytes;
    close(file);
    if (whole && !rename(unfinished, path))
        note_file(path);
    if (message >= KEPT) {
        path_of(path, sizeof path, ranks, message - KEPT, ranks->rank);
        unlink(path);
    }
}

int vc_fetch(struct vc_ranks *ranks, int message, int rank, void *data, size_t bytes)
{
    char path[200];
    path_of(path, sizeof path, ranks, message, rank);
    for (double waited = 0; waited < vc_settings()->peer_wait_s; waited += 0.0005) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            ssize_t got = read(file, data, bytes);
            close(file);
            return got == (ssize_t)bytes;
        }
        usleep(500);
    }
    return 0;
}
