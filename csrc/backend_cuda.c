#include "backend_cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "cublas.h"
#include "driver.h"
#include "registry.h"

/* The compiled kernels, one fatbin a .cu file, embedded by the build. */
#define GK_FAMILY(name) extern const unsigned char gk_fatbin_##name[];
#include "gk_families.h"
#undef GK_FAMILY

static const struct {
    const char *name;
    const unsigned char *image;
} families[] = {
#define GK_FAMILY(name) {#name, gk_fatbin_##name},
#include "gk_families.h"
#undef GK_FAMILY
};

enum { FAMILIES = sizeof families / sizeof families[0] };

typedef struct gk_cuda {
    gk_backend base;
    gk_driver driver;
    CUdevice device;
    CUcontext context; /* the primary one, so that PyTorch, CuPy and Numba share it */
    CUmemoryPool pool;
    pthread_mutex_t lock; /* guards what is loaded or made at first use: modules, functions, the
                             event and the stream */
    CUmodule modules[FAMILIES];
    _Atomic(CUfunction) *functions; /* one a row of the registry; NULL until first launched */
    _Atomic(const gk_row *) last_launch;
    atomic_bool is_lost;
    gk_error lost;  /* what every call says after a fault that took the context */
    CUevent joint;  /* recorded and waited for at once, under the lock */
    CUstream aside; /* for what is done beside a capture */
    gk_captures *captures;
    pthread_mutex_t
        cublas_lock; /* of its own: whoever looks for cuBLAS asks Python for the place */
    gk_cublas *cublas;
    gk_error cublas_problem;
    gk_locator locate;
    void *locate_context;
} gk_cuda;

struct gk_event {
    CUevent handle;
};

/* After these the context answers every call with the same error until the process ends. */
static bool is_sticky(CUresult result) {
    switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return true;
    default:
        return false;
    }
}

static gk_status lose(gk_cuda *cuda, CUresult result, gk_error *error) {
    pthread_mutex_lock(&cuda->lock);
    if (!atomic_load(&cuda->is_lost)) {
        const gk_row *row = atomic_load(&cuda->last_launch);
        gk_fail(&cuda->lost, GK_DEVICE_LOST,
                "the device was lost: %s after %s%s; no call can succeed in this process any more, "
                "so start a new one (with gpukern.strict() a fault is blamed on its own call)",
                gk_driver_error_name(&cuda->driver, result),
                row ? "the last kernel that gpukern launched, " : "work of another library",
                row ? row->symbol : "");
        atomic_store(&cuda->is_lost, true);
    }
    pthread_mutex_unlock(&cuda->lock);
    *error = cuda->lost;
    return GK_DEVICE_LOST;
}

static gk_status check(gk_cuda *cuda, CUresult result, const char *doing, gk_error *error) {
    if (result == CUDA_SUCCESS)
        return GK_OK;
    if (is_sticky(result) || atomic_load(&cuda->is_lost))
        return lose(cuda, result, error);
    const char *text = NULL;
    if (cuda->driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
        text = "no description";
    bool capture = result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
                   result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    return gk_fail(error, GK_CUDA_ERROR, "%s failed: %s (%s)%s", doing,
                   gk_driver_error_name(&cuda->driver, result), text,
                   capture ? "; to be part of a CUDA graph a call needs stream=, the stream that "
                             "is being captured"
                           : "");
}

/* Make the primary context current for the expression and give the thread back what it had. */
static CUresult enter(const gk_cuda *cuda, bool *pushed) {
    CUcontext current = NULL;
    *pushed = false;
    CUresult result = cuda->driver.cuCtxGetCurrent(&current);
    if (result != CUDA_SUCCESS || current == cuda->context)
        return result;
    result = cuda->driver.cuCtxPushCurrent(cuda->context);
    *pushed = result == CUDA_SUCCESS;
    return result;
}

static void leave(const gk_cuda *cuda, bool pushed) {
    CUcontext popped;
    if (pushed)
        (void)cuda->driver.cuCtxPopCurrent(&popped); /* fails only where the context is gone */
}

#define GK_IN_CONTEXT(cuda, result, expression)                                                    \
    do {                                                                                           \
        bool gk_pushed;                                                                            \
        result = enter(cuda, &gk_pushed);                                                          \
        if (result == CUDA_SUCCESS)                                                                \
            result = (expression);                                                                 \
        leave(cuda, gk_pushed);                                                                    \
    } while (0)

static gk_status out_of_memory(gk_cuda *cuda, size_t bytes, CUresult result, gk_error *error) {
    const gk_driver *driver = &cuda->driver;
    size_t available = 0, total = 0;
    CUresult asked_free;
    GK_IN_CONTEXT(cuda, asked_free, driver->cuMemGetInfo(&available, &total));
    if (asked_free != CUDA_SUCCESS)
        return check(cuda, result, "allocating device memory", error);
    return gk_fail(error, GK_MEMORY_ERROR, "out of device memory: %zu bytes asked, %zu free of %zu",
                   bytes, available, total);
}

static gk_status cuda_captured(gk_backend *base, gk_stream stream, bool *captured,
                               gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, gk_is_captured(&cuda->driver, (CUstream)stream, captured));
    return check(cuda, result, "asking whether the stream is being captured", error);
}

/* What was freed is in the pool until its stream has passed it: wait, then ask again. */
static CUresult allocate_again(gk_cuda *cuda, CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    const gk_driver *driver = &cuda->driver;
    CUresult result = driver->cuCtxSynchronize();
    if (result == CUDA_SUCCESS)
        result = driver->cuMemPoolTrimTo(cuda->pool, 0);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemAllocFromPoolAsync(pointer, bytes, cuda->pool, stream);
    return result;
}

/* In the context. */
static CUresult allocate_in_order(gk_cuda *cuda, CUdeviceptr *pointer, size_t bytes,
                                  CUstream stream) {
    const gk_driver *driver = &cuda->driver;
    bool captured;
    gk_captures_settle(cuda->captures, driver);
    CUresult result = gk_is_captured(driver, stream, &captured);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemAllocFromPoolAsync(pointer, bytes, cuda->pool, stream);
    if (result == CUDA_SUCCESS && captured) {
        result = gk_captures_note_node(cuda->captures, *pointer);
        if (result != CUDA_SUCCESS)
            (void)driver->cuMemFreeAsync(*pointer, stream);
    } else if (result == CUDA_ERROR_OUT_OF_MEMORY && !captured) {
        result = allocate_again(cuda, pointer, bytes, stream);
    }
    return result;
}

static gk_status cuda_allocate(gk_backend *base, size_t bytes, gk_stream stream, void **device,
                               gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUdeviceptr pointer = 0;
    CUresult result;
    size_t asked = bytes ? bytes : 1; /* an empty array has an address too */
    GK_IN_CONTEXT(cuda, result, allocate_in_order(cuda, &pointer, asked, (CUstream)stream));
    if (result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_INVALID_VALUE)
        return out_of_memory(cuda, bytes, result, error);
    *device = (void *)pointer;
    return check(cuda, result, "allocating device memory", error);
}

/* In the context, relaxed. The memory is there before anything that is captured can run. */
static CUresult allocate_aside(gk_cuda *cuda, CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    const gk_driver *driver = &cuda->driver;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&cuda->lock);
    if (!cuda->aside)
        result = driver->cuStreamCreate(&cuda->aside, CU_STREAM_NON_BLOCKING);
    pthread_mutex_unlock(&cuda->lock);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemAllocFromPoolAsync(pointer, bytes, cuda->pool, cuda->aside);
    if (result != CUDA_SUCCESS)
        return result;
    result = driver->cuStreamSynchronize(cuda->aside);
    if (result == CUDA_SUCCESS)
        result = gk_captures_share(cuda->captures, driver, stream, *pointer);
    if (result != CUDA_SUCCESS)
        gk_captures_release(cuda->captures, driver, cuda->aside, *pointer);
    return result;
}

static gk_status cuda_allocate_lasting(gk_backend *base, size_t bytes, gk_stream stream,
                                       void **device, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUdeviceptr pointer = 0;
    CUresult result;
    bool captured;
    gk_status status = cuda_captured(base, stream, &captured, error);
    if (status != GK_OK || !captured)
        return status == GK_OK ? cuda_allocate(base, bytes, stream, device, error) : status;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    GK_IN_CONTEXT(cuda, result,
                  allocate_aside(cuda, &pointer, bytes ? bytes : 1, (CUstream)stream));
    gk_restrict(&cuda->driver, mode);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return out_of_memory(cuda, bytes, result, error);
    *device = (void *)pointer;
    return check(cuda, result, "allocating device memory for a CUDA graph", error);
}

static void cuda_release(gk_backend *base, void *device, gk_stream stream) {
    gk_cuda *cuda = (gk_cuda *)base;
    bool pushed = false;
    if (!device)
        return;
    if (enter(cuda, &pushed) ==
        CUDA_SUCCESS) /* fails only after a fault, which the next call says */
        gk_captures_release(cuda->captures, &cuda->driver, (CUstream)stream, (CUdeviceptr)device);
    leave(cuda, pushed);
}

static gk_status cuda_zero(gk_backend *base, void *device, size_t bytes, gk_stream stream,
                           gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuMemsetD8Async((CUdeviceptr)device, 0, bytes, (CUstream)stream));
    return check(cuda, result, "zeroing device memory", error);
}

static gk_status cuda_start_copy_in(gk_backend *base, void *device, const void *host, size_t bytes,
                                    gk_stream stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(
        cuda, result,
        cuda->driver.cuMemcpyHtoDAsync((CUdeviceptr)device, host, bytes, (CUstream)stream));
    return check(cuda, result, "copying to the device", error);
}

static gk_status cuda_start_copy_out(gk_backend *base, void *host, const void *device, size_t bytes,
                                     gk_stream stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(
        cuda, result,
        cuda->driver.cuMemcpyDtoHAsync(host, (CUdeviceptr)device, bytes, (CUstream)stream));
    return check(cuda, result, "copying from the device", error);
}

/* The memory that a stream's last copy reads or writes is the caller's again. */
static gk_status finish_copy(gk_cuda *cuda, gk_status status, gk_stream stream, gk_error *error) {
    CUresult result;
    if (status != GK_OK)
        return status;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuStreamSynchronize((CUstream)stream));
    return check(cuda, result, "waiting for a copy", error);
}

/* The wait is for pinned memory, which anybody's array may be: pageable memory has been read. */
static gk_status cuda_copy_in(gk_backend *base, void *device, const void *host, size_t bytes,
                              gk_stream stream, gk_error *error) {
    gk_status status = cuda_start_copy_in(base, device, host, bytes, stream, error);
    return finish_copy((gk_cuda *)base, status, stream, error);
}

static gk_status cuda_copy_out(gk_backend *base, void *host, const void *device, size_t bytes,
                               gk_stream stream, gk_error *error) {
    gk_status status = cuda_start_copy_out(base, host, device, bytes, stream, error);
    return finish_copy((gk_cuda *)base, status, stream, error);
}

static gk_status cuda_copy_within(gk_backend *base, void *to, const void *from, size_t bytes,
                                  gk_stream stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuMemcpyDtoDAsync((CUdeviceptr)to, (CUdeviceptr)from, bytes,
                                                 (CUstream)stream));
    return check(cuda, result, "copying on the device", error);
}

static gk_status cuda_stream_new(gk_backend *base, gk_stream *stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUstream made = NULL;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
    *stream = (gk_stream)made;
    return check(cuda, result, "creating a stream", error);
}

static void cuda_stream_free(gk_backend *base, gk_stream stream) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    if (!stream)
        return;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuStreamDestroy((CUstream)stream));
    (void)result; /* fails only after a fault, which the next call reports */
}

static gk_status cuda_pin(gk_backend *base, void *host, size_t bytes, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuMemHostRegister(
                      host, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    return check(cuda, result, "pinning host memory", error);
}

static void cuda_unpin(gk_backend *base, void *host) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuMemHostUnregister(host));
    (void)result; /* fails only after a fault, or when the process is ending */
}

static int family_of(const gk_row *row) {
    int family = 0;
    while (strcmp(families[family].name, row->family) != 0)
        family++; /* every row stands in a family's file, so there is one */
    return family;
}

/* Load the row's file and look the kernel up: once a process, then it is an array access. */
static gk_status find_function(gk_cuda *cuda, const gk_row *row, CUfunction *function,
                               gk_error *error) {
    size_t count;
    _Atomic(CUfunction) *slot = &cuda->functions[row - gk_rows(&count)];
    *function = atomic_load_explicit(slot, memory_order_acquire);
    if (*function)
        return GK_OK;
    CUresult result = CUDA_SUCCESS;
    int family = family_of(row);
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    pthread_mutex_lock(&cuda->lock);
    if (!cuda->modules[family])
        GK_IN_CONTEXT(
            cuda, result,
            cuda->driver.cuModuleLoadData(&cuda->modules[family], families[family].image));
    if (result == CUDA_SUCCESS)
        result = cuda->driver.cuModuleGetFunction(function, cuda->modules[family], row->symbol);
    if (result == CUDA_SUCCESS) /* now, for a first launch may be one that is captured */
        GK_IN_CONTEXT(cuda, result, cuda->driver.cuFuncLoad(*function));
    if (result == CUDA_SUCCESS)
        atomic_store_explicit(slot, *function, memory_order_release);
    pthread_mutex_unlock(&cuda->lock);
    gk_restrict(&cuda->driver, mode);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
        return gk_fail(error, GK_CUDA_ERROR,
                       "this build of gpukern has no kernels for compute capability %d.%d; build "
                       "it with GPUKERN_ARCHS=%d",
                       cuda->base.capability / 10, cuda->base.capability % 10,
                       cuda->base.capability);
    return check(cuda, result, "loading the kernel", error);
}

static gk_status cuda_launch(gk_backend *base, const gk_launch *launch, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUfunction function;
    gk_status status = find_function(cuda, launch->row, &function, error);
    if (status != GK_OK)
        return status;
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuLaunchKernel(function, launch->grid[0], launch->grid[1],
                                              launch->grid[2], launch->block[0], launch->block[1],
                                              launch->block[2], (unsigned)launch->shared_bytes,
                                              (CUstream)launch->stream, launch->arguments, NULL));
    if (result == CUDA_SUCCESS)
        atomic_store_explicit(&cuda->last_launch, launch->row, memory_order_relaxed);
    status = check(cuda, result, "the launch", error);
    if (status == GK_CUDA_ERROR)
        gk_fail_in(error, "kernel %s, grid (%u, %u, %u), block (%u, %u, %u): ", launch->row->symbol,
                   launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
                   launch->block[1], launch->block[2]);
    return status;
}

/* cuBLAS is looked for once; what came of it is remembered either way. */
static gk_status need_cublas(gk_cuda *cuda, gk_error *error) {
    bool pushed = false;
    gk_status status = check(cuda, enter(cuda, &pushed), "entering the context", error);
    if (status != GK_OK)
        return status;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    pthread_mutex_lock(&cuda->cublas_lock);
    if (!cuda->cublas && cuda->cublas_problem.status == GK_OK)
        gk_cublas_open(&cuda->cublas, cuda->locate, cuda->locate_context, &cuda->cublas_problem);
    status = cuda->cublas_problem.status;
    pthread_mutex_unlock(&cuda->cublas_lock);
    gk_restrict(&cuda->driver, mode);
    leave(cuda, pushed);
    if (status != GK_OK)
        *error = cuda->cublas_problem;
    return status;
}

/* A workspace of the call's own: cuBLAS has one a handle, for which two streams would have to wait
   for one another, and which a CUDA graph could not count on. The sizes are NVIDIA's advice. */
static size_t workspace_bytes(const gk_cuda *cuda) {
    return (size_t)(cuda->base.capability >= 90 ? 32 : 4) << 20;
}

static gk_status cuda_gemm(gk_backend *base, const gk_gemm *gemm, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    void *workspace = NULL;
    size_t bytes = workspace_bytes(cuda);
    gk_status status = need_cublas(cuda, error);
    if (status == GK_OK)
        status = cuda_allocate(base, bytes, gemm->stream, &workspace, error);
    if (status != GK_OK)
        return status;
    bool pushed = false;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver); /* a first call loads its kernels */
    status = check(cuda, enter(cuda, &pushed), "entering the context", error);
    if (status == GK_OK)
        status = gk_cublas_gemm(cuda->cublas, gemm, workspace, bytes, error);
    leave(cuda, pushed);
    gk_restrict(&cuda->driver, mode);
    cuda_release(base, workspace, gemm->stream);
    return status;
}

static gk_status cuda_event_new(gk_backend *base, gk_event **event, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    gk_event *made = malloc(sizeof *made);
    if (!made)
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory for an event");
    CUresult result;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuEventCreate(&made->handle, CU_EVENT_DEFAULT));
    if (result != CUDA_SUCCESS) {
        free(made);
        return check(cuda, result, "creating an event", error);
    }
    *event = made;
    return GK_OK;
}

static void cuda_event_free(gk_backend *base, gk_event *event) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    if (!event)
        return;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuEventDestroy(event->handle));
    (void)result; /* fails only after a fault, which the next call reports */
    free(event);
}

static gk_status cuda_record(gk_backend *base, gk_event *event, gk_stream stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuEventRecord(event->handle, (CUstream)stream));
    return check(cuda, result, "recording an event", error);
}

static gk_status cuda_elapsed(gk_backend *base, gk_event *from, gk_event *to, double *seconds,
                              gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    float milliseconds = 0.0f;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuEventSynchronize(to->handle));
    if (result == CUDA_SUCCESS)
        GK_IN_CONTEXT(cuda, result,
                      cuda->driver.cuEventElapsedTime(&milliseconds, from->handle, to->handle));
    *seconds = (double)milliseconds * 1e-3;
    return check(cuda, result, "reading an event", error);
}

static gk_status cuda_reach(gk_backend *base, gk_event *event, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuEventSynchronize(event->handle));
    return check(cuda, result, "waiting for an event", error);
}

static gk_status cuda_wait_event(gk_backend *base, gk_stream waiting, gk_event *event,
                                 gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuStreamWaitEvent((CUstream)waiting, event->handle, 0));
    return check(cuda, result, "having a stream wait", error);
}

/* In the context. */
static CUresult join(gk_cuda *cuda, CUstream waiting, CUstream producer) {
    const gk_driver *driver = &cuda->driver;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&cuda->lock);
    if (!cuda->joint)
        result = driver->cuEventCreate(&cuda->joint, CU_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS)
        result = driver->cuEventRecord(cuda->joint, producer);
    if (result == CUDA_SUCCESS)
        result = driver->cuStreamWaitEvent(waiting, cuda->joint, 0);
    pthread_mutex_unlock(&cuda->lock);
    return result;
}

static gk_status cuda_wait(gk_backend *base, gk_stream waiting, gk_stream producer,
                           gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    bool pushed = false, later = false, produced_later = false;
    CUresult result = enter(cuda, &pushed);
    if (result == CUDA_SUCCESS)
        result = gk_is_captured(&cuda->driver, (CUstream)waiting, &later);
    if (result == CUDA_SUCCESS)
        result = gk_is_captured(&cuda->driver, (CUstream)producer, &produced_later);
    if (result == CUDA_SUCCESS && later == produced_later)
        result = join(cuda, (CUstream)waiting, (CUstream)producer);
    leave(cuda, pushed);
    if (result == CUDA_SUCCESS && produced_later && !later)
        return gk_fail(error, GK_VALUE_ERROR,
                       "an array is of a stream that is being captured in a CUDA graph, and the "
                       "call is not on it; pass that stream as stream=");
    return check(cuda, result, "waiting for the producer's stream", error);
}

static gk_status cuda_synchronize(gk_backend *base, gk_stream stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    if (stream)
        GK_IN_CONTEXT(cuda, result, cuda->driver.cuStreamSynchronize((CUstream)stream));
    else
        GK_IN_CONTEXT(cuda, result, cuda->driver.cuCtxSynchronize());
    return check(cuda, result, "synchronizing", error);
}

static gk_status cuda_holds(gk_backend *base, const gk_row *row, gk_error *error) {
    return row->symbol ? GK_OK : need_cublas((gk_cuda *)base, error);
}

static gk_status owns_byte(gk_cuda *cuda, const void *pointer, gk_error *error) {
    unsigned kind = 0;
    int ordinal = -1;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *answers[] = {&kind, &ordinal};
    CUresult result;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuPointerGetAttributes(2, asked, answers, (CUdeviceptr)pointer));
    gk_restrict(&cuda->driver, mode);
    gk_status status = check(cuda, result, "asking what a pointer is", error);
    if (status != GK_OK)
        return status;
    if (kind != CU_MEMORYTYPE_DEVICE && kind != CU_MEMORYTYPE_UNIFIED)
        return gk_fail(error, GK_VALUE_ERROR, "%p is not device memory", pointer);
    if (ordinal != cuda->base.ordinal)
        return gk_fail(error, GK_VALUE_ERROR,
                       "%p is memory of device %d, and this call runs on device %d", pointer,
                       ordinal, cuda->base.ordinal);
    return GK_OK;
}

static gk_status cuda_owns(gk_backend *base, const void *first, size_t bytes, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    const char *last = (const char *)first + bytes - 1;
    gk_status status = owns_byte(cuda, first, error);
    /* The driver maps pages of 2 MiB: what is mapped at one of their bytes is at all. */
    bool one_page = (uintptr_t)first >> 21 == (uintptr_t)last >> 21;
    return status == GK_OK && !one_page ? owns_byte(cuda, last, error) : status;
}

static size_t cuda_live_bytes(gk_backend *base) {
    gk_cuda *cuda = (gk_cuda *)base;
    cuuint64_t used = 0;
    CUresult result;
    bool pushed = false;
    if (enter(cuda, &pushed) == CUDA_SUCCESS)
        gk_captures_settle(cuda->captures, &cuda->driver);
    leave(cuda, pushed);
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuCtxSynchronize());
    if (result == CUDA_SUCCESS)
        GK_IN_CONTEXT(cuda, result,
                      cuda->driver.cuMemPoolGetAttribute(cuda->pool,
                                                         CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    return (size_t)used;
}

static void cuda_close(gk_backend *base) {
    gk_cuda *cuda = (gk_cuda *)base;
    const gk_driver *driver = &cuda->driver;
    bool pushed = false;
    /* When the process is ending the driver may be gone already; nothing here can be mended then.
     */
    if (cuda->context && enter(cuda, &pushed) == CUDA_SUCCESS) {
        gk_cublas_close(cuda->cublas);
        for (int i = 0; i < FAMILIES; i++)
            if (cuda->modules[i])
                (void)driver->cuModuleUnload(cuda->modules[i]);
        if (cuda->joint)
            (void)driver->cuEventDestroy(cuda->joint);
        if (cuda->aside)
            (void)driver->cuStreamDestroy(cuda->aside);
        if (cuda->pool)
            (void)driver->cuMemPoolDestroy(cuda->pool);
        leave(cuda, pushed);
    }
    if (cuda->context)
        (void)driver->cuDevicePrimaryCtxRelease(cuda->device);
    gk_captures_free(cuda->captures);
    pthread_mutex_destroy(&cuda->lock);
    pthread_mutex_destroy(&cuda->cublas_lock);
    free(cuda->functions);
    free(cuda);
}

/* A pool of our own that keeps what is freed: neither other libraries nor the system pay for it. */
static CUresult make_pool(gk_cuda *cuda) {
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->device},
    };
    cuuint64_t keep = UINT64_MAX;
    CUresult result = cuda->driver.cuMemPoolCreate(&cuda->pool, &properties);
    if (result == CUDA_SUCCESS)
        result = cuda->driver.cuMemPoolSetAttribute(cuda->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                                    &keep);
    return result;
}

static gk_status start(gk_cuda *cuda, gk_error *error) {
    size_t rows;
    gk_rows(&rows);
    cuda->functions = calloc(rows, sizeof *cuda->functions);
    cuda->captures = gk_captures_new();
    if (!cuda->functions || !cuda->captures)
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory");
    gk_status status = gk_driver_open(&cuda->driver, error);
    if (status == GK_OK)
        status = gk_driver_device(&cuda->driver, cuda->base.ordinal, &cuda->device,
                                  &cuda->base.capability, error);
    if (status != GK_OK)
        return status;
    CUresult result = cuda->driver.cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
    if (result == CUDA_SUCCESS)
        GK_IN_CONTEXT(cuda, result, make_pool(cuda));
    return check(cuda, result, "creating a context on the device", error);
}

static const gk_backend functions = {
    .name = "cuda",
    .allocate = cuda_allocate,
    .allocate_lasting = cuda_allocate_lasting,
    .release = cuda_release,
    .captured = cuda_captured,
    .zero = cuda_zero,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .copy_within = cuda_copy_within,
    .launch = cuda_launch,
    .gemm = cuda_gemm,
    .stream_new = cuda_stream_new,
    .stream_free = cuda_stream_free,
    .start_copy_in = cuda_start_copy_in,
    .start_copy_out = cuda_start_copy_out,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .event_new = cuda_event_new,
    .event_free = cuda_event_free,
    .record = cuda_record,
    .elapsed = cuda_elapsed,
    .reach = cuda_reach,
    .wait_event = cuda_wait_event,
    .wait = cuda_wait,
    .synchronize = cuda_synchronize,
    .holds = cuda_holds,
    .owns = cuda_owns,
    .live_bytes = cuda_live_bytes,
    .close = cuda_close,
};

gk_status gk_backend_cuda_open(gk_backend **backend, int ordinal, gk_locator locate, void *context,
                               gk_error *error) {
    gk_cuda *cuda = calloc(1, sizeof *cuda);
    if (!cuda)
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory");
    cuda->base = functions;
    cuda->base.ordinal = ordinal;
    cuda->locate = locate;
    cuda->locate_context = context;
    pthread_mutex_init(&cuda->lock, NULL);
    pthread_mutex_init(&cuda->cublas_lock, NULL);
    gk_status status = start(cuda, error);
    if (status != GK_OK) {
        cuda_close(&cuda->base);
        return status;
    }
    *backend = &cuda->base;
    return GK_OK;
}

void gk_backend_cuda_cublas(gk_backend *base, gk_cublas_report *report) {
    gk_cuda *cuda = (gk_cuda *)base;
    memset(report, 0, sizeof *report);
    if (need_cublas(cuda, &report->problem) != GK_OK)
        return;
    snprintf(report->path, sizeof report->path, "%s", gk_cublas_path(cuda->cublas));
    report->version = gk_cublas_version(cuda->cublas);
}
