/* Elementwise operations on arrays that are not all one run. */
#ifndef GK_ELEMENTWISE_STRIDED_H
#define GK_ELEMENTWISE_STRIDED_H

#include "engine/nest.h"
#include "ops/operation.h"

/* What is launched: on arrays on the device in the result's shape, and numbers of the host. */
typedef struct gk_work {
    gk_op op;
    int count; /* of operands */
    gk_dtype dtype;
    gk_terms terms;
    gk_array views[GK_MAX_OPERANDS];
} gk_work;

/* Whether it is only operands that are not aligned for vectors: kernels of strided arrays put those
   together of aligned ones, where this row would take a word or less at a time. */
bool gk_is_better_strided(const gk_call *call, const gk_row *row, const gk_array *result);

/* The nest's first array is the result, the others are the operands; 0 where one is a number. */
gk_status gk_launch_strided(gk_call *call, gk_work *ready, const gk_nest *nest);

#endif
