/* Writes down what the virtual card did not model, for the result of a run.

   The file named by OOMDOCTOR_VIRTUAL_LOG gets a line `KIND NAME` for each such call, once per
   process, and lines `read PID COUNT WHERE`: how often a program read a value that only a GPU could
   have computed, at which line. A count is written whenever it has doubled, for processes that end
   without their exit handlers, and at the end. A refused call is said at once, with the calls that
   led to it. */
#include "virtual.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_LINES 4096
#define MOST_PLACES 512
#define MOST_CALLS 24

static const char *seen[MOST_LINES][2];
static int lines;
static struct place {
    char *where;
    unsigned long reads, reported;
} places[MOST_PLACES];
static int place_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last_missing[256]; /* the function that was asked for and is not there */
static void (*finder)(char *text, int room);

void vc_set_finder(void (*function)(char *text, int room))
{
    finder = function;
}

static void write_line(const char *line)
{
    const char *path = getenv("OOMDOCTOR_VIRTUAL_LOG");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    if (write(file, line, strlen(line)) < 0)
        perror("oomdoctor virtual card: log");
    close(file);
}

static int is_new(const char *kind, const char *name)
{
    for (int i = 0; i < lines; i++)
        if (!strcmp(seen[i][0], kind) && !strcmp(seen[i][1], name))
            return 0;
    if (lines == MOST_LINES)
        return 0;
    seen[lines][0] = kind;
    seen[lines++][1] = strdup(name);
    return 1;
}

/* The line of the program; Python finds it, and is not asked while the lock is held. */
static void find_place(char *text, int room)
{
    text[0] = 0;
    if (finder)
        finder(text, room);
    if (!text[0])
        snprintf(text, (size_t)room, "no line of Python");
}

static void say_calls(void)
{
    void *calls[MOST_CALLS];
    backtrace_symbols_fd(calls, backtrace(calls, MOST_CALLS), STDERR_FILENO);
}

static void say_refusal(const char *name)
{
    char where[400];
    find_place(where, sizeof where);
    fprintf(stderr,
            "oomdoctor virtual card: %s is not modelled and failed, at %s; the calls that led there:\n",
            name, where);
    say_calls();
}

void vc_report(const char *kind, const char *name)
{
    char line[640];
    pthread_mutex_lock(&lock);
    if (!strcmp(kind, VC_MISSING))
        snprintf(last_missing, sizeof last_missing, "%s", name);
    int fresh = is_new(kind, name);
    pthread_mutex_unlock(&lock);
    if (!fresh)
        return;
    snprintf(line, sizeof line, "%s %s\n", kind, name);
    write_line(line);
    if (!strcmp(kind, VC_REFUSED))
        say_refusal(name);
    else if (getenv("OOMDOCTOR_VIRTUAL_VERBOSE"))
        fprintf(stderr, "oomdoctor virtual card: %s", line);
}

static void report_reads(struct place *place)
{
    char line[512];
    if (place->reads == place->reported)
        return;
    place->reported = place->reads;
    snprintf(line, sizeof line, "read %ld %lu %s\n", (long)getpid(), place->reads, place->where);
    write_line(line);
}

static struct place *place_of(const char *where)
{
    for (int i = 0; i < place_count; i++)
        if (!strcmp(places[i].where, where))
            return &places[i];
    if (place_count == MOST_PLACES)
        return &places[MOST_PLACES - 1];
    places[place_count] = (struct place){strdup(where), 0, 0};
    return &places[place_count++];
}

/* A loop that waits for a value never ends here; it is interrupted as by Ctrl-C. */
static void interrupt_endless(unsigned long reads, const char *where)
{
    const char *most = getenv("OOMDOCTOR_VIRTUAL_MOST_READS");
    unsigned long limit = most && *most ? strtoul(most, NULL, 10) : 100000;
    if (!limit || reads != limit)
        return;
    fprintf(stderr,
            "oomdoctor virtual card: %lu reads of values that only a GPU could have computed at %s: "
            "a loop that waits for one never ends here, so it is interrupted\n",
            reads, where);
    raise(SIGINT);
}

void vc_count_unknown_read(void)
{
    char where[400];
    find_place(where, sizeof where);
    pthread_mutex_lock(&lock);
    struct place *place = place_of(where);
    unsigned long reads = ++place->reads;
    if (reads >= 2 * place->reported)
        report_reads(place);
    pthread_mutex_unlock(&lock);
    interrupt_endless(reads, where);
}

static struct sigaction before_segv, before_bus;

static void crashed(int number, siginfo_t *info, void *context)
{
    char text[640];
    int card = vc_card_of(info->si_addr);
    (void)context;
    if (card >= 0)
        snprintf(text, sizeof text,
                 "oomdoctor virtual card: the host followed the address %p of virtual card %d, where "
                 "nothing lies; the calls that led there:\n",
                 info->si_addr, card);
    else if (!info->si_addr && last_missing[0])
        snprintf(text, sizeof text,
                 "oomdoctor virtual card: the process crashed at address 0, as one does that calls a "
                 "function which is not there: %s was the last to be asked for; the calls that led "
                 "there:\n",
                 last_missing);
    else
        snprintf(text, sizeof text,
                 "oomdoctor virtual card: the process crashed (signal %d, address %p); the calls that "
                 "led there:\n",
                 number, info->si_addr);
    if (write(STDERR_FILENO, text, strlen(text)) > 0)
        say_calls();
    sigaction(number, number == SIGSEGV ? &before_segv : &before_bus, NULL);
}

void vc_watch_crashes(void)
{
    struct sigaction ours = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    void *calls[2];
    backtrace(calls, 2); /* loads what it needs now, since a handler must not */
    sigaction(SIGSEGV, &ours, &before_segv);
    sigaction(SIGBUS, &ours, &before_bus);
}

static void begin_anew(void)
{
    place_count = 0; /* what the parent read is the parent's */
}

__attribute__((constructor)) static void prepare(void)
{
    pthread_atfork(NULL, NULL, begin_anew);
}

__attribute__((destructor)) static void finish(void)
{
    for (int i = 0; i < place_count; i++)
        report_reads(&places[i]);
}
