#include "engine/serial.h"

#include <stdlib.h>

#include "base/pack.h"

static size_t widest_element(const gk_flow *flow) {
    size_t widest = flow->has_result ? gk_dtype_size(flow->result.dtype) : 1;
    for (int i = 0; i < flow->operand_count; i++) {
        size_t size = gk_dtype_size(flow->operands[i].dtype);
        widest = size > widest ? size : widest;
    }
    return widest;
}

/* Elements [first, first + count) of an array: in `whole` where the device has all of it, else in a
   temporary. */
static gk_status device_chunk(gk_call *chunk, const gk_array *array, const void *whole,
                              size_t first, size_t count, gk_array *view) {
    size_t size = gk_dtype_size(array->dtype);
    *view = (gk_array){.place = GK_DEVICE, .dtype = array->dtype, .ndim = 1};
    view->shape[0] = (int64_t)count;
    view->strides[0] = (int64_t)size;
    view->data = (char *)(uintptr_t)whole + first * size;
    return whole ? GK_OK : gk_call_temporary(chunk, count * size, &view->data);
}

static gk_status work_on(gk_call *chunk, const gk_flow *flow, const gk_array *operands,
                         gk_array *result, size_t first) {
    gk_backend *backend = chunk->backend;
    double start = chunk->phases ? gk_seconds() : 0.0;
    gk_status status =
        flow->work(flow->context, chunk->stream, operands, result, first, &chunk->error);
    if (status == GK_OK && chunk->phases) {
        status = backend->synchronize(backend, chunk->stream, &chunk->error);
        chunk->phases->kernel += gk_seconds() - start;
    }
    return status;
}

static gk_status run_chunk(gk_call *chunk, const gk_flow *flow, char *buffer, size_t first,
                           size_t count) {
    gk_array operands[GK_FLOW_OPERANDS], result = {0};
    gk_status status = GK_OK;
    for (int i = 0; i < flow->operand_count && status == GK_OK; i++) {
        const gk_array *operand = &flow->operands[i];
        const int twin = gk_flow_twin(flow, i);
        operands[i] = operands[twin];
        if (twin < i)
            continue;
        status = device_chunk(chunk, operand, flow->landing[i], first, count, &operands[i]);
        if (status != GK_OK)
            break;
        gk_pack(buffer, operand, first, count);
        status = gk_call_copy_in(chunk, operands[i].data, buffer, gk_bytes(&operands[i]));
    }
    if (status == GK_OK && flow->has_result)
        status = device_chunk(chunk, &flow->result, flow->source, first, count, &result);
    if (status == GK_OK && flow->work)
        status = work_on(chunk, flow, operands, &result, first);
    if (status == GK_OK && flow->has_result)
        status = gk_call_copy_out(chunk, buffer, result.data, gk_bytes(&result));
    if (status == GK_OK && flow->has_result)
        gk_unpack(&flow->result, buffer, first, count);
    return status;
}

gk_status gk_serial_flow(gk_call *call, const gk_flow *flow) {
    size_t least = gk_flow_least(flow), count = least < flow->count ? least : flow->count;
    char *buffer = malloc(count * widest_element(flow));
    gk_status status = GK_OK;
    if (!buffer)
        return gk_fail(&call->error, GK_MEMORY_ERROR, "%s: out of host memory", call->operation);
    for (size_t first = 0; first < flow->count && status == GK_OK; first += count) {
        gk_call chunk = gk_call_part(call, call->stream);
        size_t some = flow->count - first < count ? flow->count - first : count;
        status = run_chunk(&chunk, flow, buffer, first, some);
        gk_call_end(&chunk);
        if (status == GK_OK && gk_interrupted(call->interruption, &chunk.error))
            status = GK_INTERRUPTED;
        if (status != GK_OK)
            call->error = chunk.error;
    }
    free(buffer);
    return status;
}
