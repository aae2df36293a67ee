/* NVML: what torch (for the text of an out-of-memory error), pynvml, accelerate and Lightning ask.

   The wheels have no nvml.h; structures are written here as NVML's reference documents them. What is
   not here is not in the library, and pynvml then says "Function Not Found". */
#include "virtual.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    *count = (unsigned int)vc_settings()->cards;
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
    (void)device;
    snprintf(text, length, "%s", vc_settings()->name);
    return NVML_SUCCESS;
}

int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
    (void)device;
    *major = vc_settings()->major;
    *minor = vc_settings()->minor;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
    memory->total = vc_settings()->total_bytes;
    memory->used = vc_used(card_of(device));
    memory->unused = memory->total - memory->used;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *memory)
{
    memory->total = vc_settings()->total_bytes;
    memory->reserved = 0;
    memory->used = vc_used(card_of(device));
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

/* The process that asks is the only one on its card. */
int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned int *count,
                                            struct nvml_process *processes)
{
    if (*count < 1 || !processes) {
        *count = 1;
        return NVML_INSUFFICIENT_SIZE;
    }
    memset(processes, 0, sizeof *processes);
    processes->pid = (unsigned int)getpid();
    processes->used = vc_used(card_of(device));
    *count = 1;
    return NVML_SUCCESS;
}

/* The first version of the structure ends before the instances, and one entry fits both. */
int nvmlDeviceGetComputeRunningProcesses(nvml_device device, unsigned int *count, void *processes)
{
    if (*count < 1 || !processes) {
        *count = 1;
        return NVML_INSUFFICIENT_SIZE;
    }
    struct nvml_process one = {(unsigned int)getpid(), vc_used(card_of(device)), 0, 0};
    memcpy(processes, &one, 16);
    *count = 1;
    return NVML_SUCCESS;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device device, unsigned int *count,
                                             void *processes)
{
    (void)device, (void)processes;
    *count = 0;
    return NVML_SUCCESS;
}
