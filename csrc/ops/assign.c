#include "ops/assign.h"

#include <string.h>

#include "base/pack.h"
#include "engine/copy.h"
#include "engine/nest.h"
#include "engine/transfer.h"
#include "ops/operation.h"

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
    const gk_row *row, *lone;
    uint64_t number; /* what goes everywhere where there is no array */
    int32_t to, from;
} conversion;

static gk_status launch_conversion(gk_call *call, const gk_nest *piece, const gk_layout *layout,
                                   void *context) {
    conversion *how = context;
    uintptr_t to = piece->data[0], from = piece->data[1];
    const gk_row *row = how->row;
    gk_compact compact;
    if (gk_nest_is_lone(piece, row->tile_columns / row->threads) &&
        gk_nest_compact(piece, &compact)) {
        compact.dtype[0] = (uint8_t)how->to;
        compact.dtype[1] = (uint8_t)how->from;
        if (from == 0)
            gk_compact_number(&compact, 1, how->number);
        return gk_launch_compact(call, how->lone, &compact, GK_LONE_ELEMENTS);
    }
    gk_units units = gk_nest_units(piece, layout, row->tile_columns / row->threads);
    void *arguments[] = {&to, &from, &how->number, &units, &how->to, &how->from};
    return gk_call_launch(call, row, gk_blocks(gk_unit_threads(&units), row->threads), arguments);
}

gk_status gk_assign_by_kernel(gk_call *call, const gk_array *to, const gk_array *from) {
    gk_wish wish = {.op = GK_OP_convert, .dtype = GK_bits8, .strided = true};
    conversion how = {.to = (int32_t)to->dtype, .from = (int32_t)from->dtype};
    gk_array number;
    gk_nest nest;
    gk_status status = gk_row_chosen(&wish, call->backend, &how.row, &call->error);
    wish.op += GK_COMPACT;
    if (status == GK_OK)
        status = gk_row_chosen(&wish, call->backend, &how.lone, &call->error);
    if (status != GK_OK)
        return status;
    if (from->place == GK_HOST) {
        gk_pack(&how.number, from, 0, 1);
        gk_broadcast_view(from, to, &number);
        number.data = NULL;
        memset(number.strides, 0, sizeof number.strides);
        from = &number;
    }
    gk_nest_make(&nest, (const gk_array *[]){to, from}, 2);
    return gk_nest_run(call, &nest, launch_conversion, &how);
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
