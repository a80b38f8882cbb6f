#include "device/cuda/workspaces.h"

/* By how much less is asked for on a device that is full, and how much at the least. */
enum { GK_LESS = 8, GK_LEAST = 64 << 10 };

/* NVIDIA's advice; where the device is too full for so much, cuBLAS takes kernels that need less.
 */
static size_t wanted_bytes(const gk_cuda *cuda) {
    return (size_t)(cuda->base.capability >= 90 ? 32 : 4) << 20;
}

static bool is_kept(const gk_cuda_workspace *workspace) {
    return workspace->memory && workspace->capture == GK_NOT_CAPTURED;
}

/* The number of the capture that the stream takes part in. */
static gk_status ask_capture(gk_cuda *cuda, gk_stream stream, cuuint64_t *capture,
                             gk_error *error) {
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph;
    CUresult result = CUDA_SUCCESS;
    *capture = GK_NOT_CAPTURED;
    if (gk_is_legacy(stream)) /* cannot be captured */
        return GK_OK;
    GK_IN_CONTEXT(
        cuda, result,
        gk_driver_captured_graph(&cuda->driver, (CUstream)stream, &state, capture, &graph));
    if (state == CU_STREAM_CAPTURE_STATUS_NONE)
        *capture = GK_NOT_CAPTURED;
    return gk_cuda_check(cuda, result, "asking whether the stream is being captured", error);
}

/* Where the stream's is, or a new one may stand; NULL: nowhere. What a graph owns may be forgotten:
   its capture is over, or takes another one. */
static gk_cuda_workspace *place_of(gk_cuda *cuda, gk_stream stream, cuuint64_t capture) {
    gk_cuda_workspace *vacant = NULL, *forgotten = NULL;
    for (int i = 0; i < GK_WORKSPACES; i++) {
        gk_cuda_workspace *at = &cuda->workspaces[i];
        if (!at->memory)
            vacant = at;
        else if (at->capture == capture && gk_same_stream(at->stream, stream))
            return at;
        else if (at->capture != GK_NOT_CAPTURED && (!forgotten || at->capture < forgotten->capture))
            forgotten = at;
    }
    return vacant ? vacant : forgotten;
}

/* In a graph the memory is shared with it, and left to it at once. */
static gk_status make_lasting(gk_cuda *cuda, gk_cuda_workspace *made, gk_error *error) {
    gk_status status =
        gk_cuda_allocate_lasting(&cuda->base, made->bytes, made->stream, &made->memory, error);
    if (status == GK_OK && made->capture != GK_NOT_CAPTURED)
        gk_cuda_release(&cuda->base, made->memory, made->stream);
    made->lasts = status == GK_OK;
    return status;
}

/* For the one product. */
static gk_status make_brief(gk_cuda *cuda, gk_cuda_workspace *made, gk_error *error) {
    gk_status status;
    while ((status = gk_cuda_allocate(&cuda->base, made->bytes, made->stream, &made->memory,
                                      error)) == GK_MEMORY_ERROR &&
           made->bytes / GK_LESS >= GK_LEAST)
        made->bytes /= GK_LESS;
    return status;
}

static gk_status find_or_make(gk_cuda *cuda, gk_stream stream, gk_cuda_workspace *taken,
                              gk_error *error) {
    *taken = (gk_cuda_workspace){.stream = stream, .bytes = wanted_bytes(cuda)};
    if (stream == GK_PER_THREAD_STREAM) /* one name for many streams */
        return make_brief(cuda, taken, error);
    gk_status status = ask_capture(cuda, stream, &taken->capture, error);
    if (status != GK_OK)
        return status;
    gk_cuda_workspace *place = place_of(cuda, stream, taken->capture);
    if (place && place->memory && place->capture == taken->capture) {
        *taken = *place;
        return GK_OK;
    }
    if (!place)
        return make_brief(cuda, taken, error);
    status = make_lasting(cuda, taken, error);
    if (status == GK_OK)
        *place = *taken;
    taken->bytes /= status == GK_MEMORY_ERROR ? GK_LESS : 1;
    return status == GK_MEMORY_ERROR ? make_brief(cuda, taken, error) : status;
}

gk_status gk_cuda_workspace_take(gk_cuda *cuda, gk_stream stream, gk_cuda_workspace *taken,
                                 gk_error *error) {
    pthread_mutex_lock(&cuda->gemm_lock);
    gk_status status = find_or_make(cuda, stream, taken, error);
    if (status != GK_OK)
        pthread_mutex_unlock(&cuda->gemm_lock);
    return status;
}

void gk_cuda_workspace_give(gk_cuda *cuda, const gk_cuda_workspace *taken) {
    if (!taken->lasts)
        gk_cuda_release(&cuda->base, taken->memory, taken->stream);
    pthread_mutex_unlock(&cuda->gemm_lock);
}

void gk_cuda_workspace_end(gk_cuda *cuda, gk_stream stream) {
    pthread_mutex_lock(&cuda->gemm_lock);
    for (int i = 0; i < GK_WORKSPACES; i++) {
        gk_cuda_workspace *at = &cuda->workspaces[i];
        if (is_kept(at) && gk_same_stream(at->stream, stream)) {
            gk_cuda_release(&cuda->base, at->memory, stream);
            at->memory = NULL;
        }
    }
    pthread_mutex_unlock(&cuda->gemm_lock);
}

size_t gk_cuda_workspace_bytes(gk_cuda *cuda) {
    size_t bytes = 0;
    pthread_mutex_lock(&cuda->gemm_lock);
    for (int i = 0; i < GK_WORKSPACES; i++)
        bytes += is_kept(&cuda->workspaces[i]) ? cuda->workspaces[i].bytes : 0;
    pthread_mutex_unlock(&cuda->gemm_lock);
    return bytes;
}

/* Not on the streams that keep them: those of other libraries may be gone. */
static void free_kept(gk_cuda *cuda) {
    for (int i = 0; i < GK_WORKSPACES; i++) {
        gk_cuda_workspace *at = &cuda->workspaces[i];
        if (!is_kept(at))
            continue;
        gk_captures_release(cuda->captures, &cuda->driver, CU_STREAM_LEGACY,
                            (CUdeviceptr)at->memory);
        at->memory = NULL;
    }
}

/* Whoever is out of memory may be enqueuing a product itself: nobody is waited for. */
CUresult gk_cuda_workspaces_drop(gk_cuda *cuda) {
    bool alone = pthread_mutex_trylock(&cuda->gemm_lock) == 0;
    CUresult result = cuda->driver.cuCtxSynchronize();
    if (alone && result == CUDA_SUCCESS)
        free_kept(cuda);
    if (alone)
        pthread_mutex_unlock(&cuda->gemm_lock);
    return result;
}
