/* Reads from the environment what the virtual cards are like; oomdoctor/virtual/environment.py writes it.

   What differs from card to card is a list with semicolons, whose last entry stands for all further
   cards: OOMDOCTOR_VIRTUAL_NAME="NVIDIA L4;Tesla T4". */
#include "virtual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct vc_settings settings;

static const char *text_of(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static size_t bytes_of(const char *text)
{
    return strtoull(text, NULL, 10);
}

/* The entry of a list for the card of a number: "a;b" gives a for card 0 and b for all others. */
static void entry(char *target, size_t room, const char *name, const char *otherwise, int card)
{
    const char *at = text_of(name, otherwise), *end;
    while ((end = strchr(at, ';')) && card--)
        at = end + 1;
    size_t length = end ? (size_t)(end - at) : strlen(at);
    snprintf(target, room, "%.*s", (int)length, at);
}

static void read_kind(struct vc_kind *kind, int card)
{
    char text[64];
    entry(kind->name, sizeof kind->name, "OOMDOCTOR_VIRTUAL_NAME", "virtual card", card);
    entry(text, sizeof text, "OOMDOCTOR_VIRTUAL_CAPABILITY", "8.0", card);
    kind->major = 8;
    sscanf(text, "%d.%d", &kind->major, &kind->minor);
    entry(text, sizeof text, "OOMDOCTOR_VIRTUAL_SM_COUNT", "108", card);
    kind->multiprocessors = atoi(text);
    entry(text, sizeof text, "OOMDOCTOR_VIRTUAL_TOTAL_BYTES", "85899345920", card);
    kind->total_bytes = bytes_of(text);
    entry(text, sizeof text, "OOMDOCTOR_VIRTUAL_CONTEXT_BYTES", "0", card);
    kind->context_bytes = bytes_of(text);
    entry(text, sizeof text, "OOMDOCTOR_VIRTUAL_OTHERS_BYTES", "0", card);
    kind->others_bytes = bytes_of(text);
}

/* The machine's card that an entry of CUDA_VISIBLE_DEVICES names: a number or the start of an id. */
static int named(const char *one)
{
    unsigned int number;
    char *end;
    if (sscanf(one, "GPU-%2x", &number) == 1 || sscanf(one, "MIG-%2x", &number) == 1)
        return (int)number - 1;
    long card = strtol(one, &end, 10);
    return end == one ? -1 : (int)card;
}

/* CUDA shows the cards of the list up to the first that is not there. */
static void show_cards(void)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    if (!list) {
        for (settings.cards = 0; settings.cards < settings.installed; settings.cards++)
            settings.shown[settings.cards] = settings.cards;
        return;
    }
    while (*list && settings.cards < settings.installed) {
        int card = named(list);
        if (card < 0 || card >= settings.installed)
            return;
        settings.shown[settings.cards++] = card;
        list += strcspn(list, ",");
        list += *list == ',';
    }
}

static void read_settings(void)
{
    int installed = atoi(text_of("OOMDOCTOR_VIRTUAL_COUNT", "1"));
    settings.installed = installed > VC_MOST_CARDS ? VC_MOST_CARDS : installed;
    for (int card = 0; card < settings.installed; card++)
        read_kind(&settings.kinds[card], card);
    show_cards();
    settings.fail_at = atol(text_of("OOMDOCTOR_VIRTUAL_FAIL_AT", "0"));
    settings.pair_bytes = bytes_of(text_of("OOMDOCTOR_VIRTUAL_COMMUNICATOR_BYTES", "0"));
    settings.communicator_bytes =
        bytes_of(text_of("OOMDOCTOR_VIRTUAL_LARGE_COMMUNICATOR_BYTES", "0"));
    if (!settings.communicator_bytes)
        settings.communicator_bytes = settings.pair_bytes;
    settings.peer_wait_s = atof(text_of("OOMDOCTOR_VIRTUAL_PEER_WAIT_S", "60"));
    settings.events_late = strcmp(text_of("OOMDOCTOR_VIRTUAL_EVENTS", "late"), "ready") != 0;
}

const struct vc_settings *vc_settings(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_settings);
    return &settings;
}

int vc_machine_card(int card)
{
    const struct vc_settings *all = vc_settings();
    return card >= 0 && card < all->cards ? all->shown[card] : 0;
}

const struct vc_kind *vc_kind(int card)
{
    return &vc_settings()->kinds[vc_machine_card(card)];
}
