/* Kernels of elementwise.cuh on operands of any shapes, layouts and places, for operations that are
   element by element. */
#ifndef GK_OPS_ELEMENTWISE_H
#define GK_OPS_ELEMENTWISE_H

#include "ops/operation.h"

/* On the device; an operand of one element may be a number of the host's. */
gk_status gk_run_elementwise(gk_call *call, gk_op op, const gk_array *operands, int count,
                             gk_array *result);

/* From the host and back, chunk by chunk. */
gk_status gk_flow_elementwise(gk_call *call, gk_op op, const gk_array *operands, int count,
                              const gk_array *result);

#endif
