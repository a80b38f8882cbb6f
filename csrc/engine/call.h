/* One call of an operation: its device, its stream, its temporaries and its clock. */
#ifndef GK_CALL_H
#define GK_CALL_H

#include "base/array.h"
#include "base/clock.h"
#include "device/registry.h"
#include "engine/engine.h"

typedef struct gk_interruption gk_interruption;

enum { GK_MAX_TEMPORARIES = 12, GK_MAX_OPERANDS = 3 };

/* Where the time of a call went, in seconds; measured only under gpukern.profile(), since
   phases that do not run side by side then have to end before the next one starts. */
typedef struct gk_phases {
    double allocate, host_to_device, kernel, device_to_host;
    double overlapped; /* how much less than their sum the phases took, running side by side */
    size_t bytes_in, bytes_out;
} gk_phases;

typedef struct gk_call {
    const char *operation;  /* begins every sentence about a failure */
    const char *variant;    /* as the user named it, or NULL */
    const void *parameters; /* what the operation takes beside its operands, as it declares them */
    gk_engine *engine;
    gk_device *device;
    gk_backend *backend;
    gk_stream stream;
    gk_stream waited;     /* the last one that `stream` was made to wait for, or 0 */
    gk_stream rejoined;   /* the last one that was made to wait for `stream`, or 0 */
    void *keeper;         /* the Python object that holds the stream open; not owned, or NULL */
    bool captured;        /* the stream's work goes into a CUDA graph, to run later */
    bool strict;          /* synchronize after each launch */
    bool mapped;          /* arrays are the host's, as kernels address them: nothing else does */
    gk_phases *phases;    /* NULL unless profiled */
    const gk_row *wanted; /* the row that `variant` names */
    const gk_row *ran;
    gk_interruption *interruption; /* NULL: the call runs to its end */
    int temporary_count;
    void *temporaries[GK_MAX_TEMPORARIES];
    gk_error error;
} gk_call;

/* Open the device of that number for the call. Every call that was begun has to be ended, also
   after an error. */
gk_status gk_call_begin(gk_call *call, gk_engine *engine, int ordinal, const char *operation);
void gk_call_end(gk_call *call); /* releases the temporaries */
/* A part of the call on a stream of its own, to be ended like a call: temporaries of the part are
   not known to the whole. */
gk_call gk_call_part(const gk_call *whole, gk_stream stream);

/* Put "add: " before a sentence of the layers below, which do not know for whom they work. */
gk_status gk_call_blame(gk_call *call, gk_status status);

/* Run the call on that stream from here on; after `phases` is set. */
gk_status gk_call_on(gk_call *call, gk_stream stream);

/* What orders the work of several streams on one array. Every array in device memory has a home:
   the stream that a DeviceArray was made on, or the one that the library says which owns it (where
   it says none, the legacy default stream). A call waits for the homes of its arrays before
   it touches them, and when its work is submitted their homes wait for it. So whatever comes later
   on the home comes after every use: a read, a write, the next owner of freed memory. The stream
   that an array names to other libraries is its home, and does not change. */
gk_status gk_call_wait(gk_call *call, const gk_array *array);
/* Whether it can: what is not captured in a CUDA graph cannot wait for what is. */
gk_status gk_call_may_wait(gk_call *call, const gk_array *array);
gk_status gk_call_rejoin(gk_call *call, const gk_array *array);

/* Device memory until the end of the call. */
gk_status gk_call_temporary(gk_call *call, size_t bytes, void **device);
/* Device memory that the caller keeps. */
gk_status gk_call_allocate(gk_call *call, size_t bytes, void **device);

/* The error of a captured call that would copy to or from the host. */
gk_status gk_call_refuse_host(gk_call *call);
gk_status gk_call_copy_in(gk_call *call, void *device, const void *host, size_t bytes);
/* From pinned memory, which has to stay as it is until the stream has passed the copy. */
gk_status gk_call_start_copy_in(gk_call *call, void *device, const void *pinned, size_t bytes);
gk_status gk_call_copy_out(gk_call *call, void *host, const void *device, size_t bytes);
gk_status gk_call_copy_within(gk_call *call, void *to, const void *from, size_t bytes);
gk_status gk_call_zero(gk_call *call, void *device, size_t bytes);
/* What gk_backend has by this name. */
gk_status gk_call_stream_memory(gk_call *call, size_t bytes, gk_stream_memory *memory);

/* Launch a row's kernel on `blocks` blocks; nothing at all for 0. */
gk_status gk_call_launch(gk_call *call, const gk_row *row, size_t blocks, void **arguments);

/* The same with so much of the row's dynamic shared memory, and what gk_launch has as `reads`. */
gk_status gk_call_launch_sharing(gk_call *call, const gk_row *row, size_t blocks,
                                 size_t shared_bytes, size_t reads, void **arguments);
gk_status gk_call_gemm(gk_call *call, const gk_row *row, gk_gemm gemm);
/* A kernel of a user's module; all but the stream is given. */
gk_status gk_call_launch_kernel(gk_call *call, gk_launch *launch);

/* The same of a row that prepares its launch: workspace, grid and arguments are its own affair. */
gk_status gk_call_prepared(gk_call *call, const gk_row *row, const void *problem);

/* The row to run on contiguous arrays at these addresses (their bitwise or): the wanted one, or the
   best. */
gk_status gk_call_choose(gk_call *call, gk_op op, gk_dtype dtype, uintptr_t address_bits,
                         const gk_row **row);

#endif
