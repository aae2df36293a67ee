/* What the files of the CUDA runtime share: the user's own headers, and the error of a thread. */
#ifndef OOMDOCTOR_VIRTUAL_RUNTIME_H
#define OOMDOCTOR_VIRTUAL_RUNTIME_H

#include "virtual.h"

#include <cuda_runtime_api.h>

/* Remember an error for cudaGetLastError, and return it. */
cudaError_t vc_fail(cudaError_t error);

#endif
