#include "engine/engine.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/memory.h"
#include "base/workers.h"
#include "device/cuda/backend.h"
#include "device/cuda/images.h"
#include "device/cuda/nvrtc.h"
#include "device/fault/backend.h"
#include "device/registry.h"
#include "device/sim/backend.h"
#include "device/tuned.h"
#include "engine/mailbox.h"
#include "engine/pipeline.h"
#include "engine/pool.h"
#include "engine/ways.h"

enum {
    MOST_WORKERS = 16,        /* more threads than this do not copy faster */
    BOXED_BYTES = 32 << 20,   /* less is in the cache when it is read again */
    TILED_BYTES = 1 << 18,    /* elements of so many are as soon moved by themselves */
    REPEATED_BYTES = 8 << 20, /* which the cache does not hold beside the other arrays' */
};

typedef struct open_device {
    gk_device base;
    gk_owner opener; /* CUDA does not survive a fork */
    gk_faulty faulty;
    gk_choices choices;
    gk_ways ways;
    gk_error complaint; /* of a table that could not be used */
} open_device;

typedef struct whole_engine {
    gk_engine base;
    gk_lock lock;                                    /* held while a device is opened */
    _Atomic(open_device *) devices[GK_MOST_DEVICES]; /* NULL until first use */
    pthread_key_t current;    /* the ordinal that a thread has chosen, as a pointer; 0 by default */
    gk_error no_gpu;          /* why the simulator serves, where nobody asked for it */
    atomic_bool no_gpu_known; /* to all: it is not written again */
    bool is_opening_gpu;
    gk_error forked; /* why there is no GPU to open: the fork came while one was being opened */
    gk_faults faults;
    gk_places places;
} whole_engine;

static const char after_a_fork[] =
    "this process was forked %s, and CUDA does not survive a fork; use multiprocessing's \"spawn\" "
    "or \"forkserver\", or fork before the first call";

gk_engine *gk_engine_new(gk_places places) {
    whole_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return NULL;
    engine->places = places;
    /* A share of the memory that its other users will not miss. */
    engine->base.pinned_limit = gk_memory_total() / 16;
    engine->base.mapped_limit = GK_MAPPED_BYTES;
    engine->base.chunk_limit = GK_FLOW_CHUNK;
    engine->base.boxed_limit = BOXED_BYTES;
    engine->base.tiled_limit = TILED_BYTES;
    engine->base.vectors_limit = SIZE_MAX;
    engine->base.repeated_limit = REPEATED_BYTES;
    if (!gk_lock_init(&engine->lock))
        goto no_lock;
    if (pthread_key_create(&engine->current, NULL) != 0)
        goto no_key;
    return &engine->base;
no_key:
    gk_lock_free(&engine->lock);
no_lock:
    free(engine);
    return NULL;
}

static bool is_cuda(const gk_backend *backend) {
    return strcmp(backend->name, "cuda") == 0;
}

gk_backend *gk_device_usable(const gk_device *device) {
    const open_device *opened = (const open_device *)device;
    return gk_is_owner(&opened->opener) || !is_cuda(device->backend) ? device->backend : NULL;
}

static void close_device(open_device *opened) {
    gk_device *device = &opened->base;
    if (device->backend && gk_device_usable(device)) {
        if (device->pipeline)
            gk_pipeline_free(device->pipeline, device->backend);
        if (device->mailboxes)
            gk_mailboxes_free(device->mailboxes, device->backend);
        gk_pool_close(device->pool);
        device->backend->close(device->backend);
    }
    if (device->ways)
        gk_lock_free(&device->ways->lock);
    gk_tuned_free(opened->choices.tuned);
    gk_workers_free(device->workers);
    gk_owner_free(&opened->opener);
    free(opened);
}

void gk_engine_free(gk_engine *base) {
    whole_engine *engine = (whole_engine *)base;
    if (!engine)
        return;
    for (int i = 0; i < GK_MOST_DEVICES; i++) {
        open_device *opened = atomic_load(&engine->devices[i]);
        if (opened)
            close_device(opened);
    }
    pthread_key_delete(engine->current);
    gk_lock_free(&engine->lock);
    free(engine);
}

int gk_engine_current(const gk_engine *base) {
    const whole_engine *engine = (const whole_engine *)base;
    return (int)(intptr_t)pthread_getspecific(engine->current);
}

bool gk_engine_choose(gk_engine *base, long ordinal) {
    whole_engine *engine = (whole_engine *)base;
    intptr_t chosen = ordinal < 0 || ordinal > GK_MOST_DEVICES ? GK_MOST_DEVICES : ordinal;
    return pthread_setspecific(engine->current, (void *)chosen) == 0;
}

/* opening -------------------------------------------------------------------------------------- */

static gk_status open_simulator(int ordinal, gk_backend **backend, gk_error *error) {
    return gk_backend_sim_open(backend, ordinal, error);
}

static gk_status open_cuda(whole_engine *engine, int ordinal, gk_backend **backend,
                           gk_error *error) {
    if (engine->forked.status != GK_OK) {
        *error = engine->forked;
        return error->status;
    }
    engine->is_opening_gpu = true;
    gk_status status = gk_backend_cuda_open(backend, ordinal, engine->places.cublas,
                                            engine->places.context, error);
    engine->is_opening_gpu = status == GK_OK; /* until others can see that it is open */
    return status;
}

static gk_status open_backend(whole_engine *engine, int ordinal, gk_backend **backend,
                              gk_error *error) {
    const char *choice = getenv("GPUKERN_DEVICE");
    if (!choice || !*choice) {
        if (atomic_load(&engine->no_gpu_known))
            return open_simulator(ordinal, backend, error);
        gk_error refusal;
        if (open_cuda(engine, ordinal, backend, &refusal) == GK_OK)
            return GK_OK;
        if (refusal.status == GK_VALUE_ERROR) { /* about the ordinal, not the machine */
            *error = refusal;
            return error->status;
        }
        engine->no_gpu = refusal;
        atomic_store(&engine->no_gpu_known, true);
        return open_simulator(ordinal, backend, error);
    }
    if (strcmp(choice, "cuda") == 0)
        return open_cuda(engine, ordinal, backend, error);
    if (strcmp(choice, "sim") == 0)
        return open_simulator(ordinal, backend, error);
    return gk_fail(
        error, GK_VALUE_ERROR,
        "GPUKERN_DEVICE is \"%s\"; it takes \"cuda\" (a GPU or an error) or \"sim\" (the "
        "CPU simulator), and unset it means a GPU where there is one",
        choice);
}

/* What was measured on a device like this one, the user's own after what comes with the package. A
   table that cannot be used is no reason to refuse the device. */
static gk_status read_tables(const whole_engine *engine, open_device *opened, gk_error *error) {
    char paths[GK_PLACES_BYTES] = "", *rest = NULL;
    const gk_backend *backend = opened->base.backend;
    gk_tuned *tuned = opened->choices.tuned = gk_tuned_new();
    if (!tuned)
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory");
    if (!backend->model[0])
        return GK_OK; /* without a name there are no tables */
    engine->places.tables(engine->places.context, backend->model, paths, sizeof paths);
    for (char *path = strtok_r(paths, "\n", &rest); path; path = strtok_r(NULL, "\n", &rest))
        if (gk_tuned_read(tuned, path, backend->model, &opened->complaint) == GK_MEMORY_ERROR) {
            *error = opened->complaint;
            return error->status;
        }
    return GK_OK;
}

static gk_status equip(whole_engine *engine, open_device *opened, gk_error *error) {
    gk_device *device = &opened->base;
    int cores = gk_cores();
    device->workers = gk_workers_new(cores < MOST_WORKERS ? cores : MOST_WORKERS);
    if (device->workers)
        device->pool = gk_pool_new(device->backend, device->workers, engine->base.pinned_limit);
    if (device->pool) {
        device->pipeline = gk_pipeline_new(device->workers, device->pool);
        device->mailboxes = gk_mailboxes_new(device->pool);
    }
    if (gk_lock_init(&opened->ways.lock))
        device->ways = &opened->ways;
    if (!device->pipeline || !device->mailboxes || !device->ways)
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory");
    gk_choices_init(&opened->choices);
    device->backend->choices = &opened->choices;
    gk_backend_fault_wrap(&opened->faulty, device->backend, &engine->faults);
    return read_tables(engine, opened, error);
}

static gk_status open_device_now(whole_engine *engine, int ordinal, open_device **opened,
                                 gk_error *error) {
    open_device *made = calloc(1, sizeof *made);
    if (!made)
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory");
    gk_owner_init(&made->opener);
    gk_status status = open_backend(engine, ordinal, &made->base.backend, error);
    if (status == GK_OK)
        status = equip(engine, made, error);
    if (status != GK_OK) {
        close_device(made);
        return status;
    }
    atomic_store(&engine->devices[ordinal], made);
    *opened = made;
    return GK_OK;
}

/* In the child of a fork that came while a thread which is not here was opening a device: a GPU is
   out of reach, since nobody knows how far the driver was. */
static void inherit(whole_engine *engine) {
    if (!engine->is_opening_gpu)
        return;
    engine->is_opening_gpu = false;
    atomic_store(&engine->no_gpu_known, false);
    gk_fail(&engine->forked, GK_CUDA_ERROR, after_a_fork, "while a GPU was being opened");
}

static gk_status open_once(whole_engine *engine, int ordinal, open_device **opened,
                           gk_error *error) {
    gk_status status = GK_OK;
    if (gk_lock_take(&engine->lock) == GK_ABANDONED)
        inherit(engine);
    *opened = atomic_load(&engine->devices[ordinal]);
    if (!*opened)
        status = open_device_now(engine, ordinal, opened, error);
    engine->is_opening_gpu = false;
    gk_lock_give(&engine->lock);
    return status;
}

gk_status gk_engine_device(gk_engine *base, int ordinal, gk_device **device, gk_backend **backend,
                           gk_error *error) {
    whole_engine *engine = (whole_engine *)base;
    if (ordinal < 0 || ordinal >= GK_MOST_DEVICES)
        return gk_fail(error, GK_VALUE_ERROR, "there is no device %d", ordinal);
    open_device *opened = atomic_load(&engine->devices[ordinal]);
    if (!opened) {
        gk_status status = open_once(engine, ordinal, &opened, error);
        if (status != GK_OK)
            return status;
    }
    *device = &opened->base;
    *backend = opened->base.backend;
    if (!gk_device_usable(*device))
        return gk_fail(error, GK_CUDA_ERROR, after_a_fork, "after the GPU had been used");
    if (atomic_load_explicit(&engine->faults.left, memory_order_relaxed) > 0)
        *backend = &opened->faulty.base;
    return GK_OK;
}

bool gk_engine_is_open(const gk_engine *base, int ordinal) {
    const whole_engine *engine = (const whole_engine *)base;
    return ordinal >= 0 && ordinal < GK_MOST_DEVICES && atomic_load(&engine->devices[ordinal]);
}

int gk_engine_devices(const gk_engine *base) {
    const whole_engine *engine = (const whole_engine *)base;
    for (int i = 0; i < GK_MOST_DEVICES; i++) {
        const open_device *opened = atomic_load(&engine->devices[i]);
        if (opened)
            return opened->base.backend->devices;
    }
    return 0;
}

int gk_engine_place(const gk_engine *base, const void *pointer) {
    const whole_engine *engine = (const whole_engine *)base;
    int place = -1;
    for (int i = 0; i < GK_MOST_DEVICES && place < 0; i++) {
        const open_device *opened = atomic_load(&engine->devices[i]);
        gk_backend *backend = opened ? gk_device_usable(&opened->base) : NULL;
        if (backend)
            place = backend->place(backend, pointer);
    }
    return place;
}

/* settings ------------------------------------------------------------------------------------- */

void gk_engine_add_strict(gk_engine *engine, int change) {
    atomic_fetch_add(&engine->strict, change);
}

static atomic_size_t *limit_of(gk_engine *engine, gk_limit which) {
    switch (which) {
    case GK_LIMIT_PINNED:
        return &engine->pinned_limit;
    case GK_LIMIT_DEVICE:
        return &engine->device_limit;
    case GK_LIMIT_MAPPED:
        return &engine->mapped_limit;
    case GK_LIMIT_CHUNK:
        return &engine->chunk_limit;
    case GK_LIMIT_BOXED:
        return &engine->boxed_limit;
    case GK_LIMIT_TILED:
        return &engine->tiled_limit;
    case GK_LIMIT_VECTORS:
        return &engine->vectors_limit;
    case GK_LIMIT_REPEATED:
        break;
    }
    return &engine->repeated_limit;
}

size_t gk_engine_limit(gk_engine *engine, gk_limit which) {
    return atomic_load(limit_of(engine, which));
}

static size_t at_most(size_t bytes, size_t most) {
    return bytes < most ? bytes : most;
}

void gk_engine_set_limit(gk_engine *base, gk_limit which, size_t bytes) {
    whole_engine *engine = (whole_engine *)base;
    if (which == GK_LIMIT_MAPPED)
        bytes = at_most(bytes, GK_MAILBOX_MOST);
    if (which == GK_LIMIT_CHUNK)
        bytes = at_most(bytes, GK_FLOW_CHUNK);
    atomic_store(limit_of(base, which), bytes);
    for (int i = 0; i < GK_MOST_DEVICES && which == GK_LIMIT_PINNED; i++) {
        open_device *opened = atomic_load(&engine->devices[i]);
        if (opened)
            gk_pool_set_limit(opened->base.pool, bytes);
    }
}

bool gk_engine_plant_fault(gk_engine *base, long number) {
    gk_faults *faults = &((whole_engine *)base)->faults;
    bool fired = atomic_exchange(&faults->fired, false);
    atomic_store(&faults->left, number);
    return fired;
}

bool gk_engine_fault_due(gk_engine *base) {
    return gk_fault_due(&((whole_engine *)base)->faults);
}

/* memory and reports --------------------------------------------------------------------------- */

size_t gk_device_live_bytes(const gk_device *device) {
    size_t own = gk_pipeline_bytes(device->pipeline) + gk_mailboxes_bytes(device->mailboxes);
    size_t live = device->backend->live_bytes(device->backend);
    return live > own ? live - own : 0; /* they may have gone in between */
}

void gk_device_trim(const gk_device *device) {
    gk_pipeline_trim(device->pipeline, device->backend);
    gk_mailboxes_trim(device->mailboxes, device->backend);
    gk_pool_trim(device->pool);
    device->backend->trim(device->backend);
}

const char *gk_engine_no_gpu(const gk_engine *base) {
    const whole_engine *engine = (const whole_engine *)base;
    return atomic_load(&engine->no_gpu_known) ? engine->no_gpu.text : NULL;
}

const char *gk_device_complaint(const gk_device *device) {
    const open_device *opened = (const open_device *)device;
    return opened->complaint.status == GK_OK ? NULL : opened->complaint.text;
}

int gk_device_count(const gk_device *device) {
    return device->backend->devices;
}

gk_status gk_device_describe(const gk_device *device, int ordinal, gk_device_summary *summary,
                             gk_attribute_visitor visit, void *context, gk_error *error) {
    if (is_cuda(device->backend))
        return gk_cuda_describe(ordinal, summary, visit, context, error);
    gk_backend_sim_describe(ordinal, summary, visit, context);
    return GK_OK;
}

gk_build_report gk_describe_build(void) {
    return (gk_build_report){gk_built_for, gk_built_machine_code, gk_built_ptx};
}

void gk_describe_driver(gk_driver_report *report) {
    gk_cuda_report(report);
}

void gk_device_describe_cublas(const gk_device *device, gk_cublas_report *report) {
    *report = (gk_cublas_report){0};
    if (is_cuda(device->backend))
        gk_backend_cuda_cublas(device->backend, report);
    else
        gk_fail(&report->problem, GK_CUDA_ERROR, "cuBLAS needs a GPU");
}

gk_status gk_compile_source(const gk_compiler_job *job, gk_compiled *result, gk_error *error) {
    return gk_nvrtc_compile(job, result, error);
}

void gk_compiled_free(gk_compiled *result) {
    gk_nvrtc_free(result);
}

gk_status gk_compiler_version(const char *library, int *version, gk_error *error) {
    return gk_nvrtc_version(library, version, error);
}
