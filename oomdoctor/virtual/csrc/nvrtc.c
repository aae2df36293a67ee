/* NVRTC: any source compiles at once to 4 KiB of nothing, since kernels never run.

   It carries the real library's SONAME, so that whoever opens libnvrtc gets this one. */
#include "virtual.h"

#include <nvrtc.h>
#include <stdlib.h>
#include <string.h>

#define CODE_BYTES 4096

static const int architectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120};

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = VC_NVRTC_MAJOR;
    *minor = 0;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "error of the virtual card";
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count)
{
    *count = sizeof architectures / sizeof *architectures;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *list)
{
    memcpy(list, architectures, sizeof architectures);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name,
                               int count, const char *const *headers, const char *const *names)
{
    (void)source, (void)name, (void)count, (void)headers, (void)names;
    *program = calloc(1, 64);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options)
{
    (void)program, (void)count, (void)options;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcAddNameExpression(nvrtcProgram program, const char *const name)
{
    (void)program, (void)name;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char *const name, const char **lowered)
{
    (void)program, (void)name;
    *lowered = "kernel";
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes)
{
    (void)program;
    *bytes = 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *text)
{
    (void)program;
    *text = 0;
    return NVRTC_SUCCESS;
}

/* The forms in which code is had: `head` is what makes a reader take it for one of them. */
#define CODE(form, head) \
    nvrtcResult nvrtcGet##form##Size(nvrtcProgram program, size_t *bytes) \
    { \
        (void)program; \
        *bytes = CODE_BYTES; \
        return NVRTC_SUCCESS; \
    } \
    nvrtcResult nvrtcGet##form(nvrtcProgram program, char *code) \
    { \
        (void)program; \
        memset(code, 0, CODE_BYTES); \
        memcpy(code, head, sizeof head); \
        return NVRTC_SUCCESS; \
    }

CODE(PTX, ".version 8.0\n")
CODE(CUBIN, "\177ELF")
CODE(LTOIR, "")
CODE(NVVM, "") /* until CUDA 12 */
CODE(OptiXIR, "")

nvrtcResult nvrtcGetPCHHeapSize(size_t *bytes)
{
    *bytes = 1 << 20;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPCHHeapSizeRequired(nvrtcProgram program, size_t *bytes)
{
    (void)program;
    *bytes = 0;
    return NVRTC_SUCCESS;
}

/* cuDNN takes a library without one of these, even of the undocumented one, for none. */
nvrtcResult nvrtcSetPCHHeapSize(size_t bytes)
{
    (void)bytes;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPCHCreateStatus(nvrtcProgram program)
{
    (void)program;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcSetFlowCallback(nvrtcProgram program, int (*callback)(void *, void *), void *argument)
{
    (void)program, (void)callback, (void)argument;
    return NVRTC_SUCCESS;
}

int __nvrtcCPEx(void)
{
    return 0;
}
