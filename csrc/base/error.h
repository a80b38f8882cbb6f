/* What can go wrong, and the sentence a user reads about it. */
#ifndef GK_ERROR_H
#define GK_ERROR_H

typedef enum gk_status {
    GK_OK = 0,
    GK_TYPE_ERROR,   /* TypeError: a dtype or a kind of object that the operation does not take */
    GK_VALUE_ERROR,  /* ValueError: shapes, layouts, names of variants */
    GK_MEMORY_ERROR, /* MemoryError: what was asked and what is free is in the text */
    GK_CUDA_ERROR,   /* gpukern.CudaError: the driver, cuBLAS or the simulator said no */
    GK_DEVICE_LOST,  /* gpukern.DeviceLostError: a kernel faulted and took the context with it */
    GK_INTERRUPTED,  /* the exception of a signal handler, which is set already */
} gk_status;

typedef struct gk_error {
    gk_status status;
    char text[1024];
} gk_error;

/* Write the sentence and return `status`, so that a failing function can end in one line:
   `return gk_fail(error, GK_VALUE_ERROR, "...", ...)`. */
gk_status gk_fail(gk_error *error, gk_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put `format` before the sentence that is there: an inner function knows what failed, an outer
   one knows for which operation. Returns error->status. */
gk_status gk_fail_in(gk_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
