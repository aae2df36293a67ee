/* Hands out addresses of each card; what is used of it, usage.c counts.

   Addresses only grow and are never given out twice, as blocks of 2 MiB. So the list of blocks of a
   card is sorted by itself, and a stale pointer never meets a new block. */
#include "virtual.h"

#include <stdlib.h>
#include <string.h>

struct block {
    uintptr_t start;
    size_t bytes;
};

static struct card {
    uintptr_t reached; /* addresses given out so far, from the card's first one on */
    struct block *blocks;
    size_t count, room;
    struct block *pages; /* physical pages of expandable segments; `start` is their handle */
    size_t page_count, page_room;
} cards[VC_MOST_CARDS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int current;

int vc_current_card(void)
{
    return current;
}

int vc_choose_card(int card)
{
    if (card < 0 || card >= vc_settings()->cards)
        return 1;
    current = card;
    return 0;
}

int vc_card_of(const void *pointer)
{
    uintptr_t address = (uintptr_t)pointer;
    uintptr_t end = VC_FIRST_ADDRESS + ((uintptr_t)VC_MOST_CARDS << VC_ADDRESS_BITS);
    if (address < VC_FIRST_ADDRESS || address >= end)
        return -1;
    return (int)((address - VC_FIRST_ADDRESS) >> VC_ADDRESS_BITS);
}

static size_t in_pages(size_t bytes)
{
    return (bytes + VC_PAGE - 1) & ~(VC_PAGE - 1);
}

static void append(struct block **list, size_t *count, size_t *room, struct block one)
{
    if (*count == *room) {
        *room = *room ? *room * 2 : 256;
        *list = realloc(*list, *room * sizeof **list);
    }
    (*list)[(*count)++] = one;
}

static uintptr_t next_addresses(int card, size_t bytes)
{
    uintptr_t first = VC_FIRST_ADDRESS + ((uintptr_t)card << VC_ADDRESS_BITS);
    uintptr_t address = first + cards[card].reached;
    cards[card].reached += bytes;
    return address;
}

int vc_allocate(int card, size_t bytes, uintptr_t *address)
{
    struct card *c = &cards[card];
    size_t whole = in_pages(bytes);
    if (vc_take(card, whole))
        return 1;
    pthread_mutex_lock(&lock);
    *address = next_addresses(card, whole);
    append(&c->blocks, &c->count, &c->room, (struct block){*address, whole});
    pthread_mutex_unlock(&lock);
    return 0;
}

/* The last block that begins at or below an address, or NULL; the lock is held. */
static struct block *below(uintptr_t address)
{
    int card = vc_card_of((void *)address);
    if (card < 0)
        return NULL;
    struct card *c = &cards[card];
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c->blocks[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &c->blocks[low - 1] : NULL;
}

int vc_release(uintptr_t address)
{
    pthread_mutex_lock(&lock);
    struct block *block = below(address);
    int failed = !block || block->start != address;
    if (!failed) {
        struct card *c = &cards[vc_card_of((void *)address)];
        vc_give(vc_card_of((void *)address), block->bytes);
        size_t after = (size_t)(c->blocks + c->count - block - 1);
        memmove(block, block + 1, after * sizeof *block);
        c->count--;
    }
    pthread_mutex_unlock(&lock);
    return failed;
}

size_t vc_block_of(uintptr_t address, uintptr_t *start)
{
    pthread_mutex_lock(&lock);
    struct block *block = below(address);
    size_t bytes = block && address < block->start + block->bytes ? block->bytes : 0;
    if (bytes && start)
        *start = block->start;
    pthread_mutex_unlock(&lock);
    return bytes;
}

uintptr_t vc_reserve_addresses(int card, size_t bytes)
{
    pthread_mutex_lock(&lock);
    uintptr_t address = next_addresses(card, in_pages(bytes));
    pthread_mutex_unlock(&lock);
    return address;
}

int vc_take_pages(int card, size_t bytes, unsigned long long *handle)
{
    struct card *c = &cards[card];
    if (vc_take(card, bytes))
        return 1;
    pthread_mutex_lock(&lock);
    *handle = (uintptr_t)vc_fresh_handle();
    append(&c->pages, &c->page_count, &c->page_room, (struct block){*handle, bytes});
    pthread_mutex_unlock(&lock);
    return 0;
}

void vc_give_pages(unsigned long long handle)
{
    pthread_mutex_lock(&lock);
    for (int card = 0; card < VC_MOST_CARDS; card++) {
        struct card *c = &cards[card];
        for (size_t i = c->page_count; i-- > 0;)
            if (c->pages[i].start == handle) {
                vc_give(card, c->pages[i].bytes);
                c->pages[i] = c->pages[--c->page_count];
                pthread_mutex_unlock(&lock);
                return;
            }
    }
    pthread_mutex_unlock(&lock);
}

void *vc_fresh_handle(void)
{
    static uintptr_t last = 0x10000;
    return (void *)__sync_add_and_fetch(&last, 64);
}
