/* Reads from the environment what the virtual cards are like; oomdoctor/virtual/environment.py writes it. */
#include "virtual.h"

#include <stdio.h>
#include <stdlib.h>

static struct vc_settings settings;

static const char *text_of(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static size_t bytes_of(const char *name, const char *otherwise)
{
    return strtoull(text_of(name, otherwise), NULL, 10);
}

/* CUDA_VISIBLE_DEVICES hides cards from the end; which ones are shown makes no difference here. */
static int shown(int cards)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    if (!list)
        return cards;
    int count = *list && *list != '-';
    for (const char *c = list; *c; c++)
        count += *c == ',';
    return count < cards ? count : cards;
}

static void read_settings(void)
{
    snprintf(settings.name, sizeof settings.name, "%s",
             text_of("OOMDOCTOR_VIRTUAL_NAME", "virtual card"));
    int cards = atoi(text_of("OOMDOCTOR_VIRTUAL_COUNT", "1"));
    settings.cards = shown(cards > VC_MOST_CARDS ? VC_MOST_CARDS : cards);
    settings.major = 8;
    sscanf(text_of("OOMDOCTOR_VIRTUAL_CAPABILITY", "8.0"), "%d.%d", &settings.major,
           &settings.minor);
    settings.multiprocessors = atoi(text_of("OOMDOCTOR_VIRTUAL_SM_COUNT", "108"));
    settings.total_bytes = bytes_of("OOMDOCTOR_VIRTUAL_TOTAL_BYTES", "85899345920");
    settings.context_bytes = bytes_of("OOMDOCTOR_VIRTUAL_CONTEXT_BYTES", "0");
    settings.communicator_bytes = bytes_of("OOMDOCTOR_VIRTUAL_COMMUNICATOR_BYTES", "0");
    settings.peer_wait_s = atof(text_of("OOMDOCTOR_VIRTUAL_PEER_WAIT_S", "20"));
}

const struct vc_settings *vc_settings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_settings);
    return &settings;
}
