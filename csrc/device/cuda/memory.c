/* Device memory: taken from a pool in the order of a stream, copied, pinned, asked for. */
#include "device/cuda/device.h"
#include "device/cuda/standing.h"

/* Bytes of what captured calls take: beyond it two nodes of a graph cost nothing beside the work.
 */
enum { LEAST_PIECE = 64 << 10, MOST_PIECE = 64 << 20 };

static gk_status out_of_memory(gk_cuda *cuda, size_t bytes, CUresult result, gk_error *error) {
    const gk_driver *driver = &cuda->driver;
    size_t available = 0, total = 0;
    CUresult asked_free;
    GK_IN_CONTEXT(cuda, asked_free, driver->cuMemGetInfo(&available, &total));
    if (asked_free != CUDA_SUCCESS)
        return gk_cuda_check(cuda, result, "allocating device memory", error);
    return gk_fail(error, GK_MEMORY_ERROR, "out of device memory: %zu bytes asked, %zu free of %zu",
                   bytes, available, total);
}

gk_status gk_cuda_captured(gk_backend *base, gk_stream stream, bool *captured, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, gk_is_captured(&cuda->driver, (CUstream)stream, captured));
    return gk_cuda_check(cuda, result, "asking whether the stream is being captured", error);
}

/* What was freed is in the pool until its stream has passed it: wait first. In the context. */
static CUresult trim_pool(gk_cuda *cuda) {
    CUresult result = gk_standing_drop(cuda, &cuda->workspaces);
    if (result == CUDA_SUCCESS)
        result = cuda->driver.cuCtxSynchronize();
    return result == CUDA_SUCCESS ? cuda->driver.cuMemPoolTrimTo(cuda->pool, 0) : result;
}

void gk_cuda_trim(gk_backend *base) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, trim_pool(cuda));
    (void)result; /* fails only after a fault, which the next call reports */
}

/* On a device that is full. In the context. A pool grows by 32 MiB at the least, so that where less
   is free only memory beside the pool is to be had; it is freed in the order of a stream all the
   same. */
static CUresult allocate_the_last(gk_cuda *cuda, CUdeviceptr *pointer, size_t bytes,
                                  CUstream stream) {
    const gk_driver *driver = &cuda->driver;
    CUresult result = trim_pool(cuda);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemAllocFromPoolAsync(pointer, bytes, cuda->pool, stream);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? driver->cuMemAlloc(pointer, bytes) : result;
}

/* In the context, relaxed, under the lock. */
static CUresult need_aside(gk_cuda *cuda) {
    return cuda->aside ? CUDA_SUCCESS
                       : cuda->driver.cuStreamCreate(&cuda->aside, CU_STREAM_NON_BLOCKING);
}

/* In the context, relaxed. The memory is there before anything that is captured can run; as a
   `piece` it is the graph's. */
static CUresult allocate_aside(gk_cuda *cuda, CUdeviceptr *pointer, size_t bytes, size_t zeroed,
                               CUstream stream, bool piece) {
    const gk_driver *driver = &cuda->driver;
    pthread_mutex_lock(&cuda->lock);
    CUresult result = need_aside(cuda);
    pthread_mutex_unlock(&cuda->lock);
    if (result == CUDA_SUCCESS)
        result = driver->cuMemAllocFromPoolAsync(pointer, bytes, cuda->pool, cuda->aside);
    if (result != CUDA_SUCCESS)
        return result;
    if (zeroed)
        result = driver->cuMemsetD8Async(*pointer, 0, zeroed, cuda->aside);
    if (result == CUDA_SUCCESS)
        result = driver->cuStreamSynchronize(cuda->aside);
    if (result == CUDA_SUCCESS)
        result = gk_captures_share(cuda->captures, driver, stream, *pointer, piece ? bytes : 0);
    if (result != CUDA_SUCCESS)
        gk_captures_release(cuda->captures, driver, cuda->aside, *pointer);
    return result;
}

/* A piece of the graph under capture, or a new one, as large as the least power of two. */
static CUresult take_piece(gk_cuda *cuda, CUdeviceptr *pointer, size_t bytes, CUstream stream) {
    size_t size = LEAST_PIECE;
    while (size < bytes)
        size *= 2;
    CUresult result = gk_captures_take_piece(cuda->captures, &cuda->driver, stream, bytes, pointer);
    if (result != CUDA_SUCCESS || *pointer)
        return result;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    result = allocate_aside(cuda, pointer, size, 0, stream, true);
    gk_restrict(&cuda->driver, mode);
    return result;
}

/* Nodes that take memory and free it. */
static CUresult allocate_by_nodes(gk_cuda *cuda, CUdeviceptr *pointer, size_t bytes,
                                  CUstream stream) {
    const gk_driver *driver = &cuda->driver;
    CUresult result = driver->cuMemAllocFromPoolAsync(pointer, bytes, cuda->pool, stream);
    if (result != CUDA_SUCCESS)
        return result;
    result = gk_captures_note_node(cuda->captures, *pointer);
    if (result != CUDA_SUCCESS)
        (void)driver->cuMemFreeAsync(*pointer, stream);
    return result;
}

/* In the context. */
static CUresult allocate_in_order(gk_cuda *cuda, CUdeviceptr *pointer, size_t bytes,
                                  CUstream stream) {
    const gk_driver *driver = &cuda->driver;
    bool captured;
    gk_captures_settle(cuda->captures, driver);
    CUresult result = gk_is_captured(driver, stream, &captured);
    if (result != CUDA_SUCCESS)
        return result;
    if (captured) /* the stream of each thread has one name for many */
        return bytes <= MOST_PIECE && (gk_stream)stream != GK_PER_THREAD_STREAM
                   ? take_piece(cuda, pointer, bytes, stream)
                   : allocate_by_nodes(cuda, pointer, bytes, stream);
    result = driver->cuMemAllocFromPoolAsync(pointer, bytes, cuda->pool, stream);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? allocate_the_last(cuda, pointer, bytes, stream)
                                              : result;
}

gk_status gk_cuda_allocate(gk_backend *base, size_t bytes, gk_stream stream, void **device,
                           gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUdeviceptr pointer = 0;
    CUresult result;
    size_t asked = bytes ? bytes : 1; /* an empty array has an address too */
    GK_IN_CONTEXT(cuda, result, allocate_in_order(cuda, &pointer, asked, (CUstream)stream));
    if (result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_INVALID_VALUE)
        return out_of_memory(cuda, bytes, result, error);
    *device = (void *)pointer;
    return gk_cuda_check(cuda, result, "allocating device memory", error);
}

gk_status gk_cuda_allocate_shared(gk_cuda *cuda, size_t bytes, size_t zeroed, gk_stream stream,
                                  void **device, gk_error *error) {
    CUdeviceptr pointer = 0;
    CUresult result;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    GK_IN_CONTEXT(cuda, result,
                  allocate_aside(cuda, &pointer, bytes, zeroed, (CUstream)stream, false));
    gk_restrict(&cuda->driver, mode);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return out_of_memory(cuda, bytes, result, error);
    *device = (void *)pointer;
    return gk_cuda_check(cuda, result, "allocating device memory for a CUDA graph", error);
}

gk_status gk_cuda_allocate_lasting(gk_backend *base, size_t bytes, gk_stream stream, void **device,
                                   gk_error *error) {
    bool captured;
    gk_status status = gk_cuda_captured(base, stream, &captured, error);
    if (status != GK_OK)
        return status;
    return captured ? gk_cuda_allocate_shared((gk_cuda *)base, bytes ? bytes : 1, 0, stream, device,
                                              error)
                    : gk_cuda_allocate(base, bytes, stream, device, error);
}

void gk_cuda_release(gk_backend *base, void *device, gk_stream stream) {
    gk_cuda *cuda = (gk_cuda *)base;
    bool pushed = false;
    if (!device)
        return;
    if (gk_cuda_enter(cuda, &pushed) ==
        CUDA_SUCCESS) /* fails only after a fault, which the next call says */
        gk_captures_release(cuda->captures, &cuda->driver, (CUstream)stream, (CUdeviceptr)device);
    gk_cuda_leave(cuda, pushed);
}

gk_status gk_cuda_zero(gk_backend *base, void *device, size_t bytes, gk_stream stream,
                       gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuMemsetD8Async((CUdeviceptr)device, 0, bytes, (CUstream)stream));
    return gk_cuda_check(cuda, result, "zeroing device memory", error);
}

static gk_status take_standing(gk_cuda *cuda, gk_standing *standing, gk_stream stream,
                               void **memory, gk_error *error) {
    pthread_mutex_lock(&standing->lock);
    gk_status status = gk_standing_take(cuda, standing, stream, memory, error);
    pthread_mutex_unlock(&standing->lock);
    return status;
}

gk_status gk_cuda_stream_memory(gk_backend *base, gk_stream stream, size_t bytes,
                                gk_stream_memory *memory, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    const size_t counters = cuda->meetings.zeroed;
    void *meeting;
    *memory = (gk_stream_memory){0};
    gk_status status = take_standing(cuda, &cuda->meetings, stream, &meeting, error);
    memory->counters = meeting;
    if (meeting && counters + bytes <= cuda->meetings.bytes)
        memory->scratch = (char *)meeting + counters;
    else if (status == GK_OK && bytes <= cuda->scratch.bytes)
        status = take_standing(cuda, &cuda->scratch, stream, &memory->scratch, error);
    return status;
}

gk_status gk_cuda_start_copy_in(gk_backend *base, void *device, const void *host, size_t bytes,
                                gk_stream stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(
        cuda, result,
        cuda->driver.cuMemcpyHtoDAsync((CUdeviceptr)device, host, bytes, (CUstream)stream));
    return gk_cuda_check(cuda, result, "copying to the device", error);
}

gk_status gk_cuda_start_copy_out(gk_backend *base, void *host, const void *device, size_t bytes,
                                 gk_stream stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(
        cuda, result,
        cuda->driver.cuMemcpyDtoHAsync(host, (CUdeviceptr)device, bytes, (CUstream)stream));
    return gk_cuda_check(cuda, result, "copying from the device", error);
}

gk_status gk_cuda_start_lines_out(gk_backend *base, void *host, const void *device,
                                  const gk_lines *lines, gk_stream stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = (CUdeviceptr)device,
                                .srcPitch = lines->bytes,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = host,
                                .dstPitch = lines->apart,
                                .WidthInBytes = lines->bytes,
                                .Height = lines->count};
    CUresult result;
    if (lines->count == 1)
        return gk_cuda_start_copy_out(base, host, device, lines->bytes, stream, error);
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuMemcpy2DAsync(&copy, (CUstream)stream));
    return gk_cuda_check(cuda, result, "copying lines from the device", error);
}

/* The memory that a stream's last copy reads or writes is the caller's again. */
static gk_status finish_copy(gk_cuda *cuda, gk_status status, gk_stream stream, gk_error *error) {
    CUresult result;
    if (status != GK_OK)
        return status;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuStreamSynchronize((CUstream)stream));
    return gk_cuda_check(cuda, result, "waiting for a copy", error);
}

/* The wait is for pinned memory, which anybody's array may be: pageable memory has been read. */
gk_status gk_cuda_copy_in(gk_backend *base, void *device, const void *host, size_t bytes,
                          gk_stream stream, gk_error *error) {
    gk_status status = gk_cuda_start_copy_in(base, device, host, bytes, stream, error);
    return finish_copy((gk_cuda *)base, status, stream, error);
}

gk_status gk_cuda_copy_out(gk_backend *base, void *host, const void *device, size_t bytes,
                           gk_stream stream, gk_error *error) {
    gk_status status = gk_cuda_start_copy_out(base, host, device, bytes, stream, error);
    return finish_copy((gk_cuda *)base, status, stream, error);
}

gk_status gk_cuda_copy_within(gk_backend *base, void *to, const void *from, size_t bytes,
                              gk_stream stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuMemcpyDtoDAsync((CUdeviceptr)to, (CUdeviceptr)from, bytes,
                                                 (CUstream)stream));
    return gk_cuda_check(cuda, result, "copying on the device", error);
}

gk_status gk_cuda_pin(gk_backend *base, void *host, size_t bytes, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuMemHostRegister(
                      host, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    return gk_cuda_check(cuda, result, "pinning host memory", error);
}

/* Most devices take the host's own address, those of WSL 2 another; some map no memory at all,
   which the driver says only here. */
gk_status gk_cuda_map(gk_backend *base, void *host, void **device, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUdeviceptr mapped = 0;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuMemHostGetDevicePointer(&mapped, host, 0));
    *device = (void *)mapped;
    return gk_cuda_check(cuda, result, "mapping host memory", error);
}

void gk_cuda_unpin(gk_backend *base, void *host) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver); /* a collection may come at any time */
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuMemHostUnregister(host));
    gk_restrict(&cuda->driver, mode);
    (void)result; /* fails only after a fault, or when the process is ending */
}

/* Staged by the driver where the two devices do not reach one another. */
gk_status gk_cuda_copy_across(gk_backend *base, void *to, gk_backend *other, const void *from,
                              size_t bytes, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base, *source = (gk_cuda *)other;
    CUresult result;
    if (bytes == 0)
        return GK_OK;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuMemcpyPeerAsync((CUdeviceptr)to, cuda->context, (CUdeviceptr)from,
                                                 source->context, bytes, NULL));
    gk_status status = gk_cuda_check(cuda, result, "copying from one device to another", error);
    return finish_copy(cuda, status, 0, error);
}

/* What memory of which device is there; of none, and device -1, where the driver knows nothing. */
static CUresult ask_pointer(gk_cuda *cuda, const void *pointer, unsigned *kind, int *ordinal) {
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *answers[] = {kind, ordinal};
    CUresult result;
    *kind = 0;
    *ordinal = -1;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuPointerGetAttributes(2, asked, answers, (CUdeviceptr)pointer));
    gk_restrict(&cuda->driver, mode);
    return result;
}

int gk_cuda_place(gk_backend *base, const void *pointer) {
    unsigned kind;
    int ordinal;
    CUresult result = ask_pointer((gk_cuda *)base, pointer, &kind, &ordinal);
    return result == CUDA_SUCCESS && ordinal >= 0 ? ordinal : -1;
}

static gk_status owns_byte(gk_cuda *cuda, const void *pointer, gk_error *error) {
    unsigned kind;
    int ordinal;
    CUresult result = ask_pointer(cuda, pointer, &kind, &ordinal);
    gk_status status = gk_cuda_check(cuda, result, "asking what a pointer is", error);
    if (status != GK_OK)
        return status;
    if (kind != CU_MEMORYTYPE_DEVICE && kind != CU_MEMORYTYPE_UNIFIED)
        return gk_fail(error, GK_VALUE_ERROR, "%p is not device memory", pointer);
    if (ordinal != cuda->base.ordinal)
        return gk_fail(error, GK_VALUE_ERROR, "%p is memory of device %d", pointer, ordinal);
    return GK_OK;
}

gk_status gk_cuda_owns(gk_backend *base, const void *first, size_t bytes, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    const char *last = (const char *)first + bytes - 1;
    gk_status status = owns_byte(cuda, first, error);
    /* The driver maps pages of 2 MiB: what is mapped at one of their bytes is at all. */
    bool one_page = (uintptr_t)first >> 21 == (uintptr_t)last >> 21;
    return status == GK_OK && !one_page ? owns_byte(cuda, last, error) : status;
}

size_t gk_cuda_live_bytes(gk_backend *base) {
    gk_cuda *cuda = (gk_cuda *)base;
    cuuint64_t used = 0;
    CUresult result;
    bool pushed = false;
    if (gk_cuda_enter(cuda, &pushed) == CUDA_SUCCESS)
        gk_captures_settle(cuda->captures, &cuda->driver);
    gk_cuda_leave(cuda, pushed);
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuCtxSynchronize());
    if (result == CUDA_SUCCESS)
        GK_IN_CONTEXT(cuda, result,
                      cuda->driver.cuMemPoolGetAttribute(cuda->pool,
                                                         CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    size_t kept = gk_standing_bytes(&cuda->workspaces) + gk_standing_bytes(&cuda->meetings) +
                  gk_standing_bytes(&cuda->scratch);
    used -= used >= kept ? kept : 0;
    return (size_t)used;
}
