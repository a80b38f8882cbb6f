/* transpose: the axes in another order, in memory of their own. */
#include <stddef.h>

#include "engine/copy.h"
#include "ops/docs.h"
#include "ops/operation.h"

/* Which axis of the array is axis i of the result: the reverse order where none was asked for. */
static int source_of(const gk_call *call, const gk_array *a, int i) {
    const gk_order *order = call->parameters;
    return order->given ? order->axis[i] : a->ndim - 1 - i;
}

/* The same where the last two axes change places. */
static int source_in_stack(const gk_array *a, int i) {
    return i < a->ndim - 2 ? i : 2 * a->ndim - 3 - i;
}

static void view_through(const gk_operation *operation, const gk_call *call, const gk_array *a,
                         gk_array *view) {
    bool stack = operation == gk_op_matrix_transpose;
    gk_copy_view(view, a);
    for (int i = 0; i < a->ndim; i++) {
        int axis = stack ? source_in_stack(a, i) : source_of(call, a, i);
        view->shape[i] = a->shape[axis];
        view->strides[i] = a->strides[axis];
    }
}

static gk_status infer_transpose(const gk_operation *operation, gk_call *call,
                                 const gk_array *operands, gk_array *result) {
    if (operation == gk_op_matrix_transpose && operands[0].ndim < 2)
        return gk_fail(&call->error, GK_VALUE_ERROR,
                       "matrix_transpose: a has shape %s; it takes 2 dimensions or more",
                       gk_shape_text(&operands[0]).text);
    gk_array view;
    view_through(operation, call, &operands[0], &view);
    gk_describe_like(result, &view);
    return GK_OK;
}

static gk_status run_transpose(const gk_operation *operation, gk_call *call,
                               const gk_array *operands, gk_array *result) {
    gk_array view;
    view_through(operation, call, &operands[0], &view);
    return gk_copy_transposed(call, result, &view);
}

static const char *const names[] = {"a"};
static const gk_parameter axes[] = {{"axes", GK_ORDER, 0}, {"out", GK_OUT, 0}, {0}};
static const gk_parameter no_axes[] = {{"out", GK_OUT, 0}, {0}};

#define GK_TRANSPOSE(name_, parameters_, bytes_, ...)                                              \
    static const gk_operation operation_##name_ = {.name = #name_,                                 \
                                                   .op = GK_OP_transpose,                          \
                                                   .doc = #name_ __VA_ARGS__,                      \
                                                   .operand_count = 1,                             \
                                                   .operands = names,                              \
                                                   .parameters = parameters_,                      \
                                                   .parameter_bytes = bytes_,                      \
                                                   .strided = true,                                \
                                                   .infer = infer_transpose,                       \
                                                   .run = run_transpose};                          \
    const gk_operation *const gk_op_##name_ = &operation_##name_;

GK_TRANSPOSE(
    transpose, axes, sizeof(gk_order),
    "($module, a, /, axes=None, out=None, *, variant=None, stream=None)\n--\n\n"
    "The array with its axes in another order, in memory of its own, as "
    "numpy.transpose.\n\n"
    "a: one of " GK_OPERANDS_DOC ".\n"
    "axes: a permutation of the axes: axis i of the result is axis axes[i] of a. None: the "
    "reverse\n    order. Where the last axis stays the last, no tiles are needed, and "
    "variant has no effect.\n" GK_OPTIONS_DOC GK_RAISES_DOC)
GK_TRANSPOSE(matrix_transpose, no_axes, 0,
             "($module, a, /, out=None, *, variant=None, stream=None)\n--\n\n"
             "A stack of matrices, each transposed, in memory of its own: the last two axes "
             "swapped.\n\n"
             "a: one of " GK_OPERANDS_DOC ", of 2 axes or more.\n" GK_OPTIONS_DOC GK_RAISES_DOC)
