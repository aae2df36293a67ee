/* cuFFT: the memory that a plan works in. Its guide says that this can be nothing, and at most as much
   as the data as complex numbers; the most is taken, and reported as assumed. */
#include "virtual.h"

#include <cufftXt.h>

cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long int *n,
                                long long int *inembed, long long int istride, long long int idist,
                                cudaDataType inputtype, long long int *onembed,
                                long long int ostride, long long int odist, cudaDataType outputtype,
                                long long int batch, size_t *work, cudaDataType executiontype)
{
    (void)plan, (void)inembed, (void)istride, (void)idist, (void)inputtype;
    (void)onembed, (void)ostride, (void)odist, (void)outputtype;
    size_t elements = (size_t)batch, each = 8; /* two floats */
    for (int i = 0; i < rank; i++)
        elements *= (size_t)n[i];
    if (executiontype == CUDA_C_64F || executiontype == CUDA_R_64F)
        each = 16;
    else if (executiontype == CUDA_C_16F || executiontype == CUDA_R_16F)
        each = 4;
    vc_report(VC_ASSUMED, "cufftXtMakePlanMany: as large as the data, which is the most");
    if (work)
        *work = elements * each;
    return CUFFT_SUCCESS;
}
