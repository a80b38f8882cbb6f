/* Reductions whose kept and reduced axes alternate: what a launch of its own takes first. */
#include "ops/reduce_shape.h"

enum {
    STAGED = 1 << 20,       /* bytes for which a launch more is little */
    STAGE = 4,              /* times less that the launch leaves; */
    COPIED = 4 << 20,       /* of more bytes a copy would be made else, which costs more, */
    STAGE_OF_COPIED = 3,    /* than so many times less, */
    STAGE_OF_ANY_ORDER = 2, /* or so many, where what is left has no wider elements */
    LEAST_ROW = 128,        /* bytes of a row that is worth a result of its own in between */
    LEAST_COLUMN = 16, /* the same, of a column of a matrix so little that a block has several: */
    LONGEST_MATRIX = 8192, /* bytes of that, */
    LONGEST_LINE = 128,    /* and of its rows */
};

/* Whether columns of so many elements, of matrices of `count`, may be the first to be reduced. */
static bool are_worth_a_stage(const gk_array *array, size_t length, size_t count) {
    const size_t size = gk_dtype_size(array->dtype);
    const bool little = gk_bytes(array) >= COPIED && length * size >= LEAST_COLUMN &&
                        count * size <= LONGEST_MATRIX && count / length * size <= LONGEST_LINE;
    return count == length || count >= GK_REDUCE_FEW_ELEMENTS || little;
}

uint64_t gk_reduced_first(const gk_array *array, uint64_t reduced, bool any_order) {
    const size_t least = LEAST_ROW / gk_dtype_size(array->dtype);
    uint64_t longest = 0, axes = 0;
    size_t most = 1, length = 1, inner = 1;
    int64_t beyond = 0; /* from one run of the axes so far to the next, if they lie evenly */
    int groups = 0;
    const bool small =
        gk_bytes(array) < STAGED && !(any_order && gk_count(array) > GK_REDUCE_FOUND);
    if (small || gk_is_found_at_once(array, reduced))
        return 0;
    for (int i = array->ndim - 1; i >= 0; i--) {
        size_t along = (size_t)array->shape[i];
        if (along == 1)
            continue;
        const bool reduces = gk_is_reduced(reduced, i);
        const bool apart = any_order && reduces && axes != 0 && array->strides[i] != beyond;
        if (apart && inner == length && length >= least)
            return axes;
        if (apart || !reduces) {
            axes = 0;
            length = 1;
        }
        if (reduces) {
            groups += axes == 0;
            axes |= (uint64_t)1 << i;
            length *= along;
        }
        beyond = array->strides[i] * array->shape[i];
        inner *= along; /* of the group, as far as it goes */
        if (length > most && are_worth_a_stage(array, length, inner)) {
            most = length;
            longest = axes;
        }
    }
    const size_t fewer = gk_bytes(array) < COPIED ? STAGE
                         : any_order              ? STAGE_OF_ANY_ORDER
                                                  : STAGE_OF_COPIED;
    const bool pays = groups > 1 && most >= fewer && !gk_stays_whole(array, reduced, most);
    return pays ? longest : 0;
}
