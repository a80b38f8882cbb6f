/* Kernels as the driver knows them: modules are loaded and functions looked up at first use. */
#ifndef GK_CUDA_MODULES_H
#define GK_CUDA_MODULES_H

#include <stdatomic.h>
#include <stdbool.h>

#include <cuda.h>

#include "base/error.h"
#include "device/backend.h"

typedef struct gk_modules {
    _Atomic(CUfunction) *functions; /* one a row of the registry; NULL until first launched */
    CUmodule *kernels;              /* a row's own module of PTX, where it took one */
    struct gk_file_module *files;   /* machine code, one a .cu file */
} gk_modules;

struct gk_cuda;

/* Whether there was memory for the tables. */
bool gk_modules_open(gk_modules *modules);

/* The row's kernel, loaded: once a process, then it is an array access. */
gk_status gk_cuda_function(struct gk_cuda *cuda, const gk_row *row, CUfunction *function,
                           gk_error *error);

/* Unload everything; in the context. */
void gk_cuda_unload(struct gk_cuda *cuda);

void gk_modules_close(gk_modules *modules);

#endif
