/* Values written into an array on the device: broadcast to its shape, converted to its dtype. No
   operation of its own: what fills, converts and assigns to parts of a DeviceArray. */
#ifndef GK_OPS_ASSIGN_H
#define GK_OPS_ASSIGN_H

#include "engine/call.h"

/* Whether `source` may be assigned to `target`: its shape broadcasts, and its dtype is of the same
   kind or of one that holds it, as NumPy's "same_kind" has it. */
gk_status gk_assign_check(gk_call *call, const gk_array *target, const gk_array *source);

/* Write it; of any dtype, wherever it is, also where it overlaps the target. Nothing is written of
   a call that fails before its last launch. */
gk_status gk_assign(gk_call *call, const gk_array *target, const gk_array *source);

/* By a kernel, to where nothing else lies, from an array of the same shape that kernels reach, or
   from a number of the host's. */
gk_status gk_assign_by_kernel(gk_call *call, const gk_array *to, const gk_array *from);

#endif
