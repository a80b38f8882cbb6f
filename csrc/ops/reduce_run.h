/* Reductions on the device: the kernels that an operation takes, in one launch or several. */
#ifndef GK_REDUCE_RUN_H
#define GK_REDUCE_RUN_H

#include "ops/operation.h"
#include "ops/reduce_shape.h"

/* What the dtype of a result comes of. */
typedef enum gk_result_rule {
    GK_OF_SUM,
    GK_OF_MEAN,
    GK_OF_PRODUCT,
    GK_OF_OPERAND,
    GK_OF_REAL,
    GK_OF_INDEX
} gk_result_rule;

typedef struct gk_reduction_operation {
    gk_operation base;
    gk_result_rule result;
    gk_reduce_last last;
    bool reversed;           /* the least is the greatest in the reverse order */
    bool zero_of_nothing;    /* else what the kernel makes of no elements */
    const char *no_elements; /* why there has to be one, in NumPy's words; NULL: there need not */
} gk_reduction_operation;

bool gk_is_half(gk_dtype dtype);
gk_dtype gk_default_result(gk_result_rule rule, gk_dtype dtype);

/* A reduction under way. */
typedef struct gk_reducing {
    gk_call *call;
    const gk_reduction_operation *kind;
    const gk_row *row;
    gk_reduce_plan plan;
    bool goes_on;   /* what comes of it is reduced again */
    size_t lacking; /* bytes that the array has not at its end, though its shape says so */
} gk_reducing;

/* The kernel, for elements of a's dtype; what it has to know beside the shape; its launch. */
gk_status gk_reducing_choose(gk_reducing *made, const gk_array *a, gk_dtype result);
void gk_reducing_describe(gk_reducing *whole, gk_dtype of, gk_dtype result);
gk_status gk_reducing_launch(const gk_reducing *whole, gk_call *call, const gk_reduction *how,
                             size_t blocks, const gk_array *operands);

/* Make it one run in memory. */
gk_status gk_pack_reduced(gk_call *call, const gk_array *a, gk_array *packed);

/* Launches one after another, each over some of the reduced axes. They come of the whole array's
   shape, and serve its parts, which have fewer elements along kept axes. */
enum { GK_MOST_STAGES = 3 };
typedef struct gk_reduce_stages {
    int count;
    uint64_t axes[GK_MOST_STAGES], left[GK_MOST_STAGES]; /* reduced by each, and after it */
    gk_reduce_plan plan[GK_MOST_STAGES];
} gk_reduce_stages;
gk_reduce_stages gk_plan_stages(const gk_reduction_operation *kind, const gk_call *call,
                                const gk_array *a, uint64_t axes, gk_dtype result);
/* A part by that plan, so that its results have the bits of the whole one's; by a plan of its own
   where no order of the elements changes any, and that of the whole may come of where they lay. */
gk_status gk_run_part(const gk_reduction_operation *kind, gk_call *call, uint64_t axes,
                      const gk_reduce_stages *whole, const gk_array *operands, gk_array *result);

/* All of it, of arrays on the device. */
gk_status gk_run_reduction(const gk_reduction_operation *kind, gk_call *call, uint64_t axes,
                           const gk_array *operands, gk_array *result);

#endif
