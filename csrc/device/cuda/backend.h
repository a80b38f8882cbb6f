/* A GPU through the CUDA driver. */
#ifndef GK_BACKEND_CUDA_H
#define GK_BACKEND_CUDA_H

#include "device/backend.h"

/* Where to look for a library that is not part of the driver: the Python side knows the wheels.
   Writes full names or paths, one a line, to try in order. */
typedef void (*gk_locator)(void *context, char *candidates, size_t size);

/* A visible device, on its primary context; nothing is kept when it fails. */
gk_status gk_backend_cuda_open(gk_backend **backend, int ordinal, gk_locator locate, void *context,
                               gk_error *error);

/* What the driver says of itself, whether or not it works. */
typedef struct gk_driver_report {
    char path[512];
    int version;
    char status[64]; /* of cuInit, by the driver's name; "" where it was not reached */
    int devices;
    gk_error problem; /* GK_OK where a GPU can be used */
} gk_driver_report;
void gk_cuda_report(gk_driver_report *report);

/* What device number `ordinal` is. */
gk_status gk_cuda_describe(int ordinal, gk_device_summary *summary, gk_attribute_visitor visit,
                           void *context, gk_error *error);

/* cuBLAS as the backend has found it. */
typedef struct gk_cublas_report {
    char path[512];
    int version;
    gk_error problem;
} gk_cublas_report;
void gk_backend_cuda_cublas(gk_backend *backend, gk_cublas_report *report);

#endif
