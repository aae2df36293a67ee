/* The numbers of 8 bits are for kernels; nccl.h includes their header and declares nothing with them. */
