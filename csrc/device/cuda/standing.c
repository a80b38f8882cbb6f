#include "device/cuda/standing.h"

void gk_standing_start(gk_standing *standing, size_t bytes, size_t zeroed, int places) {
    standing->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    standing->bytes = bytes;
    standing->zeroed = zeroed;
    standing->places = places;
}

static bool is_kept(const gk_standing_block *block) {
    return block->memory && block->capture == GK_NOT_CAPTURED;
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

/* Where the block is, or a new one may stand; NULL: nowhere. What a graph owns may be forgotten:
   its capture is over, or takes another one. The driver keeps a stream until its work is done, so
   whoever has its handle next comes after that. */
static gk_standing_block *place_of(gk_standing *standing, gk_stream stream, cuuint64_t capture) {
    gk_standing_block *vacant = NULL, *forgotten = NULL;
    for (int i = 0; i < standing->places; i++) {
        gk_standing_block *at = &standing->blocks[i];
        if (!at->memory)
            vacant = vacant ? vacant : at;
        else if (at->capture == capture && gk_same_stream(at->stream, stream))
            return at;
        else if (at->capture != GK_NOT_CAPTURED && (!forgotten || at->capture < forgotten->capture))
            forgotten = at;
    }
    return vacant ? vacant : forgotten;
}

/* A graph shares what it was captured with, and is its only owner at once. */
static gk_status make(gk_cuda *cuda, const gk_standing *standing, gk_standing_block *made,
                      gk_error *error) {
    gk_backend *base = &cuda->base;
    if (made->capture == GK_NOT_CAPTURED) {
        gk_status status =
            gk_cuda_allocate(base, standing->bytes, made->stream, &made->memory, error);
        if (status == GK_OK && standing->zeroed)
            status = gk_cuda_zero(base, made->memory, standing->zeroed, made->stream, error);
        if (status != GK_OK)
            gk_cuda_release(base, made->memory, made->stream);
        return status;
    }
    gk_status status = gk_cuda_allocate_shared(cuda, standing->bytes, standing->zeroed,
                                               made->stream, &made->memory, error);
    if (status == GK_OK)
        gk_cuda_release(base, made->memory, made->stream);
    return status;
}

gk_status gk_standing_take(gk_cuda *cuda, gk_standing *standing, gk_stream stream, void **memory,
                           gk_error *error) {
    gk_standing_block wanted = {.stream = stream};
    *memory = NULL;
    if (stream == GK_PER_THREAD_STREAM) /* one name for many streams */
        return GK_OK;
    gk_status status = ask_capture(cuda, stream, &wanted.capture, error);
    if (status != GK_OK)
        return status;
    gk_standing_block *place = place_of(standing, stream, wanted.capture);
    if (!place)
        return GK_OK;
    if (!place->memory || place->capture != wanted.capture) {
        status = make(cuda, standing, &wanted, error);
        if (status != GK_OK)
            return status == GK_MEMORY_ERROR ? GK_OK : status;
        *place = wanted;
    }
    *memory = place->memory;
    return GK_OK;
}

void gk_standing_end(gk_cuda *cuda, gk_standing *standing, gk_stream stream) {
    pthread_mutex_lock(&standing->lock);
    for (int i = 0; i < standing->places; i++) {
        gk_standing_block *at = &standing->blocks[i];
        if (is_kept(at) && gk_same_stream(at->stream, stream)) {
            gk_cuda_release(&cuda->base, at->memory, stream);
            at->memory = NULL;
        }
    }
    pthread_mutex_unlock(&standing->lock);
}

size_t gk_standing_bytes(gk_standing *standing) {
    size_t bytes = 0;
    pthread_mutex_lock(&standing->lock);
    for (int i = 0; i < standing->places; i++)
        bytes += is_kept(&standing->blocks[i]) ? standing->bytes : 0;
    pthread_mutex_unlock(&standing->lock);
    return bytes;
}

/* Not on the streams that keep them: those of other libraries may be gone. */
static void free_kept(gk_cuda *cuda, gk_standing *standing) {
    for (int i = 0; i < standing->places; i++) {
        gk_standing_block *at = &standing->blocks[i];
        if (!is_kept(at))
            continue;
        gk_captures_release(cuda->captures, &cuda->driver, CU_STREAM_LEGACY,
                            (CUdeviceptr)at->memory);
        at->memory = NULL;
    }
}

/* Whoever is out of memory may have the lock himself: nobody is waited for. */
CUresult gk_standing_drop(gk_cuda *cuda, gk_standing *standing) {
    bool alone = pthread_mutex_trylock(&standing->lock) == 0;
    CUresult result = cuda->driver.cuCtxSynchronize();
    if (alone && result == CUDA_SUCCESS)
        free_kept(cuda, standing);
    if (alone)
        pthread_mutex_unlock(&standing->lock);
    return result;
}
