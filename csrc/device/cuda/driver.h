/* The CUDA driver, opened with dlopen when it is first needed and never linked. */
#ifndef GK_DRIVER_H
#define GK_DRIVER_H

#include <cuda.h>

#include "base/error.h"
#include "device/backend.h"
#include "device/cuda/driver_functions.h"

#define GK_DRIVER_NEEDED 13000 /* the CUDA version of the fatbins: the driver has to know it */

typedef struct gk_driver {
    void *library;
    char path[512];
    int version;     /* 13000 for CUDA 13.0 */
    CUresult status; /* of cuInit */
    CUresult (*cuDriverGetVersion)(int *);
#define GK_DECLARE(name) __typeof__(&name) name;
    GK_DRIVER_FUNCTIONS(GK_DECLARE)
#undef GK_DECLARE
} gk_driver;

/* Load, check and initialize the driver; on failure the sentence says which of the known ways it
   is, and what was found out until then stays in `driver` for a report. The library is never
   unloaded: others in the process may be using it. */
gk_status gk_driver_open(gk_driver *driver, gk_error *error);

/* A visible device, if there is one of that number and it can run the kernels. */
gk_status gk_driver_device(const gk_driver *driver, int ordinal, CUdevice *device, int *capability,
                           gk_error *error);

/* "CUDA_ERROR_NO_DEVICE", also where the library is too broken to say so itself. */
const char *gk_driver_error_name(const gk_driver *driver, CUresult result);

#endif
