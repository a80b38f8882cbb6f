/* When each engine of the device was busy, read off events around every step of a flow. */
#ifndef GK_TRACE_H
#define GK_TRACE_H

#include "device/backend.h"

typedef enum gk_trace_kind {
    GK_TRACE_IN,
    GK_TRACE_KERNEL,
    GK_TRACE_OUT,
    GK_TRACE_KINDS
} gk_trace_kind;

/* The seconds in which each engine was busy, overlaps counted once, and all of them together. */
typedef struct gk_busy {
    double in, kernel, out, any;
} gk_busy;

typedef struct gk_trace gk_trace;

gk_status gk_trace_new(gk_backend *backend, gk_stream stream, size_t steps, gk_trace **trace,
                       gk_error *error);
void gk_trace_free(gk_trace *trace);

/* Around a step of a stream, from any lane: the start gives the number that the end takes. A NULL
   trace does nothing. */
size_t gk_trace_start(gk_trace *trace, gk_stream stream, gk_trace_kind kind);
void gk_trace_end(gk_trace *trace, gk_stream stream, size_t number);

/* The union of the intervals of each kind, and of all. */
gk_status gk_trace_read(gk_trace *trace, gk_busy *busy, gk_error *error);

#endif
