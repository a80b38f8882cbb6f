/* Host arrays through the device in chunks: workers pack them into pinned memory, and copies in,
   kernels and copies out of different chunks overlap, so that both directions of the bus are busy.
   Device memory stays the same however long the arrays are. */
#ifndef GK_PIPELINE_H
#define GK_PIPELINE_H

#include "base/array.h"
#include "base/workers.h"
#include "device/backend.h"
#include "engine/pool.h"
#include "engine/trace.h"

enum {
    GK_PIPELINE_OPERANDS = 3,
    GK_PIPELINE_CHUNK = 2 << 20, /* bytes of the widest array a chunk; measured best on PCIe 5 */
};

typedef struct gk_pipeline gk_pipeline;

/* Work on one chunk: contiguous 1-D arrays in device memory, elements [first, first + length). It
   may be asked for a chunk again where memory ran out. */
typedef gk_status (*gk_chunk_work)(void *context, gk_stream stream, const gk_array *operands,
                                   gk_array *result, size_t first, gk_error *error);

/* How a long flow asks, now and then, whether the user wants it to end. The thread that began the
   flow asks. */
typedef struct gk_interruption {
    bool (*wanted)(struct gk_interruption *);
} gk_interruption;
bool gk_interrupted(gk_interruption *interruption, gk_error *error); /* NULL: never */

/* One passage through the pipeline. Host arrays have `count` elements in C order, any strides. */
typedef struct gk_flow {
    size_t count;
    size_t chunk;    /* bytes of the widest array a chunk at most; no more than GK_PIPELINE_CHUNK */
    size_t multiple; /* elements that no chunk may break, 0: any will do */
    int operand_count;
    gk_array operands[GK_PIPELINE_OPERANDS]; /* on the host */
    void *landing[GK_PIPELINE_OPERANDS];     /* device memory for all of an operand, or NULL */
    gk_chunk_work work;                      /* or NULL */
    void *context;
    bool has_result;
    gk_array result;    /* on the host, contiguous */
    const void *source; /* device memory that holds all of it, or NULL where `work` makes it */
    gk_stream after;    /* the stream whose work the device memory above waits for */
    gk_interruption *interruption; /* or NULL */
    gk_busy *busy; /* filled where it is not NULL, at the cost of two events a step */
} gk_flow;

/* Give the lanes and their buffers back until the next flow; waits for the one under way, but does
   nothing where that is this thread's own. */
void gk_pipeline_trim(gk_pipeline *pipeline, gk_backend *backend);

/* Elements of the smallest chunk, but for the last one. */
size_t gk_flow_least(const gk_flow *flow);

/* The first operand that is the same elements in the same order, on the way to the same place, as
   this one: that is the one which travels. */
int gk_flow_twin(const gk_flow *flow, int number);

/* Lanes, streams and buffers come at the first flow. NULL: out of memory. */
gk_pipeline *gk_pipeline_new(gk_workers *workers, gk_pool *pool);
void gk_pipeline_free(gk_pipeline *pipeline, gk_backend *backend);

/* Run the flow; when it returns, host operands have been read, and a host result is complete. What
   lands on the device is ordered before later work of `after`. GK_MEMORY_ERROR, after which the
   flow may begin anew by another way, where there is no room for the buffers, or where this thread
   has a flow under way: a signal handler's call in the middle of one. One flow at a time: other
   callers wait. */
gk_status gk_pipeline_run(gk_pipeline *pipeline, gk_backend *backend, const gk_flow *flow,
                          gk_error *error);

/* Three more streams for work that is not cut into chunks, such as a product by panels. */
enum { GK_PIPELINE_STREAMS = 3 };
typedef union gk_pipeline_streams {
    struct {
        gk_stream gate, compute, out;
    };
    gk_stream all[GK_PIPELINE_STREAMS];
} gk_pipeline_streams;
gk_status gk_pipeline_get_streams(gk_pipeline *pipeline, gk_backend *backend,
                                  gk_pipeline_streams *streams, gk_error *error);

/* Device memory that the lanes hold. */
size_t gk_pipeline_bytes(gk_pipeline *pipeline);

#endif
