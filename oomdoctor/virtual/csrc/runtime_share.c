/* CUDA runtime: memory and events that one process shares with another.

   A handle names a block, its size and its card. Who opens it gets addresses of its own, which cost
   nothing: the block is its owner's, and what lies in it is not known here. */
#include "runtime.h"

#include <string.h>

struct shared_block {
    uintptr_t start;
    size_t bytes;
    int machine_card;
};

static int card_of_machine(int machine_card)
{
    for (int card = 0; card < vc_settings()->cards; card++)
        if (vc_machine_card(card) == machine_card)
            return card;
    return -1;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
    struct shared_block shared = {0};
    shared.bytes = vc_block_of((uintptr_t)pointer, &shared.start);
    if (!shared.bytes)
        return vc_fail(cudaErrorInvalidValue);
    shared.machine_card = vc_machine_card(vc_card_of(pointer));
    memset(handle, 0, sizeof *handle);
    memcpy(handle->reserved, &shared, sizeof shared);
    return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned int flags)
{
    struct shared_block shared;
    (void)flags;
    memcpy(&shared, handle.reserved, sizeof shared);
    int card = card_of_machine(shared.machine_card);
    if (card < 0)
        return vc_fail(cudaErrorInvalidDevice);
    vc_open(card);
    *pointer = (void *)vc_reserve_addresses(card, shared.bytes);
    return cudaSuccess;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    (void)event;
    memset(handle, 0, sizeof *handle);
    return cudaSuccess;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    (void)handle;
    *event = vc_fresh_handle();
    return cudaSuccess;
}
