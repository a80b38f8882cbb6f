#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "pack.h"

/* From here on several threads copy faster than one, for all the trouble of waking them. */
enum { LARGE_BYTES = 256 << 10 };

/* Merge axes that both sides walk as one run, and drop those of length 1. Returns false where more
   axes are left than a kernel takes. */
static bool make_layout(const gk_array *to, const gk_array *from, gk_layout *layout) {
    int last = -1;
    for (int i = 0; i < to->ndim; i++) {
        if (to->shape[i] == 1)
            continue;
        if (last >= 0 && layout->to[last] == to->strides[i] * to->shape[i] &&
            layout->from[last] == from->strides[i] * to->shape[i]) {
            layout->shape[last] *= to->shape[i];
        } else {
            if (++last == GK_LAYOUT_DIMENSIONS)
                return false;
            layout->shape[last] = to->shape[i];
        }
        layout->to[last] = to->strides[i];
        layout->from[last] = from->strides[i];
    }
    layout->ndim = last + 1;
    return true;
}

/* Every address and stride that the copy touches, or-ed: its low bits tell the alignment. */
static uintptr_t layout_bits(const gk_array *to, const gk_array *from, const gk_layout *layout) {
    uintptr_t bits = (uintptr_t)to->data | (uintptr_t)from->data;
    for (int i = 0; i < layout->ndim; i++)
        bits |= (uintptr_t)layout->to[i] | (uintptr_t)layout->from[i];
    return bits;
}

/* Elements that are not aligned to their size are copied as bytes: one more axis. */
static bool split_into_bytes(gk_layout *layout, int64_t size) {
    if (layout->ndim == GK_LAYOUT_DIMENSIONS)
        return false;
    layout->shape[layout->ndim] = size;
    layout->to[layout->ndim] = layout->from[layout->ndim] = 1;
    layout->ndim++;
    return true;
}

/* More axes than a kernel takes: one copy for each index of the first axis. */
static gk_status copy_by_slices(gk_call *call, const gk_array *to, const gk_array *from) {
    gk_array to_slice = *to, from_slice = *from;
    gk_status status = GK_OK;
    to_slice.ndim = from_slice.ndim = to->ndim - 1;
    for (int i = 1; i < to->ndim; i++) {
        to_slice.shape[i - 1] = from_slice.shape[i - 1] = to->shape[i];
        to_slice.strides[i - 1] = to->strides[i];
        from_slice.strides[i - 1] = from->strides[i];
    }
    for (int64_t i = 0; i < to->shape[0] && status == GK_OK; i++) {
        to_slice.data = (char *)to->data + i * to->strides[0];
        from_slice.data = (char *)from->data + i * from->strides[0];
        status = gk_copy_strided(call, &to_slice, &from_slice);
    }
    return status;
}

gk_status gk_copy_strided(gk_call *call, const gk_array *to, const gk_array *from) {
    if (gk_is_contiguous(to) && gk_is_contiguous(from))
        return gk_call_copy_within(call, to->data, from->data, gk_bytes(to));
    size_t count = gk_count(to), size = gk_dtype_size(to->dtype);
    if (count == 0)
        return GK_OK;
    gk_layout layout = {0};
    gk_dtype moved = gk_dtype_bits(to->dtype);
    bool fits = make_layout(to, from, &layout);
    if (fits && (layout_bits(to, from, &layout) & (size - 1)) != 0) {
        fits = split_into_bytes(&layout, (int64_t)size);
        moved = GK_bits8;
        count *= size;
    }
    if (!fits)
        return copy_by_slices(call, to, from);
    const gk_row *row;
    gk_status status = gk_row_chosen("copy", moved, call->backend, 0, NULL, &row, &call->error);
    if (status != GK_OK)
        return status;
    void *to_data = to->data, *from_data = from->data;
    void *arguments[] = {&to_data, &from_data, &layout, &count};
    size_t a_block = (size_t)row->tile_columns;
    return gk_call_launch(call, row, (count + a_block - 1) / a_block, arguments);
}

static bool is_ready(const gk_array *array) {
    return array->place == GK_DEVICE && gk_is_contiguous(array) &&
           (uintptr_t)array->data % gk_dtype_size(array->dtype) == 0;
}

static gk_status temporary_array(gk_call *call, const gk_array *like, gk_array *made) {
    gk_copy_view(made, like);
    made->place = GK_DEVICE;
    made->readonly = false;
    made->swapped = false;
    made->producer = 0;
    gk_make_contiguous(made);
    return gk_call_temporary(call, gk_bytes(made), &made->data);
}

void gk_broadcast_view(const gk_array *source, const gk_array *target, gk_array *view) {
    int missing = target->ndim - source->ndim;
    gk_copy_view(view, source);
    view->ndim = target->ndim;
    for (int i = 0; i < target->ndim; i++) {
        view->shape[i] = target->shape[i];
        bool repeated = i < missing || source->shape[i - missing] != target->shape[i];
        view->strides[i] = repeated ? 0 : source->strides[i - missing];
    }
}

char *gk_mapped_view(gk_array *view, char *memory) {
    size_t bytes = gk_bytes(view);
    view->data = memory;
    view->place = GK_DEVICE;
    view->swapped = false;
    gk_make_contiguous(view);
    return memory +
           (bytes + GK_MAILBOX_ALIGNMENT - 1) / GK_MAILBOX_ALIGNMENT * GK_MAILBOX_ALIGNMENT;
}

gk_status gk_call_flow(gk_call *call, gk_flow *flow) {
    gk_busy busy = {0};
    if (call->captured)
        return gk_call_refuse_host(call);
    flow->after = call->stream;
    flow->interruption = call->interruption;
    flow->busy = call->phases ? &busy : NULL;
    gk_status status = gk_pipeline_run(call->device->pipeline, call->backend, flow, &call->error);
    if (status != GK_OK)
        return gk_fail_in(&call->error, "%s: ", call->operation);
    if (call->phases) {
        call->phases->host_to_device += busy.in;
        call->phases->kernel += busy.kernel;
        call->phases->device_to_host += busy.out;
        call->phases->overlapped += busy.in + busy.kernel + busy.out - busy.any;
        for (int i = 0; i < flow->operand_count; i++)
            call->phases->bytes_in += flow->count * gk_dtype_size(flow->operands[i].dtype);
        if (flow->has_result)
            call->phases->bytes_out += flow->count * gk_dtype_size(flow->result.dtype);
    }
    return status;
}

/* The longer way, where staging memory is not to be had: piece by piece through a small buffer. */
static gk_status upload_packed(gk_call *call, const gk_array *host, void *device) {
    size_t size = gk_dtype_size(host->dtype), count = gk_count(host);
    size_t piece = LARGE_BYTES / size < count ? LARGE_BYTES / size : count;
    char *buffer = malloc(piece * size);
    gk_status status = GK_OK;
    if (!buffer)
        return gk_fail(&call->error, GK_MEMORY_ERROR, "%s: out of host memory", call->operation);
    for (size_t first = 0; first < count && status == GK_OK; first += piece) {
        size_t some = count - first < piece ? count - first : piece;
        gk_pack(buffer, host, first, some);
        status = gk_call_copy_in(call, (char *)device + first * size, buffer, some * size);
    }
    free(buffer);
    return status;
}

gk_status gk_upload(gk_call *call, const gk_array *host, void *device) {
    size_t bytes = gk_bytes(host);
    bool plain = gk_is_contiguous(host) && !host->swapped;
    /* Pinned memory needs no staging, and one long copy is faster than many. */
    bool pinned = plain && gk_pool_holds(call->device->pool, host->data, bytes);
    if (bytes > LARGE_BYTES && !pinned) {
        gk_flow flow = {
            .count = gk_count(host), .operand_count = 1, .operands = {*host}, .landing = {device}};
        gk_status status = gk_call_flow(call, &flow);
        if (status != GK_MEMORY_ERROR)
            return status;
    }
    if (plain)
        return gk_call_copy_in(call, device, host->data, bytes);
    return bytes ? upload_packed(call, host, device) : GK_OK;
}

gk_status gk_download(gk_call *call, const void *device, const gk_array *host) {
    size_t bytes = gk_bytes(host);
    if (bytes > LARGE_BYTES && !gk_pool_holds(call->device->pool, host->data, bytes)) {
        gk_flow flow = {
            .count = gk_count(host), .has_result = true, .result = *host, .source = device};
        gk_status status = gk_call_flow(call, &flow);
        if (status != GK_MEMORY_ERROR)
            return status;
    }
    return gk_call_copy_out(call, host->data, device, bytes);
}

typedef struct host_copy {
    const gk_array *to, *from;
    size_t count, piece;
    atomic_size_t next;
} host_copy;

static void copy_pieces(void *context, int worker) {
    host_copy *copy = context;
    (void)worker;
    size_t size = gk_dtype_size(copy->from->dtype);
    for (;;) {
        size_t first = atomic_fetch_add(&copy->next, copy->piece);
        if (first >= copy->count)
            return;
        size_t some = copy->count - first < copy->piece ? copy->count - first : copy->piece;
        gk_unpack(copy->to, (const char *)copy->from->data + first * size, first, some);
    }
}

void gk_copy_host(gk_engine *engine, const gk_array *to, const gk_array *from) {
    host_copy copy = {.to = to, .from = from, .count = gk_count(from)};
    copy.piece = LARGE_BYTES / gk_dtype_size(from->dtype);
    if (gk_bytes(from) > 4 * LARGE_BYTES)
        gk_workers_run(engine->workers, copy_pieces, &copy);
    else
        copy_pieces(&copy, 0);
}

gk_status gk_stage_operand(gk_call *call, const gk_array *operand, const gk_array *shape_of,
                           gk_array *staged) {
    gk_status status = GK_OK;
    gk_copy_view(staged, operand);
    if (operand->place == GK_HOST) {
        status = temporary_array(call, operand, staged);
        if (status == GK_OK)
            status = gk_upload(call, operand, staged->data);
    } else {
        status = gk_call_wait(call, operand);
    }
    if (status != GK_OK || (is_ready(staged) && gk_same_shape(staged, shape_of)))
        return status;
    gk_array on_device, view, target;
    gk_copy_view(&on_device, staged);
    gk_copy_view(&target, shape_of);
    target.dtype = operand->dtype;
    gk_broadcast_view(&on_device, shape_of, &view);
    status = temporary_array(call, &target, staged);
    return status == GK_OK ? gk_copy_strided(call, staged, &view) : status;
}

gk_status gk_stage_result(gk_call *call, const gk_array *result, const gk_array *operands,
                          int operand_count, bool elementwise, gk_array *staged) {
    bool direct = is_ready(result);
    for (int i = 0; i < operand_count && direct; i++) {
        bool in_place = elementwise && operands[i].data == result->data;
        direct = in_place || !gk_overlaps(&operands[i], result);
    }
    gk_status status = gk_call_wait(call, result);
    if (status != GK_OK)
        return status;
    if (!direct)
        return temporary_array(call, result, staged);
    gk_copy_view(staged, result);
    return GK_OK;
}

gk_status gk_deliver_result(gk_call *call, const gk_array *staged, const gk_array *result) {
    if (result->place == GK_HOST)
        return gk_download(call, staged->data, result);
    return staged->data == result->data ? GK_OK : gk_copy_strided(call, result, staged);
}
