#include "ops.h"

#include <string.h>

#include "pack.h"
#include "transfer.h"

size_t gk_blocks(size_t count, int a_block) {
    return (count + (size_t)a_block - 1) / (size_t)a_block;
}

gk_status gk_operation_infer(gk_call *call, const gk_operation *operation, const gk_array *operands,
                             gk_array *result) {
    gk_clear_view(result);
    if (operation->operand_count == 2 && operands[0].dtype != operands[1].dtype)
        return gk_fail(&call->error, GK_TYPE_ERROR,
                       "%s: operands of different dtypes, %s and %s; convert one with .astype(...)",
                       operation->name, gk_dtype_name(operands[0].dtype),
                       gk_dtype_name(operands[1].dtype));
    gk_status status = operation->infer(call, operands, result);
    if (status != GK_OK)
        return status;
    if (!gk_is_addressable(result))
        return gk_fail(
            &call->error, GK_MEMORY_ERROR,
            "%s: a result of shape %s and dtype %s has more bytes than an address counts",
            operation->name, gk_shape_text(result).text, gk_dtype_name(result->dtype));
    gk_make_contiguous(result);
    if (call->variant) {
        status = gk_row_named(operation->name, call->variant, operands[0].dtype, call->backend,
                              &call->wanted, &call->error);
        call->ran = call->wanted; /* unless a pointer turns out not to be aligned for it */
        return status;
    }
    const gk_row *row;
    return gk_call_choose(call, operands[0].dtype, 0, &row);
}

/* Small arrays: kernels work on mapped host memory, and nothing is copied to or from the device.
   Not `done` where no mailbox was free. */
static gk_status run_mapped(gk_call *call, const gk_operation *operation, const gk_array *operands,
                            const gk_array *result, bool *done) {
    gk_backend *backend = call->backend;
    gk_mailbox *box = gk_mailbox_take(call->device->mailboxes, backend);
    gk_array mapped[GK_MAX_OPERANDS], mapped_result = *result;
    char *free_memory = box ? box->memory : NULL;
    *done = box != NULL;
    if (!box)
        return GK_OK;
    call->stream = box->stream;
    for (int i = 0; i < operation->operand_count; i++) {
        gk_array view = operands[i];
        if (operation->elementwise)
            gk_broadcast_view(&operands[i], result, &view);
        gk_pack(free_memory, &view, 0, gk_count(&view));
        mapped[i] = view;
        free_memory = gk_mapped_view(&mapped[i], free_memory);
    }
    (void)gk_mapped_view(&mapped_result, free_memory);
    gk_status status = operation->run(call, mapped, &mapped_result);
    gk_error ignored;
    gk_status ended =
        backend->synchronize(backend, box->stream, status == GK_OK ? &call->error : &ignored);
    if (status == GK_OK && ended != GK_OK)
        status = gk_fail_in(&call->error, "%s: ", call->operation);
    if (status == GK_OK)
        memcpy(result->data, mapped_result.data, gk_bytes(result));
    if (status == GK_OK && call->phases) {
        call->phases->bytes_out += gk_bytes(result);
        for (int i = 0; i < operation->operand_count; i++)
            call->phases->bytes_in += gk_bytes(&mapped[i]);
    }
    gk_mailbox_give(call->device->mailboxes, box);
    return status;
}

static gk_status stage_and_run(gk_call *call, const gk_operation *operation,
                               const gk_array *operands, const gk_array *result) {
    gk_array staged[GK_MAX_OPERANDS], staged_result;
    gk_status status = GK_OK;
    for (int i = 0; i < operation->operand_count && status == GK_OK; i++)
        status = gk_stage_operand(call, &operands[i],
                                  operation->elementwise ? result : &operands[i], &staged[i]);
    if (status == GK_OK)
        status = gk_stage_result(call, result, staged, operation->operand_count,
                                 operation->elementwise, &staged_result);
    if (status == GK_OK)
        status = operation->run(call, staged, &staged_result);
    if (status == GK_OK)
        status = gk_deliver_result(call, &staged_result, result);
    return status;
}

/* The homes of the arrays wait for what was submitted, also where the call failed after a part. */
static gk_status rejoin(gk_call *call, const gk_operation *operation, const gk_array *operands,
                        const gk_array *result) {
    gk_status status = gk_call_rejoin(call, result);
    for (int i = 0; i < operation->operand_count && status == GK_OK; i++)
        status = gk_call_rejoin(call, &operands[i]);
    return status;
}

/* To the device, kernels, and back, one after the other. */
static gk_status run_staged(gk_call *call, const gk_operation *operation, const gk_array *operands,
                            const gk_array *result) {
    gk_status status = stage_and_run(call, operation, operands, result);
    if (status == GK_OK)
        return rejoin(call, operation, operands, result);
    gk_error first = call->error;
    (void)rejoin(call, operation, operands, result);
    call->error = first;
    return status;
}

gk_status gk_operation_run(gk_call *call, const gk_operation *operation, const gk_array *operands,
                           const gk_array *result) {
    if (call->captured && result->place == GK_HOST)
        return gk_call_refuse_host(call);
    /* Of nothing there is nothing to stream: the plain way knows what a result without terms is. */
    bool on_host = result->place == GK_HOST && !call->stream;
    size_t bytes = gk_bytes(result);
    for (int i = 0; i < operation->operand_count; i++) {
        on_host = on_host && operands[i].place == GK_HOST && gk_count(&operands[i]) > 0;
        bytes += gk_bytes(operation->elementwise ? result : &operands[i]);
    }
    if (on_host && operation->mapped && bytes <= atomic_load(&call->engine->mapped_limit)) {
        bool done = false;
        gk_status status = run_mapped(call, operation, operands, result, &done);
        if (done)
            return status;
    } else if (on_host && operation->flow && bytes >= operation->flow_bytes) {
        gk_status status = operation->flow(call, operands, result);
        if (status != GK_MEMORY_ERROR)
            return status;
        gk_call_end(call); /* what it had taken, before the plain way asks for its own */
    }
    return run_staged(call, operation, operands, result);
}

/* add ------------------------------------------------------------------------------------------ */

static gk_status infer_broadcast(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0], *b = &operands[1];
    result->dtype = a->dtype;
    result->ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int i = 1; i <= result->ndim; i++) {
        int64_t of_a = i <= a->ndim ? a->shape[a->ndim - i] : 1;
        int64_t of_b = i <= b->ndim ? b->shape[b->ndim - i] : 1;
        if (of_a != of_b && of_a != 1 && of_b != 1)
            return gk_fail(&call->error, GK_VALUE_ERROR,
                           "%s: operands could not be broadcast together with shapes %s %s",
                           call->operation, gk_short_shape_text(a).text,
                           gk_short_shape_text(b).text);
        result->shape[result->ndim - i] = of_a == 1 ? of_b : of_a;
    }
    return GK_OK;
}

static gk_status run_elementwise(gk_call *call, const gk_array *operands, gk_array *result) {
    void *a = operands[0].data, *b = operands[1].data, *out = result->data;
    size_t count = gk_count(result);
    const gk_row *row;
    gk_status status =
        gk_call_choose(call, result->dtype, (uintptr_t)a | (uintptr_t)b | (uintptr_t)out, &row);
    if (status != GK_OK)
        return status;
    void *arguments[] = {&out, &a, &b, &count};
    return gk_call_launch(call, row, gk_blocks(count, row->tile_columns), arguments);
}

/* A chunk runs as a call of its own on its lane's stream. */
static gk_status elementwise_chunk(void *context, gk_stream stream, const gk_array *operands,
                                   gk_array *result, size_t first, gk_error *error) {
    gk_call chunk = *(const gk_call *)context;
    (void)first;
    chunk.stream = stream;
    chunk.phases = NULL;
    gk_status status = run_elementwise(&chunk, operands, result);
    if (status != GK_OK)
        *error = chunk.error;
    return status;
}

static gk_status flow_elementwise(gk_call *call, const gk_array *operands, const gk_array *result) {
    gk_flow flow = {.count = gk_count(result),
                    .operand_count = 2,
                    .work = elementwise_chunk,
                    .context = call,
                    .has_result = true,
                    .result = *result};
    for (int i = 0; i < 2; i++)
        gk_broadcast_view(&operands[i], result, &flow.operands[i]);
    return gk_call_flow(call, &flow);
}

const gk_operation gk_op_add = {.name = "add",
                                .operand_count = 2,
                                .elementwise = true,
                                .infer = infer_broadcast,
                                .run = run_elementwise,
                                .flow = flow_elementwise,
                                .mapped = true};

/* transpose ------------------------------------------------------------------------------------ */

static gk_status infer_transpose(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    if (a->ndim > 2)
        return gk_fail(&call->error, GK_VALUE_ERROR,
                       "transpose: the array has shape %s; up to 2 dimensions are supported",
                       gk_shape_text(a).text);
    result->dtype = a->dtype;
    result->ndim = a->ndim;
    for (int i = 0; i < a->ndim; i++)
        result->shape[i] = a->shape[a->ndim - 1 - i];
    return GK_OK;
}

static gk_status run_transpose(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0];
    if (a->ndim < 2)
        return gk_copy_strided(call, result, a);
    size_t rows = (size_t)a->shape[0], columns = (size_t)a->shape[1];
    const gk_row *row;
    gk_status status = gk_call_choose(call, a->dtype, 0, &row);
    if (status != GK_OK)
        return status;
    void *from = a->data;
    void *arguments[] = {&result->data, &from, &rows, &columns};
    size_t tiles = gk_blocks(rows, row->tile_rows) * gk_blocks(columns, row->tile_columns);
    return gk_call_launch(call, row, tiles, arguments);
}

const gk_operation gk_op_transpose = {
    .name = "transpose", .operand_count = 1, .infer = infer_transpose, .run = run_transpose};
