#include "ops/reduce_parts.h"

#include "engine/nest.h"
#include "engine/transfer.h"

enum { FEW_RESULTS = 64 }; /* times less bytes than the array: they may come back at the end */

/* by slabs ---------------------------------------------------------------------------------------
 */

/* Where results are no small part of it all, they come back while others are on their way in: slabs
   of some results each, as they follow one another. */
typedef struct slabs {
    gk_call *call;
    const gk_reduction_operation *kind;
    gk_reduce_stages stages; /* of the whole array: a slab's results have the same bits */
    gk_array a, result;      /* on the host */
    uint64_t reduced;
    int axis;     /* the kept one that is cut; of those in front of it a slab has one element */
    int64_t side; /* of the slabs along it, but the last one may have less */
} slabs;

/* The outermost kept axis of which a slab can have several elements, or one, and room for the
   results: those of few small elements are more bytes than these. False: there is none. */
static bool choose_axis(slabs *of, size_t most) {
    size_t bytes = gk_bytes(&of->a), results = gk_bytes(&of->result);
    for (of->axis = 0; of->axis < of->a.ndim; of->axis++) {
        const int64_t length = of->a.shape[of->axis];
        if (gk_is_reduced(of->reduced, of->axis) || length == 1)
            continue;
        bytes /= (size_t)length;
        results /= (size_t)length;
        const size_t more = bytes > results ? bytes : results;
        if (more <= most) {
            of->side = (int64_t)(most / more) < length ? (int64_t)(most / more) : length;
            return true;
        }
    }
    return false;
}

static size_t count_slabs(const slabs *of) {
    size_t count = (size_t)gk_parts_of(of->a.shape[of->axis], of->side);
    for (int i = 0; i < of->axis; i++)
        count *= gk_is_reduced(of->reduced, i) ? 1 : (size_t)of->a.shape[i];
    return count;
}

static void view_slab(const void *context, size_t number, gk_array *operands, gk_array *result) {
    const slabs *of = context;
    const size_t along = (size_t)gk_parts_of(of->a.shape[of->axis], of->side);
    int64_t before = (int64_t)(number / along) * of->a.shape[of->axis]; /* elements of that axis */
    int64_t begin = (int64_t)(number % along) * of->side, left = of->a.shape[of->axis] - begin;
    gk_array *slab = &operands[0];
    size_t results = 1;
    *slab = of->a;
    slab->data = (char *)slab->data + begin * slab->strides[of->axis];
    slab->shape[of->axis] = left < of->side ? left : of->side;
    number /= along;
    for (int i = of->axis - 1; i >= 0; i--) {
        if (gk_is_reduced(of->reduced, i))
            continue;
        slab->data =
            (char *)slab->data + (int64_t)(number % (size_t)of->a.shape[i]) * of->a.strides[i];
        number /= (size_t)of->a.shape[i];
        slab->shape[i] = 1;
    }
    for (int i = of->axis + 1; i < of->a.ndim; i++)
        results *= gk_is_reduced(of->reduced, i) ? 1 : (size_t)of->a.shape[i];
    *result = of->result;
    result->ndim = 1;
    result->shape[0] = slab->shape[of->axis] * (int64_t)results;
    result->strides[0] = (int64_t)gk_dtype_size(result->dtype);
    result->data = (char *)result->data + (before + begin) * (int64_t)results * result->strides[0];
}

static gk_status reduce_slab(void *context, gk_stream stream, const gk_array *operands,
                             gk_array *result, size_t number, gk_error *error) {
    slabs *of = context;
    gk_call call = gk_call_part(of->call, stream);
    (void)number;
    call.phases = NULL;
    gk_status status = gk_run_part(of->kind, &call, of->reduced, &of->stages, operands, result);
    of->call->ran = call.ran; /* a profile names it */
    gk_call_end(&call);
    if (status != GK_OK)
        *error = call.error;
    return status;
}

/* Not `done` where results are few, or a slab would be more than a chunk. */
static gk_status flow_slabs(slabs *of, bool *done) {
    gk_flow flow = {.part = view_slab,
                    .operand_count = 1,
                    .operands = {of->a},
                    .work = reduce_slab,
                    .context = of,
                    .has_result = true,
                    .result = of->result};
    gk_call_limit(of->call, &flow);
    *done = gk_bytes(&of->result) >= gk_bytes(&of->a) / FEW_RESULTS && choose_axis(of, flow.chunk);
    if (!*done)
        return GK_OK;
    flow.parts = count_slabs(of);
    return gk_call_flow(of->call, &flow);
}

/* by panels --------------------------------------------------------------------------------------
 */

typedef struct panels {
    gk_call *call;
    const gk_reduction_operation *kind;
    gk_reduce_stages stages; /* of the whole array: a panel's results have the same bits */
    uint64_t reduced;
    size_t limit;    /* bytes of a panel */
    gk_array result; /* on the host, contiguous */
    size_t done;     /* elements of it */
} panels;

/* The results of a part follow those of the parts before it. */
static gk_array next_results(const panels *of, const gk_array *part) {
    gk_array next = {.place = GK_HOST, .dtype = of->result.dtype, .ndim = 1, .shape = {1}};
    for (int i = 0; i < part->ndim; i++)
        next.shape[0] *= gk_is_reduced(of->reduced, i) ? 1 : part->shape[i];
    next.strides[0] = (int64_t)gk_dtype_size(next.dtype);
    next.data = (char *)of->result.data + of->done * gk_dtype_size(next.dtype);
    return next;
}

static gk_status run_panel(panels *of, const gk_array *part) {
    gk_call call = gk_call_part(of->call, of->call->stream);
    gk_array there, host = next_results(of, part), result = host;
    result.place = GK_DEVICE;
    gk_status status = gk_upload_lying(&call, part, &there);
    if (status == GK_OK)
        status = gk_call_temporary(&call, gk_bytes(&result), &result.data);
    if (status == GK_OK)
        status = gk_run_part(of->kind, &call, of->reduced, &of->stages, &there, &result);
    if (status == GK_OK)
        status = gk_download(&call, result.data, &host);
    gk_call_end(&call);
    if (status != GK_OK)
        of->call->error = call.error;
    else
        of->done += gk_count(&host);
    return status;
}

/* Halves along the first kept axis that is longer than 1, so that results follow one another: where
   a part is above the limit, or the device turns out to have no room for it. */
static gk_status run_panels(panels *of, const gk_array *part) {
    const uint64_t reduced = of->reduced;
    int axis = 0;
    if (gk_interrupted(of->call->interruption, &of->call->error))
        return GK_INTERRUPTED;
    while (axis < part->ndim && (gk_is_reduced(reduced, axis) || part->shape[axis] == 1))
        axis++;
    if (gk_bytes(part) <= of->limit || axis == part->ndim) {
        gk_status whole = run_panel(of, part);
        if (whole != GK_MEMORY_ERROR || axis == part->ndim)
            return whole;
        of->limit = gk_bytes(part) / 2;
    }
    gk_array half = *part;
    half.shape[axis] = (part->shape[axis] + 1) / 2;
    gk_status status = run_panels(of, &half);
    half.data = (char *)part->data + half.shape[axis] * part->strides[axis];
    half.shape[axis] = part->shape[axis] - half.shape[axis];
    return status == GK_OK ? run_panels(of, &half) : status;
}

gk_status gk_reduce_in_parts(const gk_reduction_operation *kind, gk_call *call, uint64_t reduced,
                             const gk_array *a, const gk_array *result) {
    const size_t limit = atomic_load(&call->engine->device_limit);
    slabs by_slabs = {.call = call, .kind = kind, .a = *a, .result = *result, .reduced = reduced};
    by_slabs.stages = gk_plan_stages(kind, call, a, reduced, result->dtype);
    bool done;
    gk_status status = flow_slabs(&by_slabs, &done);
    if (done && status != GK_MEMORY_ERROR)
        return status;
    panels by_panels = {.call = call,
                        .kind = kind,
                        .stages = by_slabs.stages,
                        .reduced = reduced,
                        .limit = limit ? limit : SIZE_MAX,
                        .result = *result};
    return run_panels(&by_panels, a);
}
