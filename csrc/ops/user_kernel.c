#include "ops/user_kernel.h"

#include "engine/pipeline.h"
#include "engine/transfer.h"
#include "ops/bundle.h"

bool gk_points_to(const gk_kernel_parameter *parameter, gk_dtype dtype) {
    gk_kind kind = gk_dtype_kind(dtype);
    bool same_size = gk_dtype_size(dtype) == parameter->scalar_bytes;
    switch (parameter->points_to) {
    case GK_OF_SIGNED:
        return same_size && kind == GK_SIGNED;
    case GK_OF_UNSIGNED:
        return same_size && kind == GK_UNSIGNED;
    case GK_OF_CHAR:
        return same_size && (kind == GK_SIGNED || kind == GK_UNSIGNED);
    case GK_OF_BOOL:
        return kind == GK_BOOLEAN;
    case GK_OF_FLOAT:
        return same_size && gk_is_float(dtype) && dtype != GK_bfloat16;
    case GK_OF_BFLOAT:
        return dtype == GK_bfloat16;
    case GK_OF_POINTER: /* addresses, as integers */
        return dtype == GK_uint64 || dtype == GK_int64;
    case GK_OF_BYTES:
        return dtype == GK_uint8;
    case GK_OF_ANYTHING:
    case GK_OF_UNKNOWN:
    case GK_MADE_OF_COUNT:
        break;
    }
    return true;
}

/* The array on the device: itself, or memory of the run's own. */
static gk_status bring(gk_call *call, gk_kernel_argument *argument) {
    const gk_array *array = &argument->array;
    gk_status status = GK_OK;
    argument->number = 0;
    if (gk_count(array) == 0)
        return GK_OK;
    if (array->place == GK_DEVICE) {
        argument->number = (uintptr_t)array->data;
        return gk_call_wait(call, array);
    }
    if (call->captured)
        return gk_call_refuse_host(call);
    status = gk_call_allocate(call, gk_bytes(array), &argument->staged);
    if (status != GK_OK)
        return status;
    argument->number = (uintptr_t)argument->staged;
    return argument->is_in ? gk_upload(call, array, argument->staged) : GK_OK;
}

static bool is_interrupted(void *context) {
    gk_interruption *interruption = context;
    return interruption->wanted(interruption);
}

static gk_status launch_with(gk_call *call, gk_launch *launch, gk_kernel_argument *arguments,
                             int count) {
    void *values[GK_MOST_PARAMETERS];
    for (int i = 0; i < count; i++) {
        gk_kernel_argument *argument = &arguments[i];
        values[i] = argument->is_array ? &argument->number : (void *)argument->value;
    }
    launch->arguments = values;
    if (call->interruption) {
        launch->interrupted = is_interrupted;
        launch->context = call->interruption;
    }
    return gk_call_launch_kernel(call, launch);
}

/* No array of the user's is written before the kernel has come to its end. */
static gk_status take_back(gk_call *call, const gk_kernel_argument *arguments, int count) {
    gk_backend *backend = call->backend;
    bool is_over = false;
    gk_status status = GK_OK;
    for (int i = 0; i < count && status == GK_OK; i++) {
        if (!arguments[i].staged || !arguments[i].is_out)
            continue;
        if (!is_over)
            status = gk_call_blame(call, backend->synchronize(backend, call->stream, &call->error));
        is_over = true;
        if (status == GK_OK)
            status = gk_download(call, arguments[i].staged, &arguments[i].array);
    }
    return status;
}

static gk_status bring_and_launch(gk_call *call, gk_launch *launch, gk_kernel_argument *arguments,
                                  int count) {
    gk_bundle bundle;
    gk_status status = gk_bundle_begin(&bundle, call, arguments, count);
    for (int i = 0; i < count && status == GK_OK; i++)
        if (arguments[i].is_array && !(bundle.device && gk_is_bundled(&arguments[i])))
            status = bring(call, &arguments[i]);
    if (status == GK_OK)
        status = launch_with(call, launch, arguments, count);
    if (status == GK_OK)
        status = bundle.device ? gk_bundle_deliver(&bundle, call, arguments, count)
                               : take_back(call, arguments, count);
    gk_bundle_end(&bundle, call);
    return status;
}

/* The homes of the arrays wait for what was submitted, also where the run failed after a part. */
static gk_status rejoin(gk_call *call, const gk_kernel_argument *arguments, int count) {
    gk_status status = GK_OK;
    for (int i = 0; i < count && status == GK_OK; i++)
        if (arguments[i].is_array)
            status = gk_call_rejoin(call, &arguments[i].array);
    return status;
}

gk_status gk_user_kernel_run(gk_call *call, gk_launch *launch, gk_kernel_argument *arguments,
                             int count) {
    gk_status status = bring_and_launch(call, launch, arguments, count);
    gk_error first = call->error;
    gk_status joined = rejoin(call, arguments, count);
    for (int i = 0; i < count; i++)
        call->backend->release(call->backend, arguments[i].staged, call->stream);
    if (status == GK_OK)
        return joined;
    call->error = first;
    return status;
}
