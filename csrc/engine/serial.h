/* A flow without the pipeline, for a device or a host that has no room for its buffers: one chunk
   after the other on the call's stream, in as little device memory as a chunk takes. */
#ifndef GK_SERIAL_H
#define GK_SERIAL_H

#include "engine/call.h"
#include "engine/pipeline.h"

gk_status gk_serial_flow(gk_call *call, const gk_flow *flow);

#endif
