#include "device/cuda/capture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef enum block_kind { NODE, SHARED, LEFT } block_kind;

/* Of what a graph shares with the calls on one stream of it, one after another: it has so many
   bytes, where arrays have none, and waits for the next call when it has been released. */
typedef struct piece {
    size_t bytes;
    CUstream stream;
    cuuint64_t capture; /* the driver's number of it */
    bool released;
} piece;

typedef struct block {
    block_kind kind;
    int owners; /* of a shared one: the array, or a call, and the graph */
    CUdeviceptr pointer;
    CUstream stream; /* of one that is left for later: what orders its end */
    piece piece;
    struct gk_captures *captures;
    struct block *next;
} block;

struct gk_captures {
    pthread_mutex_t lock; /* never held across a call of the driver: its own thread takes it too */
    block *blocks;
    atomic_int count, left; /* of blocks, and of those that are left for later */
    bool closed;            /* the last block takes this with it */
};

gk_captures *gk_captures_new(void) {
    gk_captures *captures = calloc(1, sizeof *captures);
    if (captures)
        captures->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    return captures;
}

static void destroy(gk_captures *captures) {
    pthread_mutex_destroy(&captures->lock);
    free(captures);
}

/* A graph that is still there keeps what its destructor will ask for. */
void gk_captures_free(gk_captures *captures) {
    if (!captures)
        return;
    pthread_mutex_lock(&captures->lock);
    block *kept = NULL;
    while (captures->blocks) {
        block *at = captures->blocks;
        captures->blocks = at->next;
        if (at->kind == SHARED) {
            at->next = kept;
            kept = at;
        } else {
            free(at);
        }
    }
    captures->blocks = kept;
    captures->closed = true;
    pthread_mutex_unlock(&captures->lock);
    if (!kept)
        destroy(captures);
}

static bool is_legacy(CUstream stream) {
    return !stream || stream == CU_STREAM_LEGACY;
}

CUresult gk_is_captured(const gk_driver *driver, CUstream stream, bool *captured) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    *captured = false;
    if (is_legacy(stream)) /* cannot be captured */
        return CUDA_SUCCESS;
    CUresult result = driver->cuStreamIsCapturing(stream, &status);
    *captured = status != CU_STREAM_CAPTURE_STATUS_NONE;
    return result;
}

CUstreamCaptureMode gk_relax(const gk_driver *driver) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)driver->cuThreadExchangeStreamCaptureMode(&mode); /* fails only on a bad mode */
    return mode;
}

void gk_restrict(const gk_driver *driver, CUstreamCaptureMode mode) {
    (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
}

static block *add(gk_captures *captures, block_kind kind, CUdeviceptr pointer, CUstream stream) {
    block *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    pthread_mutex_lock(&captures->lock);
    *made = (block){.kind = kind,
                    .owners = kind == SHARED ? 2 : 1,
                    .pointer = pointer,
                    .stream = stream,
                    .captures = captures,
                    .next = captures->blocks};
    captures->blocks = made;
    atomic_fetch_add(&captures->count, 1);
    atomic_fetch_add(&captures->left, kind == LEFT);
    pthread_mutex_unlock(&captures->lock);
    return made;
}

/* Under the lock. */
static block **find(gk_captures *captures, CUdeviceptr pointer) {
    block **at = &captures->blocks;
    while (*at && ((*at)->pointer != pointer || (*at)->kind == LEFT))
        at = &(*at)->next;
    return at;
}

/* Under the lock; the block is the caller's. */
static block *take(gk_captures *captures, block **at) {
    block *taken = *at;
    *at = taken->next;
    atomic_fetch_sub(&captures->count, 1);
    atomic_fetch_sub(&captures->left, taken->kind == LEFT);
    return taken;
}

CUresult gk_captures_note_node(gk_captures *captures, CUdeviceptr pointer) {
    return add(captures, NODE, pointer, NULL) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The graph is gone. Runs on a thread of the driver, where the driver may not be called. */
static void CUDA_CB graph_is_gone(void *data) {
    block *shared = data;
    gk_captures *captures = shared->captures;
    bool last = false;
    pthread_mutex_lock(&captures->lock);
    if (captures->closed) {
        free(take(captures, find(captures, shared->pointer)));
        last = !captures->blocks;
    } else if (--shared->owners == 0) {
        shared->kind = LEFT;
        atomic_fetch_add(&captures->left, 1);
    }
    pthread_mutex_unlock(&captures->lock);
    if (last)
        destroy(captures);
}

static CUresult graph_of(const gk_driver *driver, CUstream stream, cuuint64_t *capture,
                         CUgraph *graph) {
    CUstreamCaptureStatus status;
    CUresult result = gk_driver_captured_graph(driver, stream, &status, capture, graph);
    return result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_ACTIVE
               ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
               : result;
}

CUresult gk_captures_share(gk_captures *captures, const gk_driver *driver, CUstream stream,
                           CUdeviceptr pointer, size_t bytes) {
    cuuint64_t capture;
    CUgraph graph = NULL;
    CUuserObject object = NULL;
    CUresult result = graph_of(driver, stream, &capture, &graph);
    if (result != CUDA_SUCCESS)
        return result;
    block *shared = add(captures, SHARED, pointer, CU_STREAM_LEGACY);
    if (!shared)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = driver->cuUserObjectCreate(&object, shared, graph_is_gone, 1,
                                        CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (result != CUDA_SUCCESS) {
        graph_is_gone(shared); /* there is none to tell */
        return result;
    }
    result = driver->cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    if (result != CUDA_SUCCESS) {
        (void)driver->cuUserObjectRelease(object, 1); /* calls graph_is_gone */
        return result;
    }
    pthread_mutex_lock(&captures->lock);
    shared->piece = (piece){bytes, stream, capture, false};
    pthread_mutex_unlock(&captures->lock);
    return CUDA_SUCCESS;
}

CUresult gk_captures_take_piece(gk_captures *captures, const gk_driver *driver, CUstream stream,
                                size_t bytes, CUdeviceptr *pointer) {
    cuuint64_t capture;
    CUgraph graph;
    *pointer = 0;
    CUresult result = graph_of(driver, stream, &capture, &graph);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&captures->lock);
    for (block *at = captures->blocks; at && !*pointer; at = at->next) {
        piece *of = &at->piece;
        if (at->kind == SHARED && of->released && of->capture == capture && of->stream == stream &&
            of->bytes >= bytes) {
            of->released = false;
            at->owners++;
            *pointer = at->pointer;
        }
    }
    pthread_mutex_unlock(&captures->lock);
    return CUDA_SUCCESS;
}

/* The legacy stream is out of use while a stream that waits for it is being captured, and to ask is
   the one call on it that does not end that capture. */
static bool is_blocked(const gk_driver *driver, CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = driver->cuStreamIsCapturing(stream, &status);
    return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Now, or when the stream is out of its capture. What no record can be had for is never freed:
   there is nobody to tell. Relaxed, since a free outside of somebody's capture ends that one. */
static void free_block(gk_captures *captures, const gk_driver *driver, CUstream stream,
                       CUdeviceptr pointer) {
    CUstreamCaptureMode mode = gk_relax(driver);
    if (is_blocked(driver, stream))
        (void)add(captures, LEFT, pointer, stream);
    else
        (void)driver->cuMemFreeAsync(pointer, stream); /* fails only after a fault: told later */
    gk_restrict(driver, mode);
}

void gk_captures_release(gk_captures *captures, const gk_driver *driver, CUstream stream,
                         CUdeviceptr pointer) {
    bool is_node = false, others = false;
    if (atomic_load_explicit(&captures->count, memory_order_acquire)) {
        pthread_mutex_lock(&captures->lock);
        block **at = find(captures, pointer);
        if (*at) {
            is_node = (*at)->kind == NODE;
            (*at)->piece.released = others = --(*at)->owners > 0;
            if (!others)
                free(take(captures, at));
        }
        pthread_mutex_unlock(&captures->lock);
    }
    if (is_node)
        (void)driver->cuMemFreeAsync(pointer, stream);
    else if (!others)
        free_block(captures, driver, stream, pointer);
    gk_captures_settle(captures, driver);
}

void gk_captures_settle(gk_captures *captures, const gk_driver *driver) {
    if (!atomic_load_explicit(&captures->left, memory_order_acquire))
        return;
    block *ready = NULL, *next;
    pthread_mutex_lock(&captures->lock);
    for (block **at = &captures->blocks; *at;) {
        if ((*at)->kind != LEFT) {
            at = &(*at)->next;
            continue;
        }
        block *taken = take(captures, at);
        taken->next = ready;
        ready = taken;
    }
    pthread_mutex_unlock(&captures->lock);
    for (; ready; ready = next) {
        next = ready->next;
        free_block(captures, driver, ready->stream, ready->pointer);
        free(ready);
    }
}

void gk_captures_leave(gk_captures *captures, const gk_driver *driver, CUstream stream) {
    gk_captures_settle(captures, driver);
    if (!atomic_load_explicit(&captures->left, memory_order_acquire))
        return;
    CUstreamCaptureMode mode = gk_relax(driver);
    (void)driver->cuStreamSynchronize(stream); /* fails for a broken capture, which runs no more */
    gk_restrict(driver, mode);
    pthread_mutex_lock(&captures->lock);
    for (block *at = captures->blocks; at; at = at->next)
        if (at->kind == LEFT && at->stream == stream)
            at->stream = CU_STREAM_LEGACY;
    pthread_mutex_unlock(&captures->lock);
}
