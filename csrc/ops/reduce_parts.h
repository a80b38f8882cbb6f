/* Reductions along an axis of an array on the host, in parts that have all elements of some
 * results. */
#ifndef GK_REDUCE_PARTS_H
#define GK_REDUCE_PARTS_H

#include "ops/reduce_run.h"

/* Each result has the bits that it has where the whole array is on the device. */
gk_status gk_reduce_in_parts(const gk_reduction_operation *kind, gk_call *call, uint64_t reduced,
                             const gk_array *a, const gk_array *result);

#endif
