/* Arrays whose axes lie in another order in memory, reduced in that order. */
#ifndef GK_REDUCE_REORDERED_H
#define GK_REDUCE_REORDERED_H

#include "engine/call.h"

/* Whether an axis lies farther apart than one before it. */
bool gk_is_turned(const gk_array *array);

/* An array with its axes in another order, and its results in that order. */
typedef struct gk_reordered {
    gk_array array, found; /* `found` contiguous, */
    gk_array wanted;       /* the memory that the results belong to */
    uint64_t axes;         /* that are reduced */
} gk_reordered;

/* The axes in that order; memory for the results, where they do not come in their own. */
gk_status gk_reorder(gk_call *call, const gk_array *a, uint64_t reduced, const int *order,
                     const gk_array *result, gk_reordered *made);
/* The results where they belong. */
gk_status gk_put_back(gk_call *call, const gk_reordered *of);

#endif
