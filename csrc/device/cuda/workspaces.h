/* Device memory that cuBLAS works in. A handle has one of its own, for which two streams would have
   to wait for one another and which a CUDA graph could not count on; taken and given back by each
   call, it costs 1.4 us of every product on an H200. So each stream keeps one, and each graph has
   one for a stream that it was captured on, which it owns. */
#ifndef GK_WORKSPACES_H
#define GK_WORKSPACES_H

#include "device/cuda/device.h"

/* For a product on the stream, which is being enqueued: until it is given back, by the same thread,
   no other product is. */
gk_status gk_cuda_workspace_take(gk_cuda *cuda, gk_stream stream, gk_cuda_workspace *taken,
                                 gk_error *error);
void gk_cuda_workspace_give(gk_cuda *cuda, const gk_cuda_workspace *taken);

/* The stream is about to end. */
void gk_cuda_workspace_end(gk_cuda *cuda, gk_stream stream);

/* What streams keep, which is nobody's to release. */
size_t gk_cuda_workspace_bytes(gk_cuda *cuda);

/* Wait for the device and free what streams keep, unless a product is just being enqueued. In the
   context. */
CUresult gk_cuda_workspaces_drop(gk_cuda *cuda);

#endif
