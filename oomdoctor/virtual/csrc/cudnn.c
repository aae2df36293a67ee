/* cuDNN: the real library answers, in its documented mode without a device.

   A descriptor of a card (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) takes the place of the handle, so the
   choice of engines and the sizes of workspaces are cuDNN's own. Ours are only handles, which engines
   never see, and execution, which does nothing. cuDNN before 9.8 has no such descriptor: there a
   convolution fails with cuDNN's own error. */
#include "virtual.h"

#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By number, since older headers do not name them. */
enum { DEVICEPROP = 38, HEUR_DEVICEPROP = 204, PLAN_DEVICEPROP = 407, ENGINE_DEVICEPROP = 1307 };
enum { DEVICEPROP_JSON = 2702, TYPE_CHAR = 24 };

static void *library(void)
{
    static void *handle;
    char name[32];
    snprintf(name, sizeof name, "libcudnn.so.%d", CUDNN_MAJOR);
    if (!handle)
        handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle)
        handle = dlopen(name, RTLD_LAZY);
    if (!handle)
        vc_report(VC_REFUSED, name);
    return handle;
}

void *vc_real_cudnn(const char *name)
{
    return dlsym(library(), name);
}

/* The real function of a name, with its type; NULL where the library lacks. */
#define REAL(function) ((__typeof__(function) *)vc_real_cudnn(#function))

static const char *const card_as_json =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":%d,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":%d,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":%d,"
    "\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":%d,\"pciDeviceId\":0,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":%zu,\"smClockRateKHz\":1410000,"
    "\"memClockRateKHz\":1215000,\"l2CacheSize\":41943040,\"cudaDeviceId\":0,\"deviceVer\":%d,"
    "\"driverVer\":13000,\"deviceName\":\"virtual card\"}";

static cudnnBackendDescriptor_t describe_card(void)
{
    char json[2048];
    const struct vc_kind *card = vc_kind(vc_current_card());
    snprintf(json, sizeof json, card_as_json, vc_attribute(16), vc_attribute(97),
             vc_attribute(106), vc_attribute(39), card->total_bytes,
             card->major * 100 + card->minor * 10);
    cudnnBackendDescriptor_t made = NULL;
    cudnnStatus_t status = REAL(cudnnBackendCreateDescriptor)(
        (cudnnBackendDescriptorType_t)DEVICEPROP, &made);
    if (!status)
        status = REAL(cudnnBackendSetAttribute)(
            made, (cudnnBackendAttributeName_t)DEVICEPROP_JSON,
            (cudnnBackendAttributeType_t)TYPE_CHAR, (int64_t)strlen(json) + 1, json);
    if (!status)
        status = REAL(cudnnBackendFinalize)(made);
    if (status)
        vc_report(VC_REFUSED, "cuDNN without a device (needs cuDNN 9.8 or later)");
    return made;
}

static cudnnBackendDescriptor_t card;

static void describe_once(void)
{
    card = describe_card();
}

static void set_card(cudnnBackendDescriptor_t descriptor, int attribute)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, describe_once);
    REAL(cudnnBackendSetAttribute)
    (descriptor, (cudnnBackendAttributeName_t)attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &card);
}

/* Which kind each of the descriptors is that we treat in a way of their own. */
static struct {
    void *descriptor;
    int kind;
} *kinds;
static size_t count, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(void *descriptor, int kind)
{
    pthread_mutex_lock(&lock);
    if (count == room) {
        room = room ? room * 2 : 256;
        kinds = realloc(kinds, room * sizeof *kinds);
    }
    kinds[count].descriptor = descriptor;
    kinds[count++].kind = kind;
    pthread_mutex_unlock(&lock);
}

static int kind_of(void *descriptor, int and_forget)
{
    int kind = -1;
    pthread_mutex_lock(&lock);
    for (size_t i = count; i-- > 0;)
        if (kinds[i].descriptor == descriptor) {
            kind = kinds[i].kind;
            if (and_forget)
                kinds[i] = kinds[--count];
            break;
        }
    pthread_mutex_unlock(&lock);
    return kind;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    *handle = calloc(1, 1 << 16); /* some code looks into a handle; there is nothing in it */
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    (void)handle; /* a plan may still know it */
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    *(cudaStream_t *)handle = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
    *stream = *(cudaStream_t *)handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind,
                                           cudnnBackendDescriptor_t *descriptor)
{
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    if (kind == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
        *descriptor = calloc(1, 64);
    else
        status = REAL(cudnnBackendCreateDescriptor)(kind, descriptor);
    if (!status &&
        (kind == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR || kind == CUDNN_BACKEND_ENGINE_DESCRIPTOR ||
         kind == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR ||
         kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR))
        remember(*descriptor, kind);
    return status;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    if (kind_of(descriptor, 1) != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
        return REAL(cudnnBackendDestroyDescriptor)(descriptor);
    free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

static int is_handle(cudnnBackendAttributeName_t name)
{
    return name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE || name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t elements,
                                       const void *values)
{
    if (is_handle(name) || kind_of(descriptor, 0) == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
        return CUDNN_STATUS_SUCCESS;
    return REAL(cudnnBackendSetAttribute)(descriptor, name, type, elements, values);
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted,
                                       int64_t *elements, void *values)
{
    if (!is_handle(name))
        return REAL(cudnnBackendGetAttribute)(descriptor, name, type, wanted, elements, values);
    if (elements)
        *elements = 1;
    if (values)
        *(void **)values = NULL;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    switch (kind_of(descriptor, 0)) {
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        set_card(descriptor, HEUR_DEVICEPROP);
        break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
        set_card(descriptor, PLAN_DEVICEPROP);
        break;
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
        set_card(descriptor, ENGINE_DEVICEPROP);
        break;
    default:
        break;
    }
    return REAL(cudnnBackendFinalize)(descriptor);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    (void)handle, (void)plan, (void)pack;
    return CUDNN_STATUS_SUCCESS;
}

/* A generator for each resident thread, of 48 bytes; nobody checked this on a card. */
cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *bytes)
{
    (void)handle;
    vc_report(VC_ASSUMED, "cudnnDropoutGetStatesSize");
    *bytes = (size_t)vc_attribute(16) * (size_t)vc_attribute(39) * 48;
    return CUDNN_STATUS_SUCCESS;
}
