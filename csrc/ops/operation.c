#include "ops/operation.h"

#include <string.h>

#include "base/pack.h"
#include "engine/mailbox.h"
#include "engine/transfer.h"
#include "engine/ways.h"

gk_wish gk_operation_wish(const gk_operation *operation, gk_dtype dtype) {
    return (gk_wish){.op = operation->op,
                     .dtype = dtype,
                     .strided = operation->strided && !operation->elementwise};
}

gk_status gk_operation_infer(gk_call *call, const gk_operation *operation, const gk_array *operands,
                             gk_array *result) {
    gk_clear_view(result);
    for (int i = 1; i < operation->operand_count; i++)
        if (operands[i].dtype != operands[0].dtype)
            return gk_fail(
                &call->error, GK_TYPE_ERROR,
                "%s: operands of different dtypes, %s and %s; convert one with .astype(...)",
                operation->name, gk_dtype_name(operands[0].dtype),
                gk_dtype_name(operands[i].dtype));
    gk_status status = operation->infer(operation, call, operands, result);
    if (status != GK_OK)
        return status;
    if (!gk_is_addressable(result))
        return gk_fail(
            &call->error, GK_MEMORY_ERROR,
            "%s: a result of shape %s and dtype %s has more bytes than an address counts",
            operation->name, gk_shape_text(result).text, gk_dtype_name(result->dtype));
    gk_make_contiguous(result);
    if (call->variant) {
        status = gk_row_named(operation->op, call->variant, operands[0].dtype, call->backend,
                              &call->wanted, &call->error);
        if (status != GK_OK && strcmp(operation->name, gk_op_name(operation->op)) != 0)
            gk_fail_in(&call->error, "by the kernels of %s, ", gk_op_name(operation->op));
        call->ran = call->wanted; /* unless a pointer turns out not to be aligned for it */
        return gk_call_blame(call, status);
    }
    const gk_wish wish = gk_operation_wish(operation, operands[0].dtype);
    return gk_call_blame(call, gk_row_chosen(&wish, call->backend, &call->ran, &call->error));
}

/* A number of the host's that its kernel takes by value. */
static bool is_number(const gk_operation *operation, const gk_array *operand) {
    return operation->elementwise && operand->place == GK_HOST && gk_count(operand) == 1;
}

/* Small arrays: kernels work on mapped host memory, and nothing is copied to or from the device.
   Not `done` where no mailbox was free. */
static gk_status run_mapped(gk_call *call, const gk_operation *operation, const gk_array *operands,
                            const gk_array *result, bool *done) {
    gk_backend *backend = call->backend;
    gk_mailbox *box = gk_mailbox_take(call->device->mailboxes, backend);
    gk_array mapped[GK_MAX_OPERANDS], mapped_result = *result;
    size_t used = 0; /* bytes of the box */
    *done = box != NULL;
    if (!box)
        return GK_OK;
    call->stream = box->stream;
    call->mapped = true;
    for (int i = 0; i < operation->operand_count; i++) {
        gk_copy_view(&mapped[i], &operands[i]);
        if (is_number(operation, &operands[i]))
            continue;
        if (operation->elementwise)
            gk_broadcast_view(&operands[i], result, &mapped[i]);
        gk_pack(box->memory + used, &mapped[i], 0, gk_count(&mapped[i]));
        used += gk_mapped_view(&mapped[i], box->mapped + used);
    }
    (void)gk_mapped_view(&mapped_result, box->mapped + used);
    gk_status status = operation->run(operation, call, mapped, &mapped_result);
    gk_error ignored;
    gk_status ended =
        backend->synchronize(backend, box->stream, status == GK_OK ? &call->error : &ignored);
    if (status == GK_OK && ended != GK_OK)
        status = gk_fail_in(&call->error, "%s: ", call->operation);
    if (status == GK_OK)
        memcpy(result->data, box->memory + used, gk_bytes(result));
    if (status == GK_OK && call->phases) {
        call->phases->bytes_out += gk_bytes(result);
        for (int i = 0; i < operation->operand_count; i++)
            call->phases->bytes_in += gk_bytes(&mapped[i]);
    }
    gk_mailbox_give(call->device->mailboxes, box);
    return status;
}

/* As `takes` allows. */
static gk_status stage_taken(gk_call *call, const gk_operation *operation, int number,
                             const gk_array *operand, gk_array *staged) {
    gk_array view;
    gk_status status = gk_stage_lying(call, operand, &view);
    if (status == GK_OK && !gk_is_contiguous(&view) && !operation->takes(&view, number))
        return gk_stage_packed(call, &view, staged);
    gk_copy_view(staged, &view);
    return status;
}

/* The first operand on the host that is the same elements in the same order as this one, and which
   the kernels take in this one's place as well: it alone travels. */
static int twin_of(const gk_operation *operation, const gk_array *operands, const gk_array *staged,
                   int number) {
    for (int twin = 0; twin < number && operands[number].place == GK_HOST; twin++)
        if (gk_is_same_view(&operands[twin], &operands[number]) &&
            (!operation->takes || gk_is_contiguous(&staged[twin]) ||
             operation->takes(&staged[twin], number)))
            return twin;
    return number;
}

static gk_status stage_and_run(gk_call *call, const gk_operation *operation,
                               const gk_array *operands, const gk_array *result) {
    gk_array staged[GK_MAX_OPERANDS], staged_result;
    gk_status status = GK_OK;
    for (int i = 0; i < operation->operand_count && status == GK_OK; i++) {
        int twin = twin_of(operation, operands, staged, i);
        if (is_number(operation, &operands[i]))
            gk_copy_view(&staged[i], &operands[i]);
        else if (twin < i)
            gk_copy_view(&staged[i], &staged[twin]);
        else if (operation->strided)
            status = gk_stage_view(call, &operands[i], &staged[i]);
        else if (operation->takes)
            status = stage_taken(call, operation, i, &operands[i], &staged[i]);
        else
            status = gk_stage_operand(call, &operands[i], &staged[i]);
    }
    if (status == GK_OK)
        status = gk_stage_result(call, result, staged, operation->operand_count,
                                 operation->elementwise, operation->strided, &staged_result);
    if (status == GK_OK)
        status = operation->run(operation, call, staged, &staged_result);
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

/* Through the pipeline, where that is a way and there is room. */
static gk_status run_large(gk_call *call, const gk_operation *operation, const gk_array *operands,
                           const gk_array *result, size_t bytes) {
    if (operation->flow && bytes >= operation->flow_bytes) {
        gk_status status = operation->flow(operation, call, operands, result);
        if (status != GK_MEMORY_ERROR)
            return status;
        gk_call_end(call); /* what it had taken, before the plain way asks for its own */
    }
    return run_staged(call, operation, operands, result);
}

static gk_status run_small(gk_call *call, const gk_operation *operation, const gk_array *operands,
                           const gk_array *result) {
    bool done = false;
    gk_status status = run_mapped(call, operation, operands, result, &done);
    return done ? status : run_staged(call, operation, operands, result);
}

/* By whichever was found to be faster, or by one that is being tried. */
static gk_status run_measured(gk_call *call, const gk_operation *operation,
                              const gk_array *operands, const gk_array *result, size_t bytes) {
    gk_ways *ways = call->device->ways;
    const int kind = operation->elementwise;
    bool counts;
    bool flows = gk_ways_choose(ways, kind, bytes, GK_MAPPED_BYTES, &counts);
    double start = counts ? gk_seconds() : 0.0;
    gk_status status = flows ? run_large(call, operation, operands, result, bytes)
                             : run_small(call, operation, operands, result);
    if (counts)
        gk_ways_note(ways, kind, bytes, status == GK_OK ? gk_seconds() - start : -1.0);
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
        bytes += operation->elementwise ? gk_count(result) * gk_dtype_size(operands[i].dtype)
                                        : gk_bytes(&operands[i]);
    }
    if (!on_host)
        return run_staged(call, operation, operands, result);
    size_t limit = atomic_load(&call->engine->mapped_limit);
    if (operation->mapped && limit == GK_MAPPED_BYTES && bytes >= GK_WAYS_LEAST &&
        bytes <= GK_MAILBOX_MOST)
        return run_measured(call, operation, operands, result, bytes);
    if (operation->mapped && bytes <= limit)
        return run_small(call, operation, operands, result);
    return run_large(call, operation, operands, result, bytes);
}
