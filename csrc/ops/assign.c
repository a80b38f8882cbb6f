#include "ops/assign.h"

#include <string.h>

#include "base/pack.h"
#include "engine/copy.h"
#include "engine/matrix_axes.h"
#include "engine/nest.h"
#include "engine/transfer.h"
#include "ops/operation.h"

enum {
    TURNED = 1 << 20, /* elements, of which it pays to turn them by themselves, */
    LEAST_TURNED = 8, /* where so many lie side by side, */
    LEAST_BYTES = 2,  /* or so many bytes, which are turned soonest */
};

/* bool, unsigned, signed, float: each holds the kinds before it. */
static int rank_of(gk_dtype dtype) {
    static const int ranks[] = {
        [GK_BOOLEAN] = 0, [GK_UNSIGNED] = 1, [GK_SIGNED] = 2, [GK_REAL] = 3, [GK_HALF] = 3};
    return ranks[gk_dtype_kind(dtype)];
}

/* Without leading axes of length 1 that the target does not have. */
static void drop_leading(const gk_array *source, int ndim, gk_array *view) {
    int dropped = 0;
    while (source->ndim - dropped > ndim && source->shape[dropped] == 1)
        dropped++;
    gk_copy_view(view, source);
    view->ndim = source->ndim - dropped;
    for (int i = 0; i < view->ndim; i++) {
        view->shape[i] = source->shape[i + dropped];
        view->strides[i] = source->strides[i + dropped];
    }
}

static bool broadcasts(const gk_array *source, const gk_array *target) {
    int missing = target->ndim - source->ndim;
    for (int i = 0; i < source->ndim && missing >= 0; i++)
        if (source->shape[i] != 1 && source->shape[i] != target->shape[i + missing])
            return false;
    return missing >= 0;
}

gk_status gk_assign_check(gk_call *call, const gk_array *target, const gk_array *source) {
    gk_array view;
    drop_leading(source, target->ndim, &view);
    if (!broadcasts(&view, target))
        return gk_fail(&call->error, GK_VALUE_ERROR,
                       "%s: a value of shape %s does not broadcast to the shape %s",
                       call->operation, gk_shape_text(source).text, gk_shape_text(target).text);
    if (rank_of(source->dtype) > rank_of(target->dtype))
        return gk_fail(&call->error, GK_TYPE_ERROR,
                       "%s: a value of dtype %s does not go into an array of %s without a loss of "
                       "its kind; convert it with .astype(...)",
                       call->operation, gk_dtype_name(source->dtype), gk_dtype_name(target->dtype));
    return GK_OK;
}

/* conversion ----------------------------------------------------------------------------------- */

typedef struct conversion {
    const gk_row *run, *row, *lone;
    uint64_t number; /* what goes everywhere where there is no array */
    int32_t to, from;
} conversion;

/* Whether a side of a piece is one run of whole vectors, or a number. */
static bool is_run(const gk_nest *piece, int side) {
    const int64_t size = piece->size[side];
    return (side == 1 && piece->data[side] == 0) ||
           (piece->stride[side][0] == size &&
            piece->data[side] % (uintptr_t)(GK_CONVERT_WIDTH * size) == 0);
}

/* Vectors, and what is left behind the last one as a piece that is far smaller. */
static gk_status launch_run(gk_call *call, const gk_nest *piece, const conversion *how,
                            gk_nest *rest) {
    uintptr_t to = piece->data[0], from = piece->data[1];
    uint64_t number = how->number;
    int32_t to_dtype = how->to, from_dtype = how->from;
    size_t vectors = (size_t)piece->shape[0] / GK_CONVERT_WIDTH;
    *rest = *piece;
    rest->shape[0] = piece->shape[0] % GK_CONVERT_WIDTH;
    for (int k = 0; k < piece->arrays; k++)
        if (piece->data[k])
            rest->data[k] +=
                (uintptr_t)(piece->shape[0] - rest->shape[0]) * (uintptr_t)piece->size[k];
    void *arguments[] = {&to, &from, &number, &vectors, &to_dtype, &from_dtype};
    const size_t elements = vectors * GK_CONVERT_WIDTH;
    return gk_call_launch(call, how->run, gk_blocks(elements, how->run->tile_columns), arguments);
}

static gk_status launch_lone(gk_call *call, gk_compact *compact, const conversion *how,
                             bool is_number) {
    compact->dtype[0] = (uint8_t)how->to;
    compact->dtype[1] = (uint8_t)how->from;
    if (is_number)
        gk_compact_number(compact, 1, how->number);
    return gk_launch_compact(call, how->lone, compact, GK_LONE_ELEMENTS);
}

static gk_status launch_conversion(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                                   void *context) {
    conversion *how = context;
    uintptr_t to = piece->data[0], from = piece->data[1];
    const gk_row *row = how->row;
    gk_compact compact;
    if (gk_nest_is_lone(piece, row->tile_columns / row->threads) &&
        gk_nest_compact(piece, &compact))
        return launch_lone(call, &compact, how, from == 0);
    if (piece->ndim == 1 && is_run(piece, 0) && is_run(piece, 1)) {
        gk_nest rest;
        gk_status status = launch_run(call, piece, how, &rest);
        return status != GK_OK || rest.shape[0] == 0
                   ? status
                   : gk_nest_run(call, &rest, launch_conversion, how);
    }
    gk_units units = gk_nest_units(piece, layout, row->tile_columns / row->threads);
    void *arguments[] = {&to, &from, &how->number, &units, &how->to, &how->from};
    return gk_call_launch(call, row, gk_blocks(gk_unit_threads(&units), row->threads), arguments);
}

static gk_status choose_conversion(gk_call *call, gk_op op, bool strided, const gk_row **row) {
    const gk_wish wish = {.op = op, .dtype = GK_bits8, .strided = strided};
    return gk_row_chosen(&wish, call->backend, row, &call->error);
}

/* Element by element, where they lie. */
static gk_status convert_elements(gk_call *call, const gk_nest *nest, conversion *how) {
    gk_status status = choose_conversion(call, GK_OP_convert, false, &how->run);
    if (status == GK_OK)
        status = choose_conversion(call, GK_OP_convert, true, &how->row);
    if (status == GK_OK)
        status = choose_conversion(call, GK_OP_convert + GK_COMPACT, true, &how->lone);
    return status == GK_OK ? gk_nest_run(call, nest, launch_conversion, how) : status;
}

/* Whether neighbours lie along another axis than those of the target, and are so many that
   transposes are sooner through with them than threads that find each. */
static bool is_turned(const gk_nest *nest, const gk_array *from) {
    if (nest->data[1] == 0 || nest->ndim < 2 || gk_nest_count(nest) < TURNED ||
        gk_repeats_elements(from))
        return false;
    const int axis = gk_nearest_axis(nest, 1);
    const int64_t least = nest->size[1] == 1 ? LEAST_BYTES : LEAST_TURNED;
    return axis != nest->ndim - 1 && nest->shape[axis] >= least;
}

/* Converted as they lie and turned after that, or the other way round, since there is less to be
   turned of smaller elements. */
static gk_status convert_turned(gk_call *call, const gk_array *to, const gk_array *from,
                                conversion *how) {
    const bool converted_first = gk_dtype_size(from->dtype) > gk_dtype_size(to->dtype);
    gk_array between;
    gk_nest lying;
    int order[GK_MAX_DIMENSIONS];
    gk_copy_view(&between, from);
    between.dtype = converted_first ? to->dtype : from->dtype;
    gk_order_axes(converted_first ? from : to, order);
    gk_make_run(&between, order);
    gk_status status = gk_call_temporary(call, gk_bytes(&between), &between.data);
    if (status == GK_OK && !converted_first)
        status = gk_copy_strided(call, &between, from);
    if (status != GK_OK)
        return status;
    const gk_array *const sides[] = {converted_first ? &between : to,
                                     converted_first ? from : &between};
    gk_nest_make(&lying, sides, 2);
    status = convert_elements(call, &lying, how);
    return status == GK_OK && converted_first ? gk_copy_strided(call, to, &between) : status;
}

gk_status gk_assign_by_kernel(gk_call *call, const gk_array *to, const gk_array *from) {
    conversion how = {.to = (int32_t)to->dtype, .from = (int32_t)from->dtype};
    gk_array number;
    gk_nest nest;
    if (from->place == GK_HOST) {
        gk_pack(&how.number, from, 0, 1);
        gk_broadcast_view(from, to, &number);
        number.data = NULL;
        memset(number.strides, 0, sizeof number.strides);
        from = &number;
    }
    gk_nest_make(&nest, (const gk_array *[]){to, from}, 2);
    gk_status status = GK_MEMORY_ERROR; /* for what lies between */
    if (is_turned(&nest, from))
        status = convert_turned(call, to, from, &how);
    return status == GK_MEMORY_ERROR ? convert_elements(call, &nest, &how) : status;
}

/* assignment ----------------------------------------------------------------------------------- */

/* From what is on the device, or a number of the host's, to where nothing else lies. */
static gk_status write_elements(gk_call *call, const gk_array *target, const gk_array *source) {
    gk_array view;
    if (source->place == GK_HOST)
        return gk_assign_by_kernel(call, target, source);
    if (source->data == target->data) /* nothing else lies there, so it is the target itself */
        return GK_OK;
    gk_broadcast_view(source, target, &view);
    return source->dtype == target->dtype ? gk_copy_strided(call, target, &view)
                                          : gk_assign_by_kernel(call, target, &view);
}

static gk_status stage_and_write(gk_call *call, const gk_array *target, const gk_array *source) {
    gk_array staged, room;
    bool number = source->place == GK_HOST && gk_count(source) == 1;
    gk_status status = GK_OK;
    if (number)
        gk_copy_view(&staged, source);
    else
        status = gk_stage_view(call, source, &staged);
    if (status == GK_OK)
        status = gk_stage_result(call, target, &staged, number ? 0 : 1, true, true, &room);
    if (status == GK_OK)
        status = write_elements(call, &room, &staged);
    return status == GK_OK ? gk_deliver_result(call, &room, target) : status;
}

gk_status gk_assign(gk_call *call, const gk_array *target, const gk_array *source) {
    gk_array view;
    if (gk_count(target) == 0)
        return GK_OK;
    drop_leading(source, target->ndim, &view);
    gk_status status = stage_and_write(call, target, &view);
    gk_error first = call->error;
    gk_status joined = gk_call_rejoin(call, target);
    if (joined == GK_OK)
        joined = gk_call_rejoin(call, &view);
    if (status == GK_OK)
        return joined;
    call->error = first;
    return status;
}
