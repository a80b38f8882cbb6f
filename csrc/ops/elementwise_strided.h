/* Elementwise operations on arrays that are not all one run. */
#ifndef GK_ELEMENTWISE_STRIDED_H
#define GK_ELEMENTWISE_STRIDED_H

#include "ops/elementwise_work.h"

/* Whether it is only operands that are not aligned for vectors: kernels of strided arrays put those
   together of aligned ones, where this row would take a word or less at a time. */
bool gk_is_better_strided(const gk_call *call, const gk_row *row, const gk_array *result);

/* The nest's first array is the result, the others are the operands; 0 where one is a number. */
gk_status gk_launch_strided(gk_call *call, gk_work *ready, const gk_nest *nest);

#endif
