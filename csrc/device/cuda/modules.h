/* Kernels as the driver knows them: modules are loaded and functions looked up at first use. */
#ifndef GK_CUDA_MODULES_H
#define GK_CUDA_MODULES_H

#include "device/cuda/device.h"

gk_modules *gk_modules_new(void); /* NULL: out of host memory */

/* A row's kernel, and how it may be started. */
typedef struct gk_function {
    _Atomic(CUfunction) handle; /* NULL until it is first launched */
    bool early; /* its code waits for the kernel before it by itself, and may be started before that
                   one has ended */
    size_t places, shared; /* if so, its blocks that the device has room for at a time without
                              dynamic shared memory, and the bytes of other that each has */
} gk_function;

/* Loaded: once a process, then it is an array access. */
gk_status gk_cuda_function(gk_cuda *cuda, const gk_row *row, const gk_function **function,
                           gk_error *error);

/* The name of a user's kernel, kept as long as the device is open: a fault names it later. NULL:
   out of host memory. */
const char *gk_cuda_kernel_name(gk_cuda *cuda, const char *name);

/* Unload everything; in the context. */
void gk_cuda_unload(gk_cuda *cuda);

void gk_modules_free(gk_modules *modules); /* NULL is fine */

#endif
