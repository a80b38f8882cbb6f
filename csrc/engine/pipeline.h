/* Host arrays through the device in chunks: workers pack each of them together into pinned memory,
   and copies in, kernels and copies out of different chunks overlap, so that both directions of
   the bus are busy. Device memory stays the same however long the arrays are. */
#ifndef GK_PIPELINE_H
#define GK_PIPELINE_H

#include "base/workers.h"
#include "device/backend.h"
#include "engine/flow.h"
#include "engine/pool.h"

typedef struct gk_pipeline gk_pipeline;

/* Give the buffers back until the next flow; waits for the one under way, but does
   nothing where that is this thread's own. */
void gk_pipeline_trim(gk_pipeline *pipeline, gk_backend *backend);

/* Streams and buffers come at the first flow. NULL: out of memory. */
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

/* What flows have found out. */
gk_tuner gk_pipeline_tuner(gk_pipeline *pipeline);

/* Device memory that the buffers take. */
size_t gk_pipeline_bytes(gk_pipeline *pipeline);

#endif
