/* An elementwise operation on its way to a kernel. */
#ifndef GK_ELEMENTWISE_WORK_H
#define GK_ELEMENTWISE_WORK_H

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

#endif
