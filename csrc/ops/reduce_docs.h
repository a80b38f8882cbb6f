/* The docstrings of the reductions, behind their names. */
#ifndef GK_REDUCE_DOCS_H
#define GK_REDUCE_DOCS_H

#include "ops/docs.h"

#define GK_SUM_SIGNATURE                                                                           \
    "($module, a, /, axis=None, dtype=None, out=None, keepdims=False, *, variant=None, "           \
    "stream=None)\n--\n\n"
#define GK_MAX_SIGNATURE                                                                           \
    "($module, a, /, axis=None, out=None, keepdims=False, *, variant=None, stream=None)\n--\n\n"
#define GK_AXIS_DOC                                                                                \
    "a: one of " GK_OPERANDS_DOC ".\n"                                                             \
    "axis: None for all axes, an axis, or a tuple of them; negative ones count from the last.\n"
#define GK_ONE_AXIS_DOC                                                                            \
    "a: one of " GK_OPERANDS_DOC ".\n"                                                             \
    "axis: None for all axes, or an axis; a negative one counts from the last.\n"
#define GK_KEEPDIMS_DOC "keepdims: keep the axes that are reduced, with length 1.\n"

#define GK_SUM_DOC                                                                                 \
    GK_SUM_SIGNATURE                                                                               \
    "The sum of the elements, over all axes or some.\n\n" GK_AXIS_DOC GK_KEEPDIMS_DOC              \
    "dtype: of the result. None: int64 for integers and bool (also for unsigned ones, where\n"     \
    "    NumPy has uint64; uint64 for uint64 alone),\n"                                            \
    "    else that of a. Also any integer dtype for integers, float32 for float16 and bfloat16,\n" \
    "    and float64, in which it is then carried.\n" GK_OPTIONS_DOC                               \
    "float32 and float64 are carried in twice their precision (T. Ogita, S. Rump, S. Oishi,\n"     \
    "\"Accurate sum and dot product\", 2005), so that the error is one rounding of the result\n"   \
    "plus what cancellation leaves of a rounding squared; float16 and bfloat16 in float32;\n"      \
    "integers wrap around. The order of the additions depends on shape and axes alone (variant\n"  \
    "atomic: on nothing), so that the same values give the same bits on every device. The sum "    \
    "of\n"                                                                                         \
    "nothing is 0.\n" GK_RAISES_DOC

#define GK_MEAN_DOC                                                                                \
    GK_SUM_SIGNATURE                                                                               \
    "The arithmetic mean of the elements, over all axes or some.\n\n" GK_AXIS_DOC GK_KEEPDIMS_DOC  \
    "dtype: of the result. None: float64 for integers, else that of a. Also float32 for float16\n" \
    "    and bfloat16, and float64.\n" GK_OPTIONS_DOC                                              \
    "The sum that gpukern.sum gives before it rounds, divided in float64 and rounded then; of\n"   \
    "integers of 64 bits each is rounded to float64 before, as NumPy does. The mean of nothing\n"  \
    "is NaN, without a warning.\n" GK_RAISES_DOC

#define GK_PROD_DOC                                                                                \
    GK_SUM_SIGNATURE                                                                               \
    "The product of the elements, over all axes or some.\n\n" GK_AXIS_DOC GK_KEEPDIMS_DOC          \
    "dtype: of the result. None: int64 for integers and bool (also for unsigned ones, where\n"     \
    "    NumPy has uint64; uint64 for uint64 alone),\n"                                            \
    "    else that of a. Also any integer dtype for integers, and float32 for float16 and\n"       \
    "    bfloat16.\n" GK_OPTIONS_DOC                                                               \
    "float16 and bfloat16 are multiplied in float32; integers wrap around. The order depends on\n" \
    "shape and axes alone. The product of nothing is 1.\n" GK_RAISES_DOC

#define GK_MAX_DOC                                                                                 \
    GK_MAX_SIGNATURE                                                                               \
    "The greatest element, over all axes or some; NaN where there is one.\n\n" GK_AXIS_DOC         \
        GK_KEEPDIMS_DOC GK_OPTIONS_DOC GK_RAISES_DOC "\nOf no elements there is none: ValueError."

#define GK_MIN_DOC                                                                                 \
    GK_MAX_SIGNATURE                                                                               \
    "The least element, over all axes or some; NaN where there is one.\n\n" GK_AXIS_DOC            \
        GK_KEEPDIMS_DOC GK_OPTIONS_DOC GK_RAISES_DOC "\nOf no elements there is none: ValueError."

#define GK_NORM_DOC                                                                                \
    GK_MAX_SIGNATURE                                                                               \
    "The 2-norm of the elements, over all axes or some: the root of the "                          \
    "sum of the squares.\n\n" GK_AXIS_DOC GK_KEEPDIMS_DOC GK_OPTIONS_DOC                           \
    "The result has the dtype of a, float64 for integers. float32 and float64 squares are "        \
    "carried\n"                                                                                    \
    "in twice their precision, those of float16 and bfloat16 in float32; they overflow as\n"       \
    "numpy.linalg.norm's do. Of a single float nothing is squared: its absolute "                  \
    "value.\n" GK_RAISES_DOC

#define GK_ARGMAX_DOC                                                                              \
    GK_MAX_SIGNATURE                                                                               \
    "Where the greatest element is, or the first NaN; the first of several.\n\n" GK_ONE_AXIS_DOC   \
        GK_KEEPDIMS_DOC GK_OPTIONS_DOC                                                             \
    "The result is int64: an index along the axis, or in C order.\n" GK_RAISES_DOC                 \
    "\nOf no elements there is none: ValueError."

#define GK_ARGMIN_DOC                                                                              \
    GK_MAX_SIGNATURE                                                                               \
    "Where the least element is, or the first NaN; the first of several.\n\n" GK_ONE_AXIS_DOC      \
        GK_KEEPDIMS_DOC GK_OPTIONS_DOC                                                             \
    "The result is int64: an index along the axis, or in C order.\n" GK_RAISES_DOC                 \
    "\nOf no elements there is none: ValueError."

#define GK_DOT_DOC                                                                                 \
    "($module, a, b, /, out=None, *, variant=None, stream=None)\n--\n\n"                           \
    "The inner product of two vectors of one length.\n\n"                                          \
    "a, b: " GK_OPERANDS_DOC ";\n"                                                                 \
    "    1-D, both of one dtype, any that gpukern has, which the result\n"                         \
    "    has too. For matrices see gpukern.matmul.\n" GK_OPTIONS_DOC                               \
    "float32 and float64 are carried in twice their precision, float16 and bfloat16 in float32;\n" \
    "integers wrap around, and of bool the result is whether both are true\n"                      \
    "anywhere. The order depends on the length alone.\n" GK_RAISES_DOC

#endif
