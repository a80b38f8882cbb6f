#include "ops/reduce_reordered.h"

#include "engine/copy.h"
#include "ops/reduce_shape.h"

bool gk_is_turned(const gk_array *array) {
    int before = -1;
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] > 1) {
            if (before >= 0 && gk_lies_farther(array, i, before))
                return true;
            before = i;
        }
    return false;
}

gk_status gk_reorder(gk_call *call, const gk_array *a, uint64_t reduced, const int *order,
                     const gk_array *result, gk_reordered *made) {
    int64_t strides[GK_MAX_DIMENSIONS], stride = (int64_t)gk_dtype_size(result->dtype);
    *made = (gk_reordered){.array = *a, .wanted = *result};
    for (int i = a->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= gk_is_reduced(reduced, i) ? 1 : a->shape[i];
    }
    made->array.ndim = made->wanted.ndim = 0;
    for (int i = 0; i < a->ndim; i++) {
        gk_append_axis(&made->array, a->shape[order[i]], a->strides[order[i]]);
        if (gk_is_reduced(reduced, order[i]))
            made->axes |= (uint64_t)1 << i;
        else
            gk_append_axis(&made->wanted, a->shape[order[i]], strides[order[i]]);
    }
    made->found = made->wanted;
    if (gk_is_contiguous(&made->wanted))
        return GK_OK;
    gk_make_contiguous(&made->found);
    return gk_call_temporary(call, gk_bytes(&made->found), &made->found.data);
}

gk_status gk_put_back(gk_call *call, const gk_reordered *of) {
    bool there = of->found.data == of->wanted.data;
    return there ? GK_OK : gk_copy_strided(call, &of->wanted, &of->found);
}
