/* transpose: the axes in another order, in memory of their own. */
#include "engine/copy.h"
#include "ops/operation.h"

/* Which axis of the array is axis i of the result: the reverse order where none was asked for. */
static int source_of(const gk_call *call, const gk_array *a, int i) {
    return call->axes ? call->axes[i] : a->ndim - 1 - i;
}

static gk_status infer_transpose(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    result->dtype = a->dtype;
    result->ndim = a->ndim;
    for (int i = 0; i < a->ndim; i++)
        result->shape[i] = a->shape[source_of(call, a, i)];
    return GK_OK;
}

static gk_status run_transpose(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    gk_array view;
    gk_copy_view(&view, a);
    for (int i = 0; i < a->ndim; i++) {
        view.shape[i] = a->shape[source_of(call, a, i)];
        view.strides[i] = a->strides[source_of(call, a, i)];
    }
    return gk_copy_transposed(call, result, &view);
}

static const char *const names[] = {"a"};

const gk_operation gk_op_transpose = {.name = "transpose",
                                      .operand_count = 1,
                                      .operands = names,
                                      .strided = true,
                                      .infer = infer_transpose,
                                      .run = run_transpose};
