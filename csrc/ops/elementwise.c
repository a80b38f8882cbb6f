/* The elementwise operations of cuda/elementwise/operations.h: one way for all of them, from shapes
   to kernels. */
#include "ops/elementwise.h"

#include <stdio.h>
#include <string.h>

#include "base/pack.h"
#include "engine/copy.h"
#include "engine/nest.h"
#include "engine/transfer.h"
#include "ops/docs.h"
#include "ops/elementwise_strided.h"
#include "ops/elementwise_turned.h"

enum {
    TURNED = 1 << 20,  /* elements of an operand that is worth a copy in the order of the result, */
    WIDEST_TURNED = 4, /* of so many bytes at most, */
    FAR = 256,         /* if there are so many others between neighbours, */
    LONG_RUN = 32,     /* of which so many are side by side, */
    SHORT_RUN = 8,     /* or so many of more bytes than this: */
    MUCH_TURNED = 8 << 20,
    NEAR = 1 << 12,         /* where those of a sector are not within so many, it is read again, */
    MANY_TIMES = 4,         /* and of an operand of more than this a copy costs less; */
    MOST_TURNED = 32 << 20, /* bytes */
    NEAR_OF_SMALL = 1 << 9, /* the same of bytes and halves, of more than MUCH_TURNED; */
    SHORT_ROW = 200,        /* and of bytes in shorter rows, if these are no whole words */
};

typedef struct elementwise_operation {
    gk_operation base;
    bool boolean;   /* the result is, whatever the operands are */
    bool exchanged; /* its kernels take the second operand first */
} elementwise_operation;

static gk_status refuse_shapes(gk_call *call, const gk_array *operands, int count) {
    gk_text shapes = {""};
    size_t used = 0;
    for (int k = 0; k < count && used < sizeof shapes.text; k++)
        used += (size_t)snprintf(shapes.text + used, sizeof shapes.text - used, " %s",
                                 gk_short_shape_text(&operands[k]).text);
    return gk_fail(&call->error, GK_VALUE_ERROR,
                   "%s: operands could not be broadcast together with shapes%s", call->operation,
                   shapes.text);
}

static gk_status infer_broadcast(const gk_operation *operation, gk_call *call,
                                 const gk_array *operands, gk_array *result) {
    int count = operation->operand_count;
    result->dtype = operands[0].dtype;
    if (((const elementwise_operation *)operation)->boolean)
        result->dtype = GK_boolean;
    for (int k = 0; k < count; k++)
        result->ndim = operands[k].ndim > result->ndim ? operands[k].ndim : result->ndim;
    for (int i = 1; i <= result->ndim; i++) {
        int64_t *length = &result->shape[result->ndim - i];
        *length = 1;
        for (int k = 0; k < count; k++) {
            const gk_array *operand = &operands[k];
            int64_t its = i <= operand->ndim ? operand->shape[operand->ndim - i] : 1;
            if (its != 1 && *length != 1 && its != *length)
                return refuse_shapes(call, operands, count);
            *length = its != 1 ? its : *length;
        }
    }
    return GK_OK;
}

static bool is_number(const gk_array *operand) {
    return operand->place == GK_HOST;
}

/* What an operand is to a kernel without a layout: `repeated`, side by side, or neither. */
static bool take_plainly(gk_work *made, int k, const gk_array *operand, const gk_array *result) {
    bool repeated = gk_count(operand) == 1;
    if (is_number(operand))
        gk_pack(&made->terms.value[k], operand, 0, 1);
    else
        made->terms.data[k] = operand->data;
    made->terms.repeated |= (uint32_t)repeated << k;
    return repeated || (gk_same_shape(operand, result) && gk_is_contiguous(operand));
}

/* contiguous ----------------------------------------------------------------------------------- */

/* What has to be a multiple of a row's alignment: the operands' addresses, and the result's in
   proportion, since it may have fewer bytes. */
static uintptr_t contiguous_bits(const gk_work *ready, const gk_array *result) {
    size_t ratio = gk_dtype_size(ready->dtype) / gk_dtype_size(result->dtype);
    uintptr_t bits = (uintptr_t)result->data * ratio;
    for (int k = 0; k < ready->count; k++)
        if (!(ready->terms.repeated >> k & 1))
            bits |= (uintptr_t)ready->terms.data[k];
    return bits;
}

/* The row for contiguous arrays, or NULL: none of so weak an alignment, or none that takes numbers.
 */
static const gk_row *choose_contiguous(gk_call *call, const gk_work *ready,
                                       const gk_array *result) {
    const gk_wish wish = {.op = ready->op,
                          .dtype = ready->dtype,
                          .address_bits = contiguous_bits(ready, result),
                          .limit = call->wanted};
    const gk_row *row = gk_row_suiting(&wish, call->backend);
    return row && row->takes == GK_TAKES_SIZES && ready->terms.repeated ? NULL : row;
}

static gk_status launch_contiguous(gk_call *call, const gk_work *ready, const gk_row *row,
                                   const gk_array *result) {
    void *out = result->data;
    size_t count = gk_count(result);
    gk_terms terms = ready->terms;
    void *with_terms[] = {&out, &terms, &count};
    void *with_sizes[] = {&out, &terms.data[0], NULL, NULL, NULL};
    for (int k = 1; k < ready->count; k++)
        with_sizes[k + 1] = &terms.data[k];
    with_sizes[ready->count + 1] = &count;
    call->ran = row;
    return gk_call_launch(call, row, gk_blocks(count, row->tile_columns),
                          row->takes == GK_TAKES_TERMS ? with_terms : with_sizes);
}

/* the choice between them ---------------------------------------------------------------------- */

static void view_operands(gk_work *made, const gk_array *operands, const gk_array *result) {
    for (int k = 0; k < made->count; k++) {
        gk_broadcast_view(&operands[k], result, &made->views[k]);
        if (is_number(&operands[k])) {
            made->views[k].data = NULL;
            memset(made->views[k].strides, 0, (size_t)result->ndim * sizeof(int64_t));
        }
    }
}

/* The result and the operands in its shape; their views are the work's. */
static void nest_operands(gk_work *made, const gk_array *operands, const gk_array *result,
                          gk_nest *nest) {
    const gk_array *arrays[GK_LAYOUT_ARRAYS] = {result};
    view_operands(made, operands, result);
    for (int k = 0; k < made->count; k++)
        arrays[k + 1] = &made->views[k];
    gk_nest_make(nest, arrays, made->count + 1);
}

/* Operand k as a contiguous array of the result's shape. */
static gk_status pack_operand(gk_call *call, gk_work *made, int k, const gk_array *operand) {
    gk_array packed, number;
    gk_copy_view(&number, &made->views[k]);
    gk_status status = GK_OK;
    if (is_number(operand)) {
        void *there = NULL;
        status = gk_call_temporary(call, gk_dtype_size(operand->dtype), &there);
        if (status == GK_OK)
            status =
                gk_call_copy_in(call, there, &made->terms.value[k], gk_dtype_size(operand->dtype));
        number.data = there;
    }
    if (status == GK_OK)
        status = gk_stage_packed(call, &number, &packed);
    made->terms.data[k] = packed.data;
    return status;
}

/* The variant that was asked for takes contiguous arrays alone: copies of those that are not. Where
   the others are not aligned for it either, strided kernels take them all as they are. */
static gk_status run_packed(gk_call *call, gk_work *made, const gk_array *operands,
                            gk_array *result, gk_nest *nest) {
    gk_array target;
    gk_status status = GK_OK;
    bool numbers = call->wanted->takes == GK_TAKES_TERMS;
    for (int k = 0; k < made->count && status == GK_OK; k++) {
        made->terms.repeated &= ~((uint32_t)1 << k);
        bool ready = take_plainly(made, k, &operands[k], result);
        if (ready && (numbers || !(made->terms.repeated >> k & 1)))
            continue;
        made->terms.repeated &= ~((uint32_t)1 << k);
        status = pack_operand(call, made, k, &operands[k]);
    }
    gk_copy_view(&target, result);
    if (status == GK_OK && !gk_is_contiguous(result)) {
        gk_make_contiguous(&target);
        status = gk_call_temporary(call, gk_bytes(result), &target.data);
    }
    const gk_row *row = status == GK_OK ? choose_contiguous(call, made, &target) : NULL;
    if (status != GK_OK || !row)
        return status == GK_OK ? gk_launch_strided(call, made, nest) : status;
    status = launch_contiguous(call, made, row, &target);
    bool copied = status == GK_OK && target.data != result->data;
    return copied ? gk_copy_strided(call, result, &target) : status;
}

/* The axis along which the next element is so many bytes away, or -1. */
static int axis_of_stride(const gk_array *operand, int64_t stride) {
    int axis = operand->ndim - 1;
    while (axis >= 0 && (operand->shape[axis] == 1 || operand->strides[axis] != stride))
        axis--;
    return axis;
}

/* How many elements of the operand's own order lie from one along an axis to the next. */
static int64_t apart_along(const gk_array *operand, int axis) {
    int64_t apart = 1;
    for (int i = axis + 1; i < operand->ndim; i++)
        apart *= operand->shape[i];
    return apart;
}

/* How many elements from one side by side in memory are far from one another in the operand's own
   order. */
static int64_t far_run(const gk_array *operand) {
    const int64_t size = (int64_t)gk_dtype_size(operand->dtype);
    int64_t run = 1;
    for (int axis; (axis = axis_of_stride(operand, run * size)) >= 0;) {
        if (apart_along(operand, axis) < FAR)
            break;
        run *= operand->shape[axis];
    }
    return run;
}

/* How many times more elements lie in a sector than are within `close` of one another in the
   operand's own order: so many times it is read. Of an axis that a sector has less than two of
   these are no more. */
static double times_read(const gk_array *operand, int64_t close) {
    const int64_t size = (int64_t)gk_dtype_size(operand->dtype), whole = GK_SECTOR / size;
    int64_t run = 1;
    double near = 1;
    for (int axis; run < whole && (axis = axis_of_stride(operand, run * size)) >= 0;) {
        const double inside = (double)whole / (double)run;
        if (apart_along(operand, axis) < close)
            near *= inside < 2 ? inside : (double)operand->shape[axis];
        run *= operand->shape[axis];
    }
    return (double)(run < whole ? run : whole) / (near < (double)whole ? near : (double)whole);
}

/* Whether the operand is single bytes in short rows that are no whole words, and lie side by side
   along another axis: a thread finds, loads and stores each of them by itself. */
static bool is_dear(const gk_array *operand) {
    int axis = operand->ndim - 1;
    while (axis > 0 && operand->shape[axis] == 1)
        axis--;
    if (gk_dtype_size(operand->dtype) != 1 || gk_bytes(operand) < MUCH_TURNED ||
        operand->strides[axis] == 1 || axis_of_stride(operand, 1) < 0)
        return false;
    int64_t row = operand->shape[axis];
    for (int i = axis - 1; i >= 0 && operand->strides[i] == row * operand->strides[axis]; i--)
        row *= operand->shape[i];
    return row % GK_WORD != 0 && row < SHORT_ROW;
}

/* Whether what memory moves for each element of a large array is of use to others long after, or
   each of its elements is dear. */
static bool is_scattered(const gk_array *operand) {
    const size_t bytes = gk_bytes(operand), size = gk_dtype_size(operand->dtype);
    const bool small = size < GK_WORD;
    if (gk_count(operand) < TURNED)
        return false;
    if (size <= WIDEST_TURNED && far_run(operand) >= (bytes < MUCH_TURNED ? LONG_RUN : SHORT_RUN))
        return true;
    if (is_dear(operand))
        return true;
    return bytes >= (small ? MUCH_TURNED : MOST_TURNED) &&
           times_read(operand, small ? NEAR_OF_SMALL : NEAR) >= MANY_TIMES;
}

/* Copies, in the order of a contiguous result, of those that are `scattered` (bit k of operand k):
   kernels of transposes move that at the rate of memory. Where there is no memory for one the
   operand is taken as it lies. */
static gk_status put_in_order(gk_call *call, const gk_array *operands, int count,
                              uint32_t scattered, gk_array *ordered) {
    for (int k = 0; k < count; k++) {
        gk_copy_view(&ordered[k], &operands[k]);
        if (!(scattered >> k & 1))
            continue;
        gk_status status = gk_stage_packed(call, &operands[k], &ordered[k]);
        if (status == GK_MEMORY_ERROR)
            gk_copy_view(&ordered[k], &operands[k]);
        else if (status != GK_OK)
            return status;
    }
    return GK_OK;
}

/* Its views, which are large, are made where they are needed. */
static void begin_work(gk_work *made, gk_op op, const gk_array *operands, int count) {
    made->op = op;
    made->count = count;
    made->dtype = operands[0].dtype;
    made->terms = (gk_terms){.repeated = 0};
}

static gk_status run_as_they_lie(gk_call *call, gk_op op, const gk_array *operands, int count,
                                 gk_array *result) {
    gk_work made;
    begin_work(&made, op, operands, count);
    bool strided = call->wanted && call->wanted->takes == GK_TAKES_LAYOUT;
    bool plain = gk_is_contiguous(result) && !strided;
    for (int k = 0; k < count; k++)
        plain = take_plainly(&made, k, &operands[k], result) && plain;
    if (gk_count(result) == 0)
        return GK_OK;
    const gk_row *row = plain ? choose_contiguous(call, &made, result) : NULL;
    if (row && !gk_is_better_strided(call, row, result))
        return launch_contiguous(call, &made, row, result);
    gk_nest nest;
    nest_operands(&made, operands, result, &nest);
    bool run = gk_nest_is_run(&nest) && !strided;
    for (int k = 0; k < count && run && !plain; k++)
        if (nest.ndim > 0 && nest.stride[k + 1][0] == 0)
            made.terms.repeated |= (uint32_t)1 << k;
    row = run && !plain ? choose_contiguous(call, &made, result) : NULL;
    if (row && !gk_is_better_strided(call, row, result))
        return launch_contiguous(call, &made, row, result);
    if (call->wanted && !strided)
        return run_packed(call, &made, operands, result, &nest);
    return gk_launch_strided(call, &made, &nest);
}

/* Those of the operands that tiles read as they lie (bit k of operand k). */
static uint32_t served_by_tiles(gk_call *call, gk_op op, const gk_array *operands, int count,
                                const gk_array *result) {
    gk_work made;
    gk_nest nest;
    uint32_t served = 0;
    begin_work(&made, op, operands, count);
    nest_operands(&made, operands, result, &nest);
    return gk_are_turned(call, &made, &nest, &served) ? served : 0;
}

gk_status gk_run_elementwise(gk_call *call, gk_op op, const gk_array *operands, int count,
                             gk_array *result) {
    gk_array ordered[GK_MAX_OPERANDS];
    uint32_t scattered = 0;
    for (int k = 0; k < count; k++)
        scattered |= (uint32_t)is_scattered(&operands[k]) << k;
    if (!scattered || call->wanted || gk_count(result) == 0 || !gk_is_contiguous(result))
        return run_as_they_lie(call, op, operands, count, result);
    scattered &= ~served_by_tiles(call, op, operands, count, result);
    gk_status status = put_in_order(call, operands, count, scattered, ordered);
    return status == GK_OK ? run_as_they_lie(call, op, ordered, count, result) : status;
}

/* The operands as its kernels take them: in `exchanged` where that is the other way round. */
static const gk_array *for_kernels(const gk_operation *operation, const gk_array *operands,
                                   gk_array *exchanged) {
    if (!((const elementwise_operation *)operation)->exchanged)
        return operands;
    gk_copy_view(&exchanged[0], &operands[1]);
    gk_copy_view(&exchanged[1], &operands[0]);
    return exchanged;
}

static gk_status run_elementwise(const gk_operation *operation, gk_call *call,
                                 const gk_array *operands, gk_array *result) {
    gk_array exchanged[2];
    operands = for_kernels(operation, operands, exchanged);
    return gk_run_elementwise(call, operation->op, operands, operation->operand_count, result);
}

static gk_status flow_elementwise(const gk_operation *operation, gk_call *call,
                                  const gk_array *operands, const gk_array *result) {
    gk_array exchanged[2];
    operands = for_kernels(operation, operands, exchanged);
    return gk_flow_elementwise(call, operation->op, operands, operation->operand_count, result);
}

static const char *const names_1[] = {"a"};
static const char *const names_2[] = {"a", "b"};
static const char *const names_3[] = {"a", "x", "y"};
static const gk_parameter parameters[] = {{"out", GK_OUT, 0}, {0}};

#define GK_IS_same    false
#define GK_IS_boolean true
#define GK_DEFINE_BY(name_, kernels, exchanged_, operands_, dtypes, result_, what)                 \
    static const elementwise_operation name_##_operation = {                                       \
        .base = {.name = #name_,                                                                   \
                 .op = GK_OP_##kernels,                                                            \
                 .doc = GK_ELEMENTWISE_DOC(name_, operands_, dtypes, result_, what),               \
                 .operand_count = operands_,                                                       \
                 .operands = names_##operands_,                                                    \
                 .parameters = parameters,                                                         \
                 .elementwise = true,                                                              \
                 .strided = true,                                                                  \
                 .infer = infer_broadcast,                                                         \
                 .run = run_elementwise,                                                           \
                 .flow = flow_elementwise,                                                         \
                 .mapped = true},                                                                  \
        .boolean = GK_IS_##result_,                                                                \
        .exchanged = exchanged_};                                                                  \
    const gk_operation *const gk_op_##name_ = &name_##_operation.base;
#define GK_DEFINE(name, operands, dtypes, result, expression, what)                                \
    GK_DEFINE_BY(name, name, false, operands, dtypes, result, what)
#define GK_DEFINE_EXCHANGED(name, of, what) GK_DEFINE_BY(name, of, true, 2, ordered, boolean, what)
GK_ELEMENTWISE(GK_DEFINE)
GK_EXCHANGED(GK_DEFINE_EXCHANGED)
