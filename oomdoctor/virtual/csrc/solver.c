/* cuSOLVER: how much its factorisations work in. No document says it; LAPACK's routines of the same
   names say how much they need to work in blocks, and that is taken and reported as assumed. For what
   is not here, rest.py has 0 bytes, which it reports as well. */
#include "virtual.h"

#include <cusolverDn.h>
#include <stdio.h>

#define BLOCK 32
#define WIDE_BLOCK 64 /* of sytrf */

static int64_t smaller(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

static int64_t larger(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* In elements. A complex matrix has a workspace of real numbers beside it, of half the size each. */
static int64_t of_eigenvalues(int64_t n, int vectors, int complex)
{
    if (!vectors)
        return complex ? n + 1 + (n + 1) / 2 : 2 * n + 1;
    return complex ? n * n + 2 * n + (2 * n * n + 5 * n + 2) / 2 : 2 * n * n + 6 * n + 1;
}

static int64_t of_singular_values(int64_t m, int64_t n, int complex)
{
    int64_t low = smaller(m, n), high = larger(m, n);
    return complex ? 2 * low + high : larger(3 * low + high, 5 * low);
}

static cusolverStatus_t answer(int *lwork, int64_t elements, const char *function)
{
    char text[96];
    snprintf(text, sizeof text, "%s_bufferSize: as much as LAPACK works in", function);
    vc_report(VC_ASSUMED, text);
    *lwork = (int)smaller(larger(elements, 1), INT32_MAX);
    return CUSOLVER_STATUS_SUCCESS;
}

#define FACTORISATIONS(letter, element) \
    cusolverStatus_t cusolverDn##letter##geqrf_bufferSize(cusolverDnHandle_t handle, int m, int n, \
                                                          element *a, int lda, int *lwork) \
    { \
        (void)handle, (void)m, (void)a, (void)lda; \
        return answer(lwork, (int64_t)n * BLOCK, "cusolverDn" #letter "geqrf"); \
    } \
    cusolverStatus_t cusolverDn##letter##gesvd_bufferSize(cusolverDnHandle_t handle, int m, int n, \
                                                          int *lwork) \
    { \
        int complex = #letter[0] == 'C' || #letter[0] == 'Z'; \
        (void)handle; \
        return answer(lwork, of_singular_values(m, n, complex), "cusolverDn" #letter "gesvd"); \
    } \
    cusolverStatus_t cusolverDn##letter##sytrf_bufferSize(cusolverDnHandle_t handle, int n, \
                                                          element *a, int lda, int *lwork) \
    { \
        (void)handle, (void)a, (void)lda; \
        return answer(lwork, (int64_t)n * WIDE_BLOCK, "cusolverDn" #letter "sytrf"); \
    }

#define REFLECTORS(name, element) \
    cusolverStatus_t cusolverDn##name##gqr_bufferSize(cusolverDnHandle_t handle, int m, int n, int k, \
                                                      const element *a, int lda, \
                                                      const element *tau, int *lwork) \
    { \
        (void)handle, (void)m, (void)k, (void)a, (void)lda, (void)tau; \
        return answer(lwork, (int64_t)n * BLOCK, "cusolverDn" #name "gqr"); \
    } \
    cusolverStatus_t cusolverDn##name##mqr_bufferSize( \
        cusolverDnHandle_t handle, cublasSideMode_t side, cublasOperation_t trans, int m, int n, \
        int k, const element *a, int lda, const element *tau, const element *c, int ldc, int *lwork) \
    { \
        (void)handle, (void)trans, (void)k, (void)a, (void)lda, (void)tau, (void)c, (void)ldc; \
        int64_t rows = side == CUBLAS_SIDE_LEFT ? n : m; \
        return answer(lwork, rows * BLOCK, "cusolverDn" #name "mqr"); \
    }

#define EIGENVALUES(name, element, real, complex) \
    cusolverStatus_t cusolverDn##name##_bufferSize( \
        cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, \
        const element *a, int lda, const real *w, int *lwork) \
    { \
        (void)handle, (void)uplo, (void)a, (void)lda, (void)w; \
        return answer(lwork, of_eigenvalues(n, jobz == CUSOLVER_EIG_MODE_VECTOR, complex), \
                      "cusolverDn" #name); \
    }

FACTORISATIONS(S, float)
FACTORISATIONS(D, double)
FACTORISATIONS(C, cuComplex)
FACTORISATIONS(Z, cuDoubleComplex)
REFLECTORS(Sor, float)
REFLECTORS(Dor, double)
REFLECTORS(Cun, cuComplex)
REFLECTORS(Zun, cuDoubleComplex)
EIGENVALUES(Ssyevd, float, float, 0)
EIGENVALUES(Dsyevd, double, double, 0)
EIGENVALUES(Cheevd, cuComplex, float, 1)
EIGENVALUES(Zheevd, cuDoubleComplex, double, 1)

static size_t bytes_of(cudaDataType type, int64_t elements)
{
    size_t each = type == CUDA_R_32F                         ? 4
                  : type == CUDA_R_64F || type == CUDA_C_32F ? 8
                                                             : 16;
    return (size_t)elements * each;
}

cusolverStatus_t cusolverDnXgeqrf_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             int64_t m, int64_t n, cudaDataType type, const void *a,
                                             int64_t lda, cudaDataType tau_type, const void *tau,
                                             cudaDataType compute_type, size_t *on_card,
                                             size_t *on_host)
{
    (void)handle, (void)params, (void)m, (void)a, (void)lda, (void)tau_type, (void)tau;
    (void)compute_type;
    vc_report(VC_ASSUMED, "cusolverDnXgeqrf_bufferSize: as much as LAPACK works in");
    *on_card = bytes_of(type, n * BLOCK);
    *on_host = 0;
    return CUSOLVER_STATUS_SUCCESS;
}

/* Of matrices one after the other; torch asks for this one. CUDA has it since 12.6. */
cusolverStatus_t cusolverDnXsyevBatched_bufferSize(cusolverDnHandle_t handle,
                                                   cusolverDnParams_t params,
                                                   cusolverEigMode_t jobz, cublasFillMode_t uplo,
                                                   int64_t n, cudaDataType type, const void *a,
                                                   int64_t lda, cudaDataType w_type, const void *w,
                                                   cudaDataType compute_type, size_t *on_card,
                                                   size_t *on_host, int64_t batch)
{
    (void)handle, (void)params, (void)uplo, (void)a, (void)lda, (void)w_type, (void)w;
    (void)compute_type;
    int complex = type == CUDA_C_32F || type == CUDA_C_64F;
    vc_report(VC_ASSUMED, "cusolverDnXsyev_bufferSize: as much as LAPACK's syevd works in");
    *on_card = bytes_of(type, batch * of_eigenvalues(n, jobz == CUSOLVER_EIG_MODE_VECTOR, complex));
    *on_host = 0;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnXsyevd_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             cusolverEigMode_t jobz, cublasFillMode_t uplo,
                                             int64_t n, cudaDataType type, const void *a,
                                             int64_t lda, cudaDataType w_type, const void *w,
                                             cudaDataType compute_type, size_t *on_card,
                                             size_t *on_host)
{
    return cusolverDnXsyevBatched_bufferSize(handle, params, jobz, uplo, n, type, a, lda, w_type, w,
                                             compute_type, on_card, on_host, 1);
}
