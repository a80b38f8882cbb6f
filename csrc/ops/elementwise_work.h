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

/* Its terms on the arrays of a piece of its nest. */
static inline gk_terms gk_terms_of(const gk_work *work, const gk_nest *piece) {
    gk_terms terms = work->terms;
    for (int k = 1; k < piece->arrays; k++)
        terms.data[k - 1] = (const void *)piece->data[k]; /* a number's stays NULL */
    return terms;
}

/* How many elements of so many bytes a word has, or one that is larger. */
static inline int64_t gk_elements_of_word(int64_t size) {
    return size < GK_WORD ? GK_WORD / size : 1;
}

#endif
