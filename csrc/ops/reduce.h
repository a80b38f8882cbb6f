/* The list of reductions: a line each here, one in op_reduce.c, and rows with kernels in cuda/. */
#ifndef GK_REDUCE_H
#define GK_REDUCE_H

#include "ops/operation.h"

#define GK_REDUCTIONS(X)                                                                           \
    X(sum)                                                                                         \
    X(mean)                                                                                        \
    X(prod)                                                                                        \
    X(max)                                                                                         \
    X(min)                                                                                         \
    X(norm)                                                                                        \
    X(argmax)                                                                                      \
    X(argmin)                                                                                      \
    X(dot)

/* Whether it takes a single axis, and no tuple of them. */
bool gk_takes_one_axis(const struct gk_reduction_kind *kind);

#define GK_DECLARE(name) extern const gk_operation gk_op_##name;
GK_REDUCTIONS(GK_DECLARE)
#undef GK_DECLARE

#endif
