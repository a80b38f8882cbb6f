/* The CUDA driver, opened with dlopen when it is first needed and never linked. */
#ifndef GK_DRIVER_H
#define GK_DRIVER_H

#include <cuda.h>

#include "base/error.h"
#include "device/backend.h"
#include "device/cuda/driver_functions.h"

enum { GK_DRIVER_NEEDED = 12000 }; /* r525 reads the PTX of this build, and has the functions */

typedef struct gk_driver {
    void *library;
    char path[512];
    int version;     /* 13000 for CUDA 13.0 */
    CUresult status; /* of cuInit */
    CUresult (*cuDriverGetVersion)(int *);
#define GK_DECLARE(name) __typeof__(&name) name;
    GK_DRIVER_FUNCTIONS(GK_DECLARE)
    GK_NEWER_DRIVER_FUNCTIONS(GK_DECLARE) /* NULL where an older driver has it not */
#undef GK_DECLARE
    CUresult (*older_capture_info)(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
                                   const CUgraphNode **, size_t *);
} gk_driver;

/* Load, check and initialize the driver; on failure the sentence says which of the known ways it
   is, and what was found out until then stays in `driver` for a report. The library is never
   unloaded: others in the process may be using it. */
gk_status gk_driver_open(gk_driver *driver, gk_error *error);

/* A visible device, if there is one of that number and it can run the kernels. */
gk_status gk_driver_device(const gk_driver *driver, int ordinal, CUdevice *device, int *capability,
                           gk_error *error);

/* Whether a driver of that version takes what a compiler as new as this build's has made, cubins
   and libraries: one of the same major version of CUDA, or of a later one. */
bool gk_driver_takes_machine_code(int version);

/* Have the kernel's code on the device now, and not when it is first launched. */
CUresult gk_driver_load_function(const gk_driver *driver, CUfunction function);

/* The graph that a stream's work goes into, if it is captured, and the number of that capture,
   which no other has. */
CUresult gk_driver_captured_graph(const gk_driver *driver, CUstream stream,
                                  CUstreamCaptureStatus *status, cuuint64_t *number,
                                  CUgraph *graph);

/* "CUDA_ERROR_NO_DEVICE", also where the library is too broken to say so itself. */
const char *gk_driver_error_name(const gk_driver *driver, CUresult result);

#endif
