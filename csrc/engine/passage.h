/* One passage of a flow through the pipeline's buffers, by all of its workers together.

   A chunk is packed in pieces by whoever has time, and who packs the last one starts its copies and
   its kernel: few long copies keep the bus busier than many, and one thread alone at the driver
   waits for nobody. Copies in, kernels and copies out have a stream each, so that chunks stay in
   order, and each direction of the bus goes from one copy to the next. */
#ifndef GK_PASSAGE_H
#define GK_PASSAGE_H

#include "base/workers.h"
#include "engine/flow.h"
#include "engine/pool.h"

enum {
    GK_PASSAGE_HOLDS = 3, /* chunks on the device: one comes in, one is worked on, one leaves */
    GK_PASSAGE_SLOTS = 6, /* and on the host, whose threads are now faster and now slower */
    GK_PASSAGE_BYTES = GK_FLOW_CHUNK + 4096, /* of each; operands begin at multiples of 256 */
};

/* Where a chunk stays on the host while it is under way, on either way. */
typedef struct gk_slot {
    char *pinned;
    gk_event *landed, *returned;
    bool lands; /* a flow that has ended left copies under way, up to that event */
} gk_slot;

/* And on the device. */
enum { GK_INWARD, GK_OUTWARD, GK_WAYS };
typedef struct gk_hold {
    char *device[GK_WAYS];
    gk_event *worked;
    bool works; /* a flow that has ended left kernels under way, up to that event */
} gk_hold;

/* What one passage at a time has to itself. */
typedef struct gk_berth {
    gk_stream in, work, out;
    gk_event *started; /* what they wait for before they touch a caller's device memory */
    gk_slot slots[GK_PASSAGE_SLOTS];
    gk_hold holds[GK_PASSAGE_HOLDS];
} gk_berth;

/* Wait until nothing reads or writes its memory or that of a caller; or know that nothing does. */
void gk_berth_drain(gk_berth *berth, gk_backend *backend);
void gk_berth_clear(gk_berth *berth);

/* The flow by that setting. When it returns, host operands have been read, and a host result is
   complete; `after` waits for what is still under way, unless it `settles`: then nothing comes in
   any more. */
gk_status gk_passage_run(gk_berth *berth, gk_backend *backend, gk_workers *workers, gk_pool *pool,
                         const gk_flow *flow, gk_staging how, bool settles, gk_error *error);

#endif
