/* CUDA driver: how its functions are found by name.

   Functions written by hand come before those that were generated, whatever suffix (_v2, ...) they
   carry. A name that no header knows is not there, and is reported. */
#include "virtual.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *const suffixes[] = {"", "_v4", "_v3", "_v2"};

static int is_by_hand(void *function)
{
    Dl_info its, ours;
    return dladdr(function, &its) && dladdr((void *)vc_entry_point, &ours) &&
           its.dli_fbase == ours.dli_fbase;
}

void *vc_entry_point(const char *name)
{
    char full[256];
    void *generated = NULL;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(full, sizeof full, "%s%s", name, suffixes[i]);
        void *found = dlsym(RTLD_DEFAULT, full);
        if (found && is_by_hand(found))
            return found;
        if (found && !generated)
            generated = found;
    }
    if (!generated)
        vc_report(VC_MISSING, name);
    return generated;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *status)
{
    (void)version, (void)flags;
    *function = strcmp(name, "cuGetProcAddress") ? vc_entry_point(name) : (void *)cuGetProcAddress;
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* Tables that no document describes: none is given. A library that links the runtime statically asks
   for them and does without a card then; cuDNN answers from its documented mode without one. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    (void)id;
    *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
