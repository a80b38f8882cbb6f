/* A GPU through the CUDA driver. */
#ifndef GK_BACKEND_CUDA_H
#define GK_BACKEND_CUDA_H

#include "device/backend.h"
#include "device/reports.h"

/* A visible device, on its primary context; nothing is kept when it fails. */
gk_status gk_backend_cuda_open(gk_backend **backend, int ordinal, gk_locator locate, void *context,
                               gk_error *error);

/* The driver, whether or not it works. */
void gk_cuda_report(gk_driver_report *report);

/* What device number `ordinal` is. */
gk_status gk_cuda_describe(int ordinal, gk_device_summary *summary, gk_attribute_visitor visit,
                           void *context, gk_error *error);

/* cuBLAS, which is looked for now if it was not before. */
void gk_backend_cuda_cublas(gk_backend *backend, gk_cublas_report *report);

#endif
