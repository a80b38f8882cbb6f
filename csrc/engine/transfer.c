#include "engine/transfer.h"

#include <stdatomic.h>

#include "base/pack.h"
#include "base/workers.h"
#include "engine/chunks.h"
#include "engine/copy.h"
#include "engine/mailbox.h"
#include "engine/pool.h"
#include "engine/serial.h"

/* From here on several threads copy faster than one, for all the trouble of waking them. */
enum { LARGE_BYTES = 256 << 10 };

/* Whether every element lies at a multiple of its size. */
static bool is_aligned(const gk_array *array) {
    uintptr_t bits = (uintptr_t)array->data;
    for (int i = 0; i < array->ndim; i++)
        bits |= array->shape[i] > 1 ? (uintptr_t)array->strides[i] : 0;
    return gk_count(array) == 0 || bits % gk_dtype_size(array->dtype) == 0;
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

bool gk_broadcasts_to(const gk_array *source, const gk_array *target) {
    int missing = target->ndim - source->ndim;
    bool fits = missing >= 0;
    for (int i = 0; i < source->ndim && fits; i++)
        fits = source->shape[i] == 1 || source->shape[i] == target->shape[i + missing];
    return fits;
}

size_t gk_mapped_view(gk_array *view, char *mapped) {
    size_t bytes = gk_bytes(view);
    view->data = mapped;
    view->place = GK_DEVICE;
    view->swapped = false;
    gk_make_contiguous(view);
    return (bytes + GK_MAILBOX_ALIGNMENT - 1) / GK_MAILBOX_ALIGNMENT * GK_MAILBOX_ALIGNMENT;
}

void gk_call_limit(const gk_call *call, gk_flow *flow) {
    const size_t limit = atomic_load(&call->engine->chunk_limit);
    flow->unpacks = flow->has_result && !gk_is_sent_directly(flow, call->device->pool);
    const bool both = flow->unpacks && flow->operand_count > 0;
    flow->chunk = both && limit > GK_FLOW_HALF ? GK_FLOW_HALF : limit;
}

gk_status gk_call_flow(gk_call *call, gk_flow *flow) {
    gk_busy busy = {0};
    if (call->captured)
        return gk_call_refuse_host(call);
    flow->after = call->stream;
    gk_call_limit(call, flow);
    flow->interruption = call->interruption;
    flow->busy = call->phases ? &busy : NULL;
    gk_status status = gk_pipeline_run(call->device->pipeline, call->backend, flow, &call->error);
    if (status == GK_MEMORY_ERROR)
        return gk_serial_flow(call, flow);
    if (status != GK_OK)
        return gk_fail_in(&call->error, "%s: ", call->operation);
    if (call->phases) {
        call->phases->host_to_device += busy.in;
        call->phases->kernel += busy.kernel;
        call->phases->device_to_host += busy.out;
        double overlapped = busy.in + busy.kernel + busy.out - busy.any;
        call->phases->overlapped += overlapped > 0.0 ? overlapped : 0.0; /* sums are rounded */
        for (int i = 0; i < flow->operand_count; i++)
            if (gk_flow_twin(flow, i) == i)
                call->phases->bytes_in += gk_bytes(&flow->operands[i]);
        if (flow->has_result)
            call->phases->bytes_out += gk_bytes(&flow->result);
    }
    return status;
}

gk_status gk_upload(gk_call *call, const gk_array *host, void *device) {
    size_t bytes = gk_bytes(host);
    bool plain = gk_is_contiguous(host) && !host->swapped;
    /* Pinned memory needs no staging, and one long copy is faster than many. */
    bool pinned = plain && gk_pool_holds(call->device->pool, host->data, bytes);
    if (plain && (pinned || bytes <= LARGE_BYTES))
        return gk_call_copy_in(call, device, host->data, bytes);
    gk_flow flow = {
        .count = gk_count(host), .operand_count = 1, .operands = {*host}, .landing = {device}};
    return bytes > LARGE_BYTES ? gk_call_flow(call, &flow) : gk_serial_flow(call, &flow);
}

gk_status gk_upload_lying(gk_call *call, const gk_array *host, gk_array *there) {
    int order[GK_MAX_DIMENSIONS];
    gk_array lying;
    gk_order_axes(host, order);
    gk_copy_view(&lying, host);
    gk_copy_view(there, host);
    for (int i = 0; i < host->ndim; i++) {
        lying.shape[i] = host->shape[order[i]];
        lying.strides[i] = host->strides[order[i]];
    }
    there->place = GK_DEVICE;
    there->readonly = there->swapped = false;
    gk_make_run(there, order);
    gk_status status = gk_call_temporary(call, gk_bytes(there), &there->data);
    return status == GK_OK ? gk_upload(call, &lying, there->data) : status;
}

gk_status gk_download(gk_call *call, const void *device, const gk_array *host) {
    size_t bytes = gk_bytes(host);
    if (bytes <= LARGE_BYTES || gk_pool_holds(call->device->pool, host->data, bytes))
        return gk_call_copy_out(call, host->data, device, bytes);
    gk_flow flow = {.count = gk_count(host), .has_result = true, .result = *host, .source = device};
    return gk_call_flow(call, &flow);
}

typedef struct host_copy {
    const gk_array *to, *from;
    size_t count, piece;
    bool packs; /* `to` is contiguous; else `from` is */
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
        if (copy->packs)
            gk_pack((char *)copy->to->data + first * size, copy->from, first, some);
        else
            gk_unpack(copy->to, (const char *)copy->from->data + first * size, first, some);
    }
}

void gk_copy_host(const gk_device *device, const gk_array *to, const gk_array *from) {
    host_copy copy = {.to = to, .from = from, .count = gk_count(from)};
    copy.packs = gk_is_contiguous(to) && !to->swapped;
    copy.piece = LARGE_BYTES / gk_dtype_size(from->dtype);
    if (gk_bytes(from) > 4 * LARGE_BYTES)
        gk_workers_run(device->workers, GK_ALL_WORKERS, copy_pieces, &copy);
    else
        copy_pieces(&copy, 0);
}

gk_status gk_stage_view(gk_call *call, const gk_array *operand, gk_array *staged) {
    gk_status status = GK_OK;
    gk_copy_view(staged, operand);
    if (operand->place == GK_HOST) {
        status = temporary_array(call, operand, staged);
        return status == GK_OK ? gk_upload(call, operand, staged->data) : status;
    }
    status = gk_call_wait(call, operand);
    if (status != GK_OK || is_aligned(operand))
        return status;
    status = temporary_array(call, operand, staged);
    return status == GK_OK ? gk_copy_strided(call, staged, operand) : status;
}

gk_status gk_stage_packed(gk_call *call, const gk_array *view, gk_array *packed) {
    gk_status status = temporary_array(call, view, packed);
    return status == GK_OK ? gk_copy_strided(call, packed, view) : status;
}

gk_status gk_stage_lying(gk_call *call, const gk_array *operand, gk_array *staged) {
    gk_array lying;
    if (operand->place != GK_HOST || !gk_lies_by_columns(operand))
        return gk_stage_view(call, operand, staged);
    gk_copy_view(&lying, operand);
    gk_exchange_last(&lying);
    gk_status status = gk_stage_view(call, &lying, staged);
    gk_exchange_last(staged);
    return status;
}

gk_status gk_stage_operand(gk_call *call, const gk_array *operand, gk_array *staged) {
    gk_array view;
    gk_status status = gk_stage_view(call, operand, staged);
    if (status != GK_OK || gk_is_contiguous(staged))
        return status;
    gk_copy_view(&view, staged);
    return gk_stage_packed(call, &view, staged);
}

gk_status gk_stage_result(gk_call *call, const gk_array *result, const gk_array *operands,
                          int operand_count, bool elementwise, bool strided, gk_array *staged) {
    bool direct =
        result->place == GK_DEVICE && is_aligned(result) && (strided || gk_is_contiguous(result));
    for (int i = 0; i < operand_count && direct; i++)
        direct = (elementwise && gk_is_same_view(&operands[i], result)) ||
                 !gk_overlaps(&operands[i], result);
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
