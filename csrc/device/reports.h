/* What a device, its driver and its libraries tell of themselves. */
#ifndef GK_DEVICE_REPORTS_H
#define GK_DEVICE_REPORTS_H

#include <stddef.h>

#include "base/error.h"

typedef struct gk_device_summary {
    char name[256];
    char uuid[48];
    int capability;
    size_t memory_total;
    size_t memory_free; /* 0 where it could not be read without creating a context */
} gk_device_summary;

/* Is handed a driver's attributes one by one: the name and the value. */
typedef void (*gk_attribute_visitor)(void *context, const char *name, int value);

/* What the driver says of itself, whether or not it works. */
typedef struct gk_driver_report {
    char path[512];
    int version;
    char status[64]; /* of cuInit, by the driver's name; "" where it was not reached */
    int devices;
    gk_error problem; /* GK_OK where a GPU can be used */
} gk_driver_report;

/* What the kernels in the extension were compiled for: architectures with spaces between them, as
   "75 90a"; all, and those that every file has machine code for and PTX of. */
typedef struct gk_build_report {
    const char *architectures, *machine_code, *ptx;
} gk_build_report;

/* cuBLAS as the device has found it. */
typedef struct gk_cublas_report {
    char path[512];
    int version;
    gk_error problem;
} gk_cublas_report;

#endif
