#include "engine/call.h"

#include <stddef.h>
#include <string.h>

gk_status gk_call_blame(gk_call *call, gk_status status) {
    if (status == GK_OK)
        return GK_OK;
    size_t length = strlen(call->operation);
    if (strncmp(call->error.text, call->operation, length) != 0 || call->error.text[length] != ':')
        gk_fail_in(&call->error, "%s: ", call->operation);
    return status;
}

gk_status gk_call_begin(gk_call *call, gk_engine *engine, int ordinal, const char *operation) {
    memset(call, 0, offsetof(gk_call, temporaries)); /* what follows is written before it is read */
    call->engine = engine;
    call->operation = operation;
    call->strict = atomic_load(&engine->strict) > 0;
    call->error.status = GK_OK;
    call->error.text[0] = '\0';
    return gk_call_blame(
        call, gk_engine_device(engine, ordinal, &call->device, &call->backend, &call->error));
}

gk_status gk_call_on(gk_call *call, gk_stream stream) {
    call->stream = gk_is_legacy(stream) ? 0 : stream;
    call->waited = call->rejoined = 0;
    if (!call->stream)
        return GK_OK;
    gk_status status =
        call->backend->captured(call->backend, stream, &call->captured, &call->error);
    if (status == GK_OK && call->captured && (call->phases || call->strict))
        status = gk_fail(&call->error, GK_VALUE_ERROR,
                         "profile() and strict() wait for the device, and a stream that is being "
                         "captured in a CUDA graph cannot be waited for");
    return gk_call_blame(call, status);
}

static bool is_elsewhere(const gk_call *call, const gk_array *array) {
    return array->place == GK_DEVICE && array->producer != 0 &&
           !gk_same_stream(array->producer, call->stream) && gk_count(array) > 0;
}

gk_status gk_call_may_wait(gk_call *call, const gk_array *array) {
    gk_backend *backend = call->backend;
    bool captured = false;
    if (call->captured || !is_elsewhere(call, array) || gk_is_legacy(array->producer))
        return GK_OK;
    gk_status status = backend->captured(backend, array->producer, &captured, &call->error);
    if (status == GK_OK && captured)
        status = gk_fail(&call->error, GK_VALUE_ERROR, GK_ON_CAPTURED_STREAM);
    return gk_call_blame(call, status);
}

gk_status gk_call_wait(gk_call *call, const gk_array *array) {
    gk_backend *backend = call->backend;
    if (!is_elsewhere(call, array) || array->producer == call->waited)
        return GK_OK;
    call->waited = array->producer;
    return gk_call_blame(call, backend->wait(backend, call->stream, array->producer, &call->error));
}

gk_status gk_call_rejoin(gk_call *call, const gk_array *array) {
    gk_backend *backend = call->backend;
    bool together = true;
    gk_status status = GK_OK;
    if (!is_elsewhere(call, array) || array->producer == call->rejoined)
        return GK_OK;
    call->rejoined = array->producer;
    if (call->captured) /* what is not captured itself does not wait for a graph */
        status = backend->captured(backend, array->producer, &together, &call->error);
    if (status == GK_OK && together)
        status = backend->wait(backend, array->producer, call->stream, &call->error);
    return gk_call_blame(call, status);
}

/* Give back all but the first `kept` temporaries. */
static void release_temporaries(gk_call *call, int kept) {
    while (call->temporary_count > kept)
        call->backend->release(call->backend, call->temporaries[--call->temporary_count],
                               call->stream);
}

void gk_call_end(gk_call *call) {
    release_temporaries(call, 0);
}

gk_call gk_call_part(const gk_call *whole, gk_stream stream) {
    gk_call part = *whole;
    part.stream = stream;
    part.temporary_count = 0;
    return part;
}

/* A profiled phase runs from an idle stream to an idle stream. */
static double phase_start(const gk_call *call) {
    return call->phases ? gk_seconds() : 0.0;
}

static gk_status phase_end(gk_call *call, gk_status status, double start, double *phase) {
    if (status == GK_OK && call->phases) {
        status = call->backend->synchronize(call->backend, call->stream, &call->error);
        *phase += gk_seconds() - start;
    }
    return gk_call_blame(call, status);
}

#define GK_PHASE(call, name) ((call)->phases ? &(call)->phases->name : NULL)

typedef gk_status (*gk_allocator)(gk_backend *, size_t, gk_stream, void **, gk_error *);

static gk_status allocate(gk_call *call, gk_allocator from, size_t bytes, void **device) {
    double start = phase_start(call);
    gk_status status = from(call->backend, bytes, call->stream, device, &call->error);
    if (status != GK_OK || !call->phases)
        return gk_call_blame(call, status);
    status = phase_end(call, status, start, GK_PHASE(call, allocate));
    if (status != GK_OK)
        call->backend->release(call->backend, *device, call->stream);
    return status;
}

gk_status gk_call_allocate(gk_call *call, size_t bytes, void **device) {
    gk_backend *backend = call->backend;
    return allocate(call, call->captured ? backend->allocate_lasting : backend->allocate, bytes,
                    device);
}

gk_status gk_call_temporary(gk_call *call, size_t bytes, void **device) {
    if (call->temporary_count == GK_MAX_TEMPORARIES)
        return gk_call_blame(call, gk_fail(&call->error, GK_VALUE_ERROR, "more than %d temporaries",
                                           GK_MAX_TEMPORARIES));
    gk_status status = allocate(call, call->backend->allocate, bytes, device);
    if (status == GK_OK)
        call->temporaries[call->temporary_count++] = *device;
    return status;
}

/* A graph would copy what the host memory holds when it is launched, if it is there then. */
gk_status gk_call_refuse_host(gk_call *call) {
    return gk_call_blame(
        call, gk_fail(&call->error, GK_VALUE_ERROR,
                      "host memory takes part in the call, and its stream is being captured "
                      "in a CUDA graph; bring every array to the device before, with "
                      "gpukern.to_device, and back after it"));
}

gk_status gk_call_copy_in(gk_call *call, void *device, const void *host, size_t bytes) {
    if (bytes == 0)
        return GK_OK;
    if (call->captured)
        return gk_call_refuse_host(call);
    double start = phase_start(call);
    gk_status status =
        call->backend->copy_in(call->backend, device, host, bytes, call->stream, &call->error);
    if (call->phases)
        call->phases->bytes_in += bytes;
    return phase_end(call, status, start, GK_PHASE(call, host_to_device));
}

gk_status gk_call_start_copy_in(gk_call *call, void *device, const void *pinned, size_t bytes) {
    if (bytes == 0)
        return GK_OK;
    double start = phase_start(call);
    gk_status status = call->backend->start_copy_in(call->backend, device, pinned, bytes,
                                                    call->stream, &call->error);
    if (call->phases)
        call->phases->bytes_in += bytes;
    return phase_end(call, status, start, GK_PHASE(call, host_to_device));
}

gk_status gk_call_copy_out(gk_call *call, void *host, const void *device, size_t bytes) {
    if (bytes == 0)
        return GK_OK;
    if (call->captured)
        return gk_call_refuse_host(call);
    double start = phase_start(call);
    gk_status status =
        call->backend->copy_out(call->backend, host, device, bytes, call->stream, &call->error);
    /* The copy is over when it returns: nothing to wait for, so nothing that can fail after it. */
    if (call->phases) {
        call->phases->bytes_out += bytes;
        call->phases->device_to_host += gk_seconds() - start;
    }
    return gk_call_blame(call, status);
}

gk_status gk_call_copy_within(gk_call *call, void *to, const void *from, size_t bytes) {
    if (bytes == 0)
        return GK_OK;
    double start = phase_start(call);
    gk_status status =
        call->backend->copy_within(call->backend, to, from, bytes, call->stream, &call->error);
    return phase_end(call, status, start, GK_PHASE(call, kernel));
}

gk_status gk_call_zero(gk_call *call, void *device, size_t bytes) {
    if (bytes == 0)
        return GK_OK;
    double start = phase_start(call);
    gk_status status =
        call->backend->zero(call->backend, device, bytes, call->stream, &call->error);
    return phase_end(call, status, start, GK_PHASE(call, kernel));
}

gk_status gk_call_stream_memory(gk_call *call, size_t bytes, gk_stream_memory *memory) {
    gk_backend *backend = call->backend;
    return gk_call_blame(
        call, backend->stream_memory(backend, call->stream, bytes, memory, &call->error));
}

/* Work of a kernel or a library: timed by events on the device, and waited for under strict(). */
typedef gk_status (*gk_work)(gk_call *call, const void *what);

static gk_status timed(gk_call *call, gk_work work, const void *what) {
    gk_backend *backend = call->backend;
    gk_event *from = NULL, *to = NULL;
    double seconds = 0.0;
    gk_status status = backend->event_new(backend, &from, &call->error);
    if (status == GK_OK)
        status = backend->event_new(backend, &to, &call->error);
    if (status == GK_OK)
        status = backend->record(backend, from, call->stream, &call->error);
    if (status == GK_OK)
        status = work(call, what);
    if (status == GK_OK)
        status = backend->record(backend, to, call->stream, &call->error);
    if (status == GK_OK)
        status = backend->elapsed(backend, from, to, &seconds, &call->error);
    call->phases->kernel += seconds;
    backend->event_free(backend, from);
    backend->event_free(backend, to);
    return status;
}

static gk_status perform(gk_call *call, const char *name, gk_work work, const void *what) {
    gk_status status = call->phases ? timed(call, work, what) : work(call, what);
    if (status == GK_OK && call->strict) {
        status = call->backend->synchronize(call->backend, call->stream, &call->error);
        if (status != GK_OK)
            gk_fail_in(&call->error, "in %s: ", name);
    }
    return gk_call_blame(call, status);
}

static gk_status launch_work(gk_call *call, const void *what) {
    return call->backend->launch(call->backend, what, &call->error);
}

static gk_status gemm_work(gk_call *call, const void *what) {
    return call->backend->gemm(call->backend, what, &call->error);
}

gk_status gk_call_launch_sharing(gk_call *call, const gk_row *row, size_t blocks,
                                 size_t shared_bytes, size_t reads, void **arguments) {
    if (blocks == 0)
        return GK_OK;
    if (blocks > INT32_MAX)
        return gk_call_blame(call, gk_fail(&call->error, GK_VALUE_ERROR,
                                           "%zu blocks of %s are more than a grid takes (%d)",
                                           blocks, row->symbol, INT32_MAX));
    gk_launch made = {.row = row,
                      .grid = {(unsigned)blocks, 1, 1},
                      .block = {(unsigned)row->threads, 1, 1},
                      .shared_bytes = shared_bytes,
                      .arguments = arguments,
                      .stream = call->stream,
                      .reads = reads};
    return perform(call, row->symbol, launch_work, &made);
}

gk_status gk_call_launch(gk_call *call, const gk_row *row, size_t blocks, void **arguments) {
    return gk_call_launch_sharing(call, row, blocks, row->shared_bytes, 0, arguments);
}

gk_status gk_call_launch_kernel(gk_call *call, gk_launch *launch) {
    launch->stream = call->stream;
    return perform(call, launch->kernel->name, launch_work, launch);
}

static gk_status launch_part(gk_call *call, const gk_row *whole, const gk_part *part,
                             void **arguments) {
    const gk_row *row;
    gk_status status = gk_call_blame(call, gk_row_named(GK_OP_matmul_part, part->name, whole->dtype,
                                                        call->backend, &row, &call->error));
    return status == GK_OK ? gk_call_launch(call, row, part->blocks, arguments) : status;
}

gk_status gk_call_prepared(gk_call *call, const gk_row *row, const void *problem) {
    gk_prepared prepared = {.problem = problem};
    gk_room room = row->workspace ? row->workspace(problem) : (gk_room){0};
    int before = call->temporary_count;
    gk_status status = GK_OK;
    if (room.bytes > 0)
        status = gk_call_temporary(call, room.bytes, &prepared.workspace);
    if (status == GK_OK)
        status = gk_call_zero(call, prepared.workspace, room.zeroed);
    if (status == GK_OK)
        status = gk_call_blame(call, row->prepare(call->backend, &prepared, &call->error));
    for (int i = 0; i < prepared.part_count && status == GK_OK; i++)
        status = launch_part(call, row, &prepared.parts[i], prepared.arguments);
    size_t shared_bytes = prepared.shared_bytes ? prepared.shared_bytes : row->shared_bytes;
    if (status == GK_OK)
        status =
            gk_call_launch_sharing(call, row, prepared.blocks, shared_bytes, 0, prepared.arguments);
    release_temporaries(call, before); /* in the order of the stream: there may be many launches */
    return status;
}

gk_status gk_call_gemm(gk_call *call, const gk_row *row, gk_gemm gemm) {
    gemm.stream = call->stream;
    return perform(call, row->variant, gemm_work, &gemm);
}

gk_status gk_call_choose(gk_call *call, gk_op op, gk_dtype dtype, uintptr_t address_bits,
                         const gk_row **row) {
    const gk_wish wish = {
        .op = op, .dtype = dtype, .address_bits = address_bits, .limit = call->wanted};
    gk_status status = gk_row_chosen(&wish, call->backend, row, &call->error);
    if (status == GK_OK)
        call->ran = *row;
    return gk_call_blame(call, status);
}
