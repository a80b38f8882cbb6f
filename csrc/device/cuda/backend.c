#include "device/cuda/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/device.h"
#include "device/cuda/images.h"
#include "device/cuda/modules.h"
#include "device/cuda/standing.h"
#include "device/registry.h"

/* Bytes. Every graph of a reduction has the little, and few need the other. */
enum { LITTLE_SCRATCH = 256 << 10, MUCH_SCRATCH = 8 << 20 };

enum {
    LONG_READ = 8 << 20, /* bytes, which take several times as long as it takes to start */
    FILLED = 6,          /* all of the places but one of so many leave few to be uneven with */
};

struct gk_event {
    CUevent handle;
};

static gk_status cuda_stream_new(gk_backend *base, gk_stream *stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUstream made = NULL;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
    *stream = (gk_stream)made;
    return gk_cuda_check_made(cuda, result, "creating a stream", error);
}

/* What was put off on it is freed before: its handle is nobody's then. */
static CUresult destroy_stream(gk_cuda *cuda, CUstream stream) {
    gk_captures_leave(cuda->captures, &cuda->driver, stream);
    return cuda->driver.cuStreamDestroy(stream);
}

static void cuda_stream_free(gk_backend *base, gk_stream stream) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    if (!stream)
        return;
    gk_standing_end(cuda, &cuda->workspaces, stream);
    gk_standing_end(cuda, &cuda->meetings, stream);
    gk_standing_end(cuda, &cuda->scratch, stream);
    GK_IN_CONTEXT(cuda, result, destroy_stream(cuda, (CUstream)stream));
    (void)result; /* fails only after a fault, which the next call reports */
}

/* Blocks of a launch that the device has room for at a time. */
static size_t places_of(const gk_cuda *cuda, const gk_function *function, const gk_launch *launch) {
    const size_t each = launch->shared_bytes + function->shared + cuda->reserved_shared;
    if (launch->shared_bytes == 0 || cuda->shared == 0)
        return function->places;
    const size_t room = cuda->shared / each * cuda->multiprocessors;
    return room < function->places ? room : function->places;
}

/* Whether the blocks of a launch have to begin together. Those that start early take what places
   come free, which is as many as there are on some multiprocessors and few on others; where all
   have a place at a time nothing evens that out, unless there is room for them beside those of the
   kernel before. And where they read more than half of what the cache holds, each half of it has
   what its own multiprocessors read: the same blocks on the same ones find it there again, as long
   as most of it is there. */
static bool begins_together(const gk_cuda *cuda, const gk_function *function,
                            const gk_launch *launch) {
    const size_t blocks = (size_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
    const size_t places = places_of(cuda, function, launch);
    if (launch->reads < LONG_READ || 2 * blocks <= places || blocks > places)
        return false;
    return blocks * FILLED <= places * (FILLED - 1) ||
           (launch->reads > cuda->cache / 2 && launch->reads <= cuda->cache / 4 * 3);
}

/* Early: under the end of the kernel before it in its stream, where there is one. */
static CUresult launch_function(const gk_driver *driver, CUfunction function,
                                const gk_launch *launch, bool early) {
    CUlaunchAttribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                   .value = {.programmaticStreamSerializationAllowed = 1}};
    CUlaunchConfig config = {.gridDimX = launch->grid[0],
                             .gridDimY = launch->grid[1],
                             .gridDimZ = launch->grid[2],
                             .blockDimX = launch->block[0],
                             .blockDimY = launch->block[1],
                             .blockDimZ = launch->block[2],
                             .sharedMemBytes = (unsigned)launch->shared_bytes,
                             .hStream = (CUstream)launch->stream,
                             .attrs = &attribute,
                             .numAttrs = early};
    return driver->cuLaunchKernelEx(&config, function, launch->arguments, NULL);
}

static gk_status cuda_launch(gk_backend *base, const gk_launch *launch, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    const gk_kernel *kernel = launch->kernel;
    const gk_function *function = NULL;
    const char *name = kernel ? kernel->name : launch->row->symbol;
    gk_status status = kernel ? GK_OK : gk_cuda_function(cuda, launch->row, &function, error);
    if (status != GK_OK)
        return status;
    CUfunction handle =
        kernel ? kernel->function : atomic_load_explicit(&function->handle, memory_order_relaxed);
    bool early = function && function->early && !begins_together(cuda, function, launch);
    CUresult result;
    GK_IN_CONTEXT(cuda, result, launch_function(&cuda->driver, handle, launch, early));
    if (result == CUDA_SUCCESS)
        atomic_store_explicit(&cuda->last_launch, name, memory_order_relaxed);
    status = gk_cuda_check(cuda, result, "the launch", error);
    if (status == GK_CUDA_ERROR)
        gk_fail_in(error, "kernel %s, grid (%u, %u, %u), block (%u, %u, %u): ", name,
                   launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
                   launch->block[1], launch->block[2]);
    return status;
}

static gk_status open_cublas(gk_cuda *cuda, gk_error *error) {
    size_t available, total;
    gk_status status = gk_cuda_check(cuda, cuda->driver.cuMemGetInfo(&available, &total),
                                     "asking for the free memory", error);
    if (status != GK_OK)
        return status;
    return gk_cublas_open(&cuda->cublas, cuda->driver.version, available, cuda->locate,
                          cuda->locate_context, error);
}

/* cuBLAS is looked for once; what came of it is remembered either way, but that there was no memory
   for it. */
static gk_status need_cublas(gk_cuda *cuda, gk_error *error) {
    bool pushed = false;
    gk_status status =
        gk_cuda_check(cuda, gk_cuda_enter(cuda, &pushed), "entering the context", error);
    if (status != GK_OK)
        return status;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    pthread_mutex_lock(&cuda->cublas_lock);
    status = cuda->cublas_problem.status;
    if (status != GK_OK)
        *error = cuda->cublas_problem;
    else if (!cuda->cublas)
        status = open_cublas(cuda, error);
    if (status != GK_OK && status != GK_MEMORY_ERROR)
        cuda->cublas_problem = *error;
    pthread_mutex_unlock(&cuda->cublas_lock);
    gk_restrict(&cuda->driver, mode);
    gk_cuda_leave(cuda, pushed);
    return status;
}

/* NVIDIA's advice. */
static size_t workspace_bytes(const gk_cuda *cuda) {
    return (size_t)(cuda->base.capability >= 90 ? 32 : 4) << 20;
}

/* In memory of the stream's own: cuBLAS has one block a handle, for which two streams would have to
   wait for one another, and which a CUDA graph could not count on. `brief` is what lasts as long as
   the product; where the device is too full for so much, cuBLAS takes kernels that need less. */
static gk_status take_workspace(gk_cuda *cuda, gk_stream stream, void **workspace, void **brief,
                                size_t *bytes, gk_error *error) {
    const size_t least = 64 << 10;
    *bytes = workspace_bytes(cuda);
    *brief = NULL;
    gk_status status = gk_standing_take(cuda, &cuda->workspaces, stream, workspace, error);
    if (status != GK_OK || *workspace)
        return status;
    while ((status = gk_cuda_allocate(&cuda->base, *bytes, stream, brief, error)) ==
               GK_MEMORY_ERROR &&
           *bytes / 8 >= least)
        *bytes /= 8;
    *workspace = *brief;
    return status;
}

static gk_status multiply(gk_cuda *cuda, const gk_gemm *gemm, gk_error *error) {
    void *workspace, *brief;
    size_t bytes;
    gk_status status = take_workspace(cuda, gemm->stream, &workspace, &brief, &bytes, error);
    if (status != GK_OK)
        return status;
    bool pushed = false;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver); /* a first call loads its kernels */
    status = gk_cuda_check(cuda, gk_cuda_enter(cuda, &pushed), "entering the context", error);
    if (status == GK_OK)
        status = gk_cublas_gemm(cuda->cublas, gemm, workspace, bytes, error);
    gk_cuda_leave(cuda, pushed);
    gk_restrict(&cuda->driver, mode);
    gk_cuda_release(&cuda->base, brief, gemm->stream);
    return status;
}

static gk_status cuda_gemm(gk_backend *base, const gk_gemm *gemm, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    gk_status status = need_cublas(cuda, error);
    if (status != GK_OK)
        return status;
    pthread_mutex_lock(&cuda->workspaces.lock);
    status = multiply(cuda, gemm, error);
    pthread_mutex_unlock(&cuda->workspaces.lock);
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
        return gk_cuda_check_made(cuda, result, "creating an event", error);
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
    pthread_mutex_lock(&cuda->event_lock);
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuEventRecord(event->handle, (CUstream)stream));
    pthread_mutex_unlock(&cuda->event_lock);
    return gk_cuda_check(cuda, result, "recording an event", error);
}

/* Two events as they are, neither of them half recorded. */
static CUresult read_events(gk_cuda *cuda, gk_event *from, gk_event *to, float *milliseconds) {
    CUresult result;
    pthread_mutex_lock(&cuda->event_lock);
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuEventElapsedTime(milliseconds, from->handle, to->handle));
    pthread_mutex_unlock(&cuda->event_lock);
    return result;
}

static gk_status cuda_elapsed(gk_backend *base, gk_event *from, gk_event *to, double *seconds,
                              gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    float milliseconds = 0.0f;
    CUresult result;
    do { /* not ready: another thread has recorded one of them again since it was waited for */
        GK_IN_CONTEXT(cuda, result, cuda->driver.cuEventSynchronize(to->handle));
        if (result == CUDA_SUCCESS) /* it may be of another stream, and later */
            GK_IN_CONTEXT(cuda, result, cuda->driver.cuEventSynchronize(from->handle));
        if (result == CUDA_SUCCESS)
            result = read_events(cuda, from, to, &milliseconds);
    } while (result == CUDA_ERROR_NOT_READY);
    *seconds = (double)milliseconds * 1e-3;
    return gk_cuda_check(cuda, result, "reading an event", error);
}

static gk_status cuda_reach(gk_backend *base, gk_event *event, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuEventSynchronize(event->handle));
    return gk_cuda_check(cuda, result, "waiting for an event", error);
}

static gk_status cuda_wait_event(gk_backend *base, gk_stream waiting, gk_event *event,
                                 gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuStreamWaitEvent((CUstream)waiting, event->handle, 0));
    return gk_cuda_check(cuda, result, "having a stream wait", error);
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
    CUresult result = gk_cuda_enter(cuda, &pushed);
    if (result == CUDA_SUCCESS)
        result = gk_is_captured(&cuda->driver, (CUstream)waiting, &later);
    if (result == CUDA_SUCCESS)
        result = gk_is_captured(&cuda->driver, (CUstream)producer, &produced_later);
    if (result == CUDA_SUCCESS && later == produced_later)
        result = join(cuda, (CUstream)waiting, (CUstream)producer);
    gk_cuda_leave(cuda, pushed);
    if (result == CUDA_SUCCESS && produced_later && !later)
        return gk_fail(error, GK_VALUE_ERROR, GK_ON_CAPTURED_STREAM);
    return gk_cuda_check(cuda, result, "waiting for the producer's stream", error);
}

static gk_status cuda_synchronize(gk_backend *base, gk_stream stream, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    if (stream)
        GK_IN_CONTEXT(cuda, result, cuda->driver.cuStreamSynchronize((CUstream)stream));
    else
        GK_IN_CONTEXT(cuda, result, cuda->driver.cuCtxSynchronize());
    return gk_cuda_check(cuda, result, "synchronizing", error);
}

static gk_status cuda_make_current(gk_backend *base, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result = cuda->driver.cuCtxSetCurrent(cuda->context);
    return gk_cuda_check(cuda, result, "choosing the device", error);
}

/* Code compiled for an older GPU than the row needs has no more than the kernel's name. Code for no
   GPU like this one at all is an error of the launch. */
static gk_status cuda_holds(gk_backend *base, const gk_row *row, gk_error *error) {
    if (!row->symbol)
        return need_cublas((gk_cuda *)base, error);
    bool is_old = !gk_driver_takes_machine_code(((gk_cuda *)base)->driver.version);
    int compiled_for = gk_compiled_for(row->family, base->capability, is_old);
    if (is_old && row->exact)
        return gk_fail(error, GK_VALUE_ERROR,
                       "needs machine code for compute capability %d.%da, which a driver older "
                       "than r580 does not take; install driver r580 or newer",
                       base->capability / 10, base->capability % 10);
    if (compiled_for && row->exact && !gk_compiled_exactly(row->family, base->capability))
        return gk_fail(error, GK_VALUE_ERROR,
                       "needs code for compute capability %d.%da, and this build has none; build "
                       "it with GPUKERN_ARCHS=%da",
                       base->capability / 10, base->capability % 10, base->capability);
    if (!compiled_for || compiled_for >= gk_row_capability(row))
        return GK_OK;
    return gk_fail(error, GK_VALUE_ERROR,
                   "needs code for compute capability %d.%d, and this build has that of %d.%d; "
                   "build it with GPUKERN_ARCHS=%d",
                   gk_row_capability(row) / 10, gk_row_capability(row) % 10, compiled_for / 10,
                   compiled_for % 10, base->capability);
}

static void cuda_close(gk_backend *base) {
    gk_cuda *cuda = (gk_cuda *)base;
    const gk_driver *driver = &cuda->driver;
    bool pushed = false;
    /* When the process is ending the driver may be gone already; nothing here can be mended then.
     */
    if (cuda->context && gk_cuda_enter(cuda, &pushed) == CUDA_SUCCESS) {
        gk_cublas_close(cuda->cublas);
        (void)gk_standing_drop(cuda, &cuda->workspaces);
        (void)gk_standing_drop(cuda, &cuda->meetings);
        (void)gk_standing_drop(cuda, &cuda->scratch);
        gk_cuda_unload(cuda);
        if (cuda->joint)
            (void)driver->cuEventDestroy(cuda->joint);
        if (cuda->aside)
            (void)driver->cuStreamDestroy(cuda->aside);
        if (cuda->pool)
            (void)driver->cuMemPoolDestroy(cuda->pool);
        gk_cuda_leave(cuda, pushed);
    }
    if (cuda->context)
        (void)driver->cuDevicePrimaryCtxRelease(cuda->device);
    gk_captures_free(cuda->captures);
    pthread_mutex_destroy(&cuda->lock);
    pthread_mutex_destroy(&cuda->cublas_lock);
    pthread_mutex_destroy(&cuda->workspaces.lock);
    pthread_mutex_destroy(&cuda->meetings.lock);
    pthread_mutex_destroy(&cuda->scratch.lock);
    pthread_mutex_destroy(&cuda->event_lock);
    gk_modules_free(cuda->modules);
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

/* 0: the driver does not say. */
static size_t attribute_of(const gk_cuda *cuda, CUdevice_attribute which) {
    int value = 0;
    CUresult result = cuda->driver.cuDeviceGetAttribute(&value, which, cuda->device);
    return result == CUDA_SUCCESS ? (size_t)value : 0;
}

static gk_status start(gk_cuda *cuda, gk_error *error) {
    cuda->captures = gk_captures_new();
    cuda->modules = gk_modules_new();
    if (!cuda->modules || !cuda->captures)
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory");
    gk_status status = gk_driver_open(&cuda->driver, error);
    if (status == GK_OK)
        status = gk_driver_device(&cuda->driver, cuda->base.ordinal, &cuda->device,
                                  &cuda->base.capability, error);
    if (status != GK_OK)
        return status;
    cuda->cache = attribute_of(cuda, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    cuda->multiprocessors = attribute_of(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    cuda->shared = attribute_of(cuda, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    cuda->most_shared = attribute_of(cuda, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    cuda->reserved_shared =
        attribute_of(cuda, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    cuda->base.fetch_room = cuda->base.capability >= 90 ? cuda->shared : 0;
    cuda->workspaces.bytes = workspace_bytes(cuda);
    char *model = cuda->base.model;
    if (cuda->driver.cuDeviceGetName(model, sizeof cuda->base.model, cuda->device) != CUDA_SUCCESS)
        model[0] = '\0';
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    CUresult result = cuda->driver.cuDeviceGetCount(&cuda->base.devices);
    if (result == CUDA_SUCCESS)
        result = cuda->driver.cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
    if (result == CUDA_SUCCESS)
        GK_IN_CONTEXT(cuda, result, make_pool(cuda));
    gk_restrict(&cuda->driver, mode);
    return gk_cuda_check(cuda, result, "creating a context on the device", error);
}

static const gk_backend functions = {
    .name = "cuda",
    .streams_are_addresses = true,
    .allocate = gk_cuda_allocate,
    .allocate_lasting = gk_cuda_allocate_lasting,
    .release = gk_cuda_release,
    .captured = gk_cuda_captured,
    .zero = gk_cuda_zero,
    .stream_memory = gk_cuda_stream_memory,
    .copy_in = gk_cuda_copy_in,
    .copy_out = gk_cuda_copy_out,
    .copy_within = gk_cuda_copy_within,
    .launch = cuda_launch,
    .gemm = cuda_gemm,
    .module_load = gk_cuda_module_load,
    .module_free = gk_cuda_module_free,
    .module_kernel = gk_cuda_module_kernel,
    .module_symbol = gk_cuda_module_symbol,
    .kernel_parameter = gk_cuda_kernel_parameter,
    .kernel_occupancy = gk_cuda_kernel_occupancy,
    .kernel_suggest = gk_cuda_kernel_suggest,
    .describe_box = gk_cuda_describe_box,
    .stream_new = cuda_stream_new,
    .stream_free = cuda_stream_free,
    .start_copy_in = gk_cuda_start_copy_in,
    .start_copy_out = gk_cuda_start_copy_out,
    .start_lines_out = gk_cuda_start_lines_out,
    .pin = gk_cuda_pin,
    .map = gk_cuda_map,
    .unpin = gk_cuda_unpin,
    .event_new = cuda_event_new,
    .event_free = cuda_event_free,
    .record = cuda_record,
    .elapsed = cuda_elapsed,
    .reach = cuda_reach,
    .wait_event = cuda_wait_event,
    .wait = cuda_wait,
    .synchronize = cuda_synchronize,
    .capture = gk_cuda_capture,
    .capture_end = gk_cuda_capture_end,
    .graph_launch = gk_cuda_graph_launch,
    .graph_free = gk_cuda_graph_free,
    .holds = cuda_holds,
    .owns = gk_cuda_owns,
    .place = gk_cuda_place,
    .copy_across = gk_cuda_copy_across,
    .make_current = cuda_make_current,
    .live_bytes = gk_cuda_live_bytes,
    .trim = gk_cuda_trim,
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
    cuda->lock = cuda->cublas_lock = cuda->event_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    const size_t counters = GK_STREAM_COUNTERS * sizeof(unsigned);
    gk_standing_start(&cuda->meetings, counters + LITTLE_SCRATCH, counters, GK_STANDING_PLACES);
    gk_standing_start(&cuda->scratch, MUCH_SCRATCH, 0, GK_STANDING_PLACES / 4);
    gk_standing_start(&cuda->workspaces, 0, 0, GK_STANDING_PLACES / 4);
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
