#include "engine/serial.h"

#include <stdlib.h>

#include "base/pack.h"
#include "engine/chunks.h"

/* A stretch of the host's on the device: in `whole` where the device has all of it, else in a
   temporary. */
static gk_status device_chunk(gk_call *call, const gk_flow *flow, const gk_stretch *of,
                              const void *whole, gk_array *view) {
    *view = gk_stretch_on_device(flow, of, (char *)(uintptr_t)whole);
    if (!whole)
        return gk_call_temporary(call, of->bytes, &view->data);
    view->data = (char *)view->data + gk_stretch_offset(of);
    return GK_OK;
}

static gk_status work_on(gk_call *call, const gk_chunks *chunks, const gk_chunk *chunk,
                         const gk_array *operands, gk_array *result) {
    const gk_flow *flow = chunks->flow;
    gk_backend *backend = call->backend;
    double start = call->phases ? gk_seconds() : 0.0;
    gk_status status = flow->work(flow->context, call->stream, operands, result,
                                  gk_chunk_first(chunks, chunk), &call->error);
    if (status == GK_OK && call->phases) {
        status = backend->synchronize(backend, call->stream, &call->error);
        call->phases->kernel += gk_seconds() - start;
    }
    return status;
}

static gk_status run_chunk(gk_call *call, const gk_chunks *chunks, const gk_chunk *chunk,
                           char *buffer) {
    const gk_flow *flow = chunks->flow;
    gk_array operands[GK_FLOW_OPERANDS], result = {0};
    gk_status status = GK_OK;
    for (int i = 0; i < flow->operand_count && status == GK_OK; i++) {
        const gk_stretch *operand = &chunk->operands[i];
        operands[i] = operands[chunks->twin[i]];
        if (chunks->twin[i] < i)
            continue;
        status = device_chunk(call, flow, operand, flow->landing[i], &operands[i]);
        if (status != GK_OK)
            break;
        gk_pack(buffer, &operand->array, operand->first, operand->count);
        status = gk_call_copy_in(call, operands[i].data, buffer, operand->bytes);
    }
    if (status == GK_OK && flow->has_result)
        status = device_chunk(call, flow, &chunk->result, flow->source, &result);
    if (status == GK_OK && flow->work)
        status = work_on(call, chunks, chunk, operands, &result);
    if (status == GK_OK && flow->has_result)
        status = gk_call_copy_out(call, buffer, result.data, chunk->result.bytes);
    if (status == GK_OK && flow->has_result)
        gk_unpack(&chunk->result.array, buffer, chunk->result.first, chunk->result.count);
    return status;
}

/* The first chunk is as large as any. */
static size_t widest_stretch(const gk_chunks *chunks) {
    gk_chunk first;
    gk_chunk_view(chunks, 0, &first);
    size_t widest = chunks->flow->has_result ? first.result.bytes : 1;
    for (int i = 0; i < chunks->flow->operand_count; i++)
        widest = first.operands[i].bytes > widest ? first.operands[i].bytes : widest;
    return widest;
}

gk_status gk_serial_flow(gk_call *call, const gk_flow *flow) {
    gk_chunks chunks;
    gk_status status = GK_OK;
    gk_chunks_plan(&chunks, flow, NULL, 0);
    char *buffer = malloc(widest_stretch(&chunks));
    if (!buffer)
        return gk_fail(&call->error, GK_MEMORY_ERROR, "%s: out of host memory", call->operation);
    for (size_t number = 0; number < chunks.count && status == GK_OK; number++) {
        gk_call part = gk_call_part(call, call->stream);
        gk_chunk chunk;
        gk_chunk_view(&chunks, number, &chunk);
        status = run_chunk(&part, &chunks, &chunk, buffer);
        gk_call_end(&part);
        if (status == GK_OK && gk_interrupted(call->interruption, &part.error))
            status = GK_INTERRUPTED;
        if (status != GK_OK)
            call->error = part.error;
    }
    free(buffer);
    return status;
}
