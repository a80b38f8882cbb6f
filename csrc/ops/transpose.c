/* transpose: the axes in another order, in memory of their own. */
#include <stddef.h>

#include "engine/box_sides.h"
#include "engine/copy.h"
#include "engine/transfer.h"
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

/* from the host, box by box ----------------------------------------------------------------------
 */

enum {
    FLOW_BYTES = 1 << 20, /* of both arrays, from which boxes are worth it */
    BOXES = 16,
    LEAST_BOX = 1 << 20, /* bytes */
};

/* Boxes that are runs on both sides: packed in the order in which they lie on the host, turned on
   the device, and sent to where they belong. */
typedef struct boxed {
    gk_call *call;
    gk_nest nest;
    gk_array whole[GK_COPY_ARRAYS]; /* in the nest's axes */
    int order[GK_COPY_ARRAYS][GK_MAX_DIMENSIONS];
    int64_t side[GK_MAX_DIMENSIONS];
} boxed;

/* The axes of one of the arrays as the nest has them. */
static gk_array whole_of(const gk_nest *nest, int number, const gk_array *of) {
    gk_array whole = {.dtype = of->dtype, .ndim = nest->ndim, .swapped = of->swapped};
    whole.data = (void *)nest->data[number];
    whole.place = GK_HOST;
    for (int i = 0; i < nest->ndim; i++) {
        whole.shape[i] = nest->shape[i];
        whole.strides[i] = nest->stride[number][i];
    }
    return whole;
}

static gk_array ordered(const gk_array *array, const int *order) {
    gk_array found;
    gk_copy_view(&found, array);
    for (int i = 0; i < array->ndim; i++) {
        found.shape[i] = array->shape[order[i]];
        found.strides[i] = array->strides[order[i]];
    }
    return found;
}

static void view_box(const void *context, size_t number, gk_array *operands, gk_array *result) {
    const boxed *of = context;
    gk_array box[GK_COPY_ARRAYS];
    for (int k = 0; k < GK_COPY_ARRAYS; k++)
        gk_copy_view(&box[k], &of->whole[k]);
    for (int i = of->nest.ndim - 1; i >= 0; i--) {
        int64_t along = gk_parts_of(of->nest.shape[i], of->side[i]);
        int64_t begin = (int64_t)(number % (size_t)along) * of->side[i];
        int64_t left = of->nest.shape[i] - begin;
        number /= (size_t)along;
        for (int k = 0; k < GK_COPY_ARRAYS; k++) {
            box[k].data = (char *)box[k].data + begin * box[k].strides[i];
            box[k].shape[i] = left < of->side[i] ? left : of->side[i];
        }
    }
    operands[0] = ordered(&box[GK_FROM], of->order[GK_FROM]);
    *result = box[GK_TO];
}

static gk_status turn_box(void *context, gk_stream stream, const gk_array *operands,
                          gk_array *result, size_t number, gk_error *error) {
    const boxed *of = context;
    gk_call call = gk_call_part(of->call, stream);
    gk_array turned;
    (void)number;
    call.phases = NULL;
    gk_copy_view(&turned, &operands[0]);
    for (int i = 0; i < turned.ndim; i++) {
        turned.shape[of->order[GK_FROM][i]] = operands[0].shape[i];
        turned.strides[of->order[GK_FROM][i]] = operands[0].strides[i];
    }
    gk_status status = gk_copy_transposed(&call, result, &turned);
    of->call->ran = call.ran; /* a profile names it */
    gk_call_end(&call);
    if (status != GK_OK)
        *error = call.error;
    return status;
}

/* Boxes of `most` bytes, and less of what is little: some are under way while others are packed. */
static void cut(boxed *of, gk_flow *flow, size_t most) {
    const size_t share = gk_bytes(&flow->result) / BOXES,
                 least = share < LEAST_BOX ? LEAST_BOX : share;
    const int64_t size = (int64_t)gk_dtype_size(flow->result.dtype);
    gk_travelling_sides(&of->nest, size, (int64_t)(least < most ? least : most), of->side,
                        of->order);
    flow->parts = 1;
    for (int i = 0; i < of->nest.ndim; i++)
        flow->parts *= (size_t)gk_parts_of(of->nest.shape[i], of->side[i]);
}

static gk_status flow_transpose(const gk_operation *operation, gk_call *call,
                                const gk_array *operands, const gk_array *result) {
    boxed of = {.call = call};
    gk_array view;
    view_through(operation, call, &operands[0], &view);
    gk_nest_make(&of.nest, (const gk_array *[]){result, &view}, GK_COPY_ARRAYS);
    of.whole[GK_TO] = whole_of(&of.nest, GK_TO, result);
    of.whole[GK_FROM] = whole_of(&of.nest, GK_FROM, &view);
    gk_flow flow = {.part = view_box,
                    .operand_count = 1,
                    .operands = {of.whole[GK_FROM]},
                    .work = turn_box,
                    .context = &of,
                    .has_result = true,
                    .result = of.whole[GK_TO]};
    size_t most;
    flow.chunk = GK_FLOW_CHUNK;
    do { /* lines of smaller boxes may not be worth a copy each, and then boxes are smaller still */
        most = flow.chunk;
        cut(&of, &flow, most);
        gk_call_limit(call, &flow);
    } while (flow.chunk < most);
    return gk_call_flow(call, &flow);
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
                                                   .run = run_transpose,                           \
                                                   .flow = flow_transpose,                         \
                                                   .flow_bytes = FLOW_BYTES};                      \
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
