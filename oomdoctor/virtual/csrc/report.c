/* Writes down what the virtual card did not model, for the result of a run.

   The file named by OOMDOCTOR_VIRTUAL_LOG gets a line `KIND NAME` for each such call, once per
   process, and lines `unknown-reads PID COUNT`: how often a program read a value that only a GPU
   could have computed. The count is written whenever it has doubled, for processes that end without
   their exit handlers, and at the end. */
#include "virtual.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_LINES 4096

static const char *seen[MOST_LINES][2];
static int lines;
static unsigned long unknown_reads, reported_reads;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

void vc_report(const char *kind, const char *name)
{
    char line[512];
    pthread_mutex_lock(&lock);
    int fresh = is_new(kind, name);
    pthread_mutex_unlock(&lock);
    if (!fresh)
        return;
    snprintf(line, sizeof line, "%s %s\n", kind, name);
    write_line(line);
    if (getenv("OOMDOCTOR_VIRTUAL_VERBOSE"))
        fprintf(stderr, "oomdoctor virtual card: %s", line);
}

static void report_reads(void)
{
    char line[128];
    if (unknown_reads == reported_reads)
        return;
    reported_reads = unknown_reads;
    snprintf(line, sizeof line, "unknown-reads %ld %lu\n", (long)getpid(), unknown_reads);
    write_line(line);
}

void vc_count_unknown_read(void)
{
    pthread_mutex_lock(&lock);
    unknown_reads++;
    if (unknown_reads >= 2 * reported_reads)
        report_reads();
    pthread_mutex_unlock(&lock);
}

static void begin_anew(void)
{
    unknown_reads = reported_reads = 0;
}

__attribute__((constructor)) static void prepare(void)
{
    pthread_atfork(NULL, NULL, begin_anew); /* what the parent read is the parent's */
}

__attribute__((destructor)) static void finish(void)
{
    report_reads();
}
