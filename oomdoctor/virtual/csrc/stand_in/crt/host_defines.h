/* The words with which CUDA's headers mark declarations; not every wheel has this file. */
#ifndef OOMDOCTOR_HOST_DEFINES_H
#define OOMDOCTOR_HOST_DEFINES_H

#define __device_builtin__
#define __device_builtin_surface_type__
#define __device_builtin_texture_type__
#define __cudart_builtin__
#define __host__
#define __device__
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDA_ENUM_DEPRECATED
#define __CUDA_ARCH_HAS_FEATURE__(feature) 0

#endif
