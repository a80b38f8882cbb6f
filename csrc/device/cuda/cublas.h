/* cuBLAS, opened with dlopen when a matrix product first asks for it. */
#ifndef GK_CUBLAS_H
#define GK_CUBLAS_H

#include "device/backend.h"

typedef struct gk_cublas gk_cublas;

/* The context that the handle is for has to be current. driver: the CUDA version that it supports,
   13000 for 13.0; `available`: bytes of device memory. A memory error is one that may pass. */
gk_status gk_cublas_open(gk_cublas **cublas, int driver, size_t available, gk_locator locate,
                         void *context, gk_error *error);
void gk_cublas_close(gk_cublas *cublas);
/* The workspace is device memory of the product's stream; one thread at a time. */
gk_status gk_cublas_gemm(gk_cublas *cublas, const gk_gemm *gemm, void *workspace, size_t bytes,
                         gk_error *error);
int gk_cublas_version(const gk_cublas *cublas);
const char *gk_cublas_path(const gk_cublas *cublas);

#endif
