/* Device memory that stands by: each stream keeps a block of it for what it runs one after another,
   and each CUDA graph has a block for a stream that it was captured on, and owns it. Taken from the
   pool and given back by each call it would be two nodes of every graph, 1.4 us on an H200. */
#ifndef GK_STANDING_H
#define GK_STANDING_H

#include "device/cuda/device.h"

void gk_standing_start(gk_standing *standing, size_t bytes, size_t zeroed, int places);

/* All that follows goes by the lock, which gk_standing_take leaves to its caller. */

/* The stream's block, or one of the graph that it is being captured in. NULL: every place is
   taken, the device is full, or the name is one of many streams. */
gk_status gk_standing_take(gk_cuda *cuda, gk_standing *standing, gk_stream stream, void **memory,
                           gk_error *error);

/* The stream is about to end. */
void gk_standing_end(gk_cuda *cuda, gk_standing *standing, gk_stream stream);

/* What streams keep, which is nobody's to release. */
size_t gk_standing_bytes(gk_standing *standing);

/* Wait for the device and free what streams keep, unless somebody has the lock. In the context. */
CUresult gk_standing_drop(gk_cuda *cuda, gk_standing *standing);

#endif
