/* The way of an operand to the device and of a result back: copies, and changes of layout. */
#ifndef GK_TRANSFER_H
#define GK_TRANSFER_H

#include "engine/call.h"
#include "engine/pipeline.h"

/* All of a host array, of any layout, to contiguous device memory, and device memory to a
   contiguous host array. Large ones go through the pipeline. */
gk_status gk_upload(gk_call *call, const gk_array *host, void *device);
gk_status gk_download(gk_call *call, const void *device, const gk_array *host);

/* The same in the order in which it lies on the host, with nothing gathered there: `there` is the
   array on the device, of other strides where its axes are turned. */
gk_status gk_upload_lying(gk_call *call, const gk_array *host, gk_array *there);

/* What a chunk of the flow may have: who cuts it into parts asks before. */
void gk_call_limit(const gk_call *call, gk_flow *flow);

/* A passage through the pipeline as part of the call: errors blamed on it, its profile filled. */
gk_status gk_call_flow(gk_call *call, gk_flow *flow);

/* The values of a host array to another of the same shape and dtype, one of which is contiguous, by
   all the workers. */
void gk_copy_host(const gk_device *device, const gk_array *to, const gk_array *from);

/* The same memory seen in the shape of `target`: new and repeated axes get stride 0. */
void gk_broadcast_view(const gk_array *source, const gk_array *target, gk_array *view);

/* Whether its axes are the target's last ones, of the same lengths or of length 1. */
bool gk_broadcasts_to(const gk_array *source, const gk_array *target);

/* Make the view one of contiguous memory in a mailbox, as kernels address it; returns the bytes to
   where the next one begins. */
size_t gk_mapped_view(gk_array *view, char *mapped);

/* An operand on the device, ready on the call's stream, each element at a multiple of its size, of
   any strides. Makes no copy where none is needed; what it makes lives until the call ends. */
gk_status gk_stage_view(gk_call *call, const gk_array *operand, gk_array *staged);
/* The same, contiguous. */
gk_status gk_stage_operand(gk_call *call, const gk_array *operand, gk_array *staged);
/* The same, contiguous with the last two axes exchanged where it lies so on the host, and then has
   not to be gathered there. */
gk_status gk_stage_lying(gk_call *call, const gk_array *operand, gk_array *staged);
/* A contiguous copy of a view on the device that lives until the call ends. */
gk_status gk_stage_packed(gk_call *call, const gk_array *view, gk_array *packed);

/* Where a kernel may write the result: `result` itself if it is an aligned device array, contiguous
   or of strides that the kernel takes, that no operand shares memory with; else a temporary. An
   operation that reads element i before it writes element i, and no other, may write where an
   operand lies exactly. */
gk_status gk_stage_result(gk_call *call, const gk_array *result, const gk_array *operands,
                          int operand_count, bool elementwise, bool strided, gk_array *staged);

/* Bring the staged result to where the user wants it; the last step of a call that can fail. */
gk_status gk_deliver_result(gk_call *call, const gk_array *staged, const gk_array *result);

#endif
