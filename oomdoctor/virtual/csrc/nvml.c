/* NVML: what torch (for the text of an out-of-memory error), pynvml, accelerate and Lightning ask.

   The wheels have no nvml.h; structures are written here as NVML's reference documents them. What is
   not here is not in the library, and pynvml then says "Function Not Found". */
#include "virtual.h"

#include <stdio.h>
#include <string.h>

enum { NVML_SUCCESS = 0, NVML_NOT_SUPPORTED = 3, NVML_INSUFFICIENT_SIZE = 7 };

typedef void *nvml_device; /* number of the card + 1 */

struct nvml_memory {
    unsigned long long total, unused, used;
};

struct nvml_memory_v2 {
    unsigned int version;
    unsigned long long total, reserved, unused, used;
};

struct nvml_process {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
};

static int card_of(nvml_device device)
{
    return (int)(uintptr_t)device - 1;
}

static nvml_device device_of(int card)
{
    return (nvml_device)(uintptr_t)(card + 1);
}

static const struct vc_kind *kind_of(nvml_device device)
{
    return &vc_settings()->kinds[card_of(device)];
}

/* Contexts may be larger than what a card has left. */
static size_t used_of(nvml_device device)
{
    size_t used = vc_used_of_machine(card_of(device));
    return used < kind_of(device)->total_bytes ? used : kind_of(device)->total_bytes;
}

#define SAYS_YES(name) \
    int name(void) \
    { \
        return NVML_SUCCESS; \
    }
#define IS_NOT_SUPPORTED(name) \
    int name(void) \
    { \
        return NVML_NOT_SUPPORTED; \
    }

SAYS_YES(nvmlInit)
SAYS_YES(nvmlInit_v2)
SAYS_YES(nvmlInitWithFlags)
SAYS_YES(nvmlShutdown)
/* expandable segments ask for it, and give up if it is not supported; an unset state says "no fabric" */
SAYS_YES(nvmlDeviceGetGpuFabricInfoV)
IS_NOT_SUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
IS_NOT_SUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
IS_NOT_SUPPORTED(nvmlDeviceGetCpuAffinity)
IS_NOT_SUPPORTED(nvmlDeviceGetCpuAffinityWithinScope)

const char *nvmlErrorString(int error)
{
    return error ? "Not Supported" : "Success";
}

int nvmlSystemGetDriverVersion(char *text, unsigned int length)
{
    snprintf(text, length, "580.00.00");
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
    *version = VC_CUDA_MAJOR * 1000;
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = (unsigned int)vc_settings()->installed;
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int card, nvml_device *device)
{
    *device = device_of((int)card);
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvml_device *device)
{
    unsigned int bus = 1;
    sscanf(id, "%*x:%x", &bus);
    *device = device_of((int)bus - 1);
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *id, nvml_device *device)
{
    unsigned int number = 1;
    sscanf(id, "GPU-%2x", &number);
    *device = device_of((int)number - 1);
    return NVML_SUCCESS;
}

int nvmlDeviceGetIndex(nvml_device device, unsigned int *card)
{
    *card = (unsigned int)card_of(device);
    return NVML_SUCCESS;
}

int nvmlDeviceGetUUID(nvml_device device, char *text, unsigned int length)
{
    snprintf(text, length, "GPU-%02x000000-0000-0000-0000-000000000000", card_of(device) + 1);
    return NVML_SUCCESS;
}

int nvmlDeviceGetName(nvml_device device, char *text, unsigned int length)
{
    snprintf(text, length, "%s", kind_of(device)->name);
    return NVML_SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
    *major = kind_of(device)->major;
    *minor = kind_of(device)->minor;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
    memory->total = kind_of(device)->total_bytes;
    memory->used = used_of(device);
    memory->unused = memory->total - memory->used;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *memory)
{
    memory->total = kind_of(device)->total_bytes;
    memory->reserved = 0;
    memory->used = used_of(device);
    memory->unused = memory->total - memory->used;
    return NVML_SUCCESS;
}

int nvmlDeviceGetUtilizationRates(nvml_device device, unsigned int *rates)
{
    (void)device;
    rates[0] = rates[1] = 0;
    return NVML_SUCCESS;
}

int nvmlDeviceGetTemperature(nvml_device device, int sensor, unsigned int *degrees)
{
    (void)device, (void)sensor;
    *degrees = 30;
    return NVML_SUCCESS;
}

int nvmlDeviceGetPowerUsage(nvml_device device, unsigned int *milliwatts)
{
    (void)device;
    *milliwatts = 50000;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMultiGpuBoard(nvml_device device, unsigned int *is_one)
{
    (void)device;
    *is_one = 0;
    return NVML_SUCCESS;
}

int nvmlDeviceGetP2PStatus(nvml_device device, nvml_device peer, int index, int *status)
{
    (void)device, (void)peer, (void)index;
    *status = 0;
    return NVML_SUCCESS;
}

/* Both versions of the list: the first ends before the instances. */
static int processes_on(nvml_device device, unsigned int *room, void *list, size_t bytes_each)
{
    struct vc_user users[VC_MOST_USERS];
    unsigned int count = (unsigned int)vc_users(card_of(device), users);
    int fits = list && *room >= count;
    *room = count;
    if (!fits && count)
        return NVML_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < count; i++) {
        struct nvml_process one = {(unsigned int)users[i].pid, users[i].used, ~0U, ~0U};
        memcpy((char *)list + i * bytes_each, &one, bytes_each);
    }
    return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned int *room, void *list)
{
    return processes_on(device, room, list, sizeof(struct nvml_process));
}

int nvmlDeviceGetComputeRunningProcesses_v2(nvml_device device, unsigned int *room, void *list)
{
    return processes_on(device, room, list, sizeof(struct nvml_process));
}

int nvmlDeviceGetComputeRunningProcesses(nvml_device device, unsigned int *room, void *list)
{
    return processes_on(device, room, list, 16);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device device, unsigned int *count,
                                             void *processes)
{
    (void)device, (void)processes;
    *count = 0;
    return NVML_SUCCESS;
}
