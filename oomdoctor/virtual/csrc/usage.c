/* Counts what all processes of a run hold of each card of the machine.

   The file named by OOMDOCTOR_VIRTUAL_USAGE is shared memory of the processes of a run: what one of
   them takes, the others miss, and oomdoctor reads it from outside (oomdoctor/virtual/usage.py knows
   the same layout). Without the variable each process counts for itself. */
#include "virtual.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_PROCESSES 512

struct process {
    int64_t pid; /* 0: nobody */
    uint64_t used[VC_MOST_CARDS];
};

static struct shared {
    int32_t owner; /* the process that holds the lock, 0: none */
    int32_t refused[VC_MOST_CARDS]; /* allocations that did not fit */
    int32_t unused;
    uint64_t peak[VC_MOST_CARDS];
    struct process processes[MOST_PROCESSES];
} alone, *shared;

static struct process *ours;
static int opened[VC_MOST_CARDS];
static long allocations;
static pthread_mutex_t threads = PTHREAD_MUTEX_INITIALIZER;

/* A process that ended without its exit handlers holds nothing any more; nor does a zombie. */
static int is_alive(int64_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return errno != ENOENT;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    text[got > 0 ? got : 0] = 0;
    const char *state = strrchr(text, ')');
    return !state || (state[1] && state[2] != 'Z' && state[2] != 'X');
}

static void open_file(void)
{
    const char *path = getenv("OOMDOCTOR_VIRTUAL_USAGE");
    int file = path && *path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    shared = &alone;
    if (file >= 0 && !ftruncate(file, sizeof *shared)) {
        void *at = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (at != MAP_FAILED)
            shared = at;
    }
    if (file >= 0)
        close(file);
}

static void take_lock(void)
{
    pthread_mutex_lock(&threads);
    if (!shared)
        open_file();
    int32_t self = (int32_t)getpid(), owner = 0;
    for (int turns = 1;
         !__atomic_compare_exchange_n(&shared->owner, &owner, self, 0, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED);
         turns++) {
        if (turns % 1024 || is_alive(owner))
            owner = 0; /* wait on; a dead owner's lock is taken over */
        sched_yield();
    }
}

static void leave_lock(void)
{
    __atomic_store_n(&shared->owner, 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&threads);
}

static void drop_the_dead(void)
{
    for (int i = 0; i < MOST_PROCESSES; i++) {
        struct process *one = &shared->processes[i];
        if (one->pid && one != ours && !is_alive(one->pid))
            memset(one, 0, sizeof *one);
    }
}

static struct process *find_place(void)
{
    for (int tries = 0; tries < 2; tries++) {
        for (int i = 0; i < MOST_PROCESSES; i++)
            if (!shared->processes[i].pid || shared->processes[i].pid == getpid())
                return &shared->processes[i];
        drop_the_dead();
    }
    return &alone.processes[0]; /* more than anybody has: it counts for itself */
}

static struct process *own_place(void)
{
    if (!ours) {
        ours = find_place();
        memset(ours, 0, sizeof *ours);
        ours->pid = getpid();
    }
    return ours;
}

static uint64_t sum(int machine_card)
{
    uint64_t used = vc_settings()->kinds[machine_card].others_bytes;
    for (int i = 0; i < MOST_PROCESSES; i++)
        used += shared->processes[i].used[machine_card];
    return used;
}

static void count(int machine_card, uint64_t bytes)
{
    own_place()->used[machine_card] += bytes;
    uint64_t now = sum(machine_card);
    if (now > shared->peak[machine_card])
        shared->peak[machine_card] = now;
}

/* The context comes first, fits or not; the lock is held. */
static void open_card(int machine_card)
{
    if (opened[machine_card])
        return;
    opened[machine_card] = 1;
    count(machine_card, vc_settings()->kinds[machine_card].context_bytes);
}

void vc_open(int card)
{
    take_lock();
    open_card(vc_machine_card(card));
    leave_lock();
}

static int fits(int machine_card, size_t bytes)
{
    uint64_t total = vc_settings()->kinds[machine_card].total_bytes;
    if (vc_settings()->fail_at && ++allocations >= vc_settings()->fail_at)
        return 0;
    if (sum(machine_card) + bytes <= total)
        return 1;
    drop_the_dead();
    return sum(machine_card) + bytes <= total;
}

int vc_take(int card, size_t bytes)
{
    int on = vc_machine_card(card);
    take_lock();
    open_card(on);
    int failed = !fits(on, bytes);
    if (failed)
        shared->refused[on]++;
    else
        count(on, bytes);
    leave_lock();
    return failed;
}

void vc_give(int card, size_t bytes)
{
    take_lock();
    uint64_t *held = &own_place()->used[vc_machine_card(card)];
    *held -= bytes < *held ? bytes : *held;
    leave_lock();
}

size_t vc_used_of_machine(int machine_card)
{
    take_lock();
    drop_the_dead();
    uint64_t used = sum(machine_card);
    leave_lock();
    return used;
}

size_t vc_used_here(int machine_card)
{
    take_lock();
    uint64_t used = own_place()->used[machine_card];
    leave_lock();
    return used;
}

size_t vc_used(int card)
{
    return vc_used_of_machine(vc_machine_card(card));
}

void vc_free_and_total(int card, size_t *unused, size_t *total)
{
    vc_open(card);
    size_t used = vc_used(card);
    *total = vc_kind(card)->total_bytes;
    *unused = used < *total ? *total - used : 0;
}

/* Who holds something of a card; a stranger is one of them. */
int vc_users(int machine_card, struct vc_user *users)
{
    size_t strange = vc_settings()->kinds[machine_card].others_bytes;
    int count = 0;
    if (strange)
        users[count++] = (struct vc_user){VC_STRANGER, strange};
    take_lock();
    drop_the_dead();
    for (int i = 0; i < MOST_PROCESSES && count < VC_MOST_USERS; i++) {
        struct process *one = &shared->processes[i];
        if (one->pid && one->used[machine_card])
            users[count++] = (struct vc_user){(int)one->pid, one->used[machine_card]};
    }
    leave_lock();
    return count;
}

/* A child has a context of its own, if it uses a card at all. */
static void begin_anew(void)
{
    ours = NULL;
    memset(opened, 0, sizeof opened);
    memset(&alone, 0, sizeof alone);
    pthread_mutex_init(&threads, NULL);
}

__attribute__((constructor)) static void prepare(void)
{
    pthread_atfork(NULL, NULL, begin_anew);
}

__attribute__((destructor)) static void finish(void)
{
    if (ours && ours->pid == getpid()) {
        take_lock();
        memset(ours, 0, sizeof *ours);
        leave_lock();
    }
}
