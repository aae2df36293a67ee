/* cuBLAS and cuBLASLt: what they answer. Their workspace is allocated by torch, which asks nobody.

   Products themselves are generated (oomdoctor/virtual/rest.py) and do nothing. */
#include "virtual.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <string.h>

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    *handle = vc_fresh_handle();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t *mode)
{
    (void)handle;
    *mode = CUBLAS_POINTER_MODE_HOST;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
    (void)handle;
    *mode = CUBLAS_DEFAULT_MATH;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t *stream)
{
    (void)handle;
    *stream = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int *count)
{
    (void)handle;
    *count = 0; /* all of them */
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version)
{
    (void)handle;
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType property, int *value)
{
    *value = property == MAJOR_VERSION   ? CUBLAS_VER_MAJOR
             : property == MINOR_VERSION ? CUBLAS_VER_MINOR
                                         : CUBLAS_VER_PATCH;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = vc_fresh_handle();
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *description,
                                        cublasComputeType_t compute, cudaDataType_t scale)
{
    (void)compute, (void)scale;
    *description = vc_fresh_handle();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading)
{
    (void)type, (void)rows, (void)columns, (void)leading;
    *layout = vc_fresh_handle();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = vc_fresh_handle();
    return CUBLAS_STATUS_SUCCESS;
}

/* One algorithm that needs no workspace of its own: torch gives its workspace whatever it needs. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t *results,
    int *count)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
    *count = wanted > 0;
    if (wanted > 0)
        memset(results, 0, sizeof *results);
    return CUBLAS_STATUS_SUCCESS;
}
