/* The way of an operand to the device and of a result back: copies, and changes of layout. */
#ifndef GK_TRANSFER_H
#define GK_TRANSFER_H

#include "call.h"

/* A contiguous, aligned device array of `shape_of`'s shape with the values of `operand`, which may
   be in host memory (contiguous), strided on the device, or to be broadcast. Makes no copy where
   none is needed; what it makes lives until the call ends. */
gk_status gk_stage_operand(gk_call *call, const gk_array *operand, const gk_array *shape_of,
                           gk_array *staged);

/* Where a kernel may write the result: `result` itself if it is a contiguous, aligned device array
   that no operand shares memory with; else a temporary. An operation that reads element i before
   it writes element i, and no other, may write where an operand lies exactly. */
gk_status gk_stage_result(gk_call *call, const gk_array *result, const gk_array *operands,
                          int operand_count, bool elementwise, gk_array *staged);

/* Bring the staged result to where the user wants it; the last step of a call that can fail. */
gk_status gk_deliver_result(gk_call *call, const gk_array *staged, const gk_array *result);

/* Element by element between two device arrays of one shape and dtype, any strides. */
gk_status gk_copy_strided(gk_call *call, const gk_array *to, const gk_array *from);

#endif
