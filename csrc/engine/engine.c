#define _GNU_SOURCE /* MADV_WIPEONFORK */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/sim/backend.h"

/* More threads than this do not copy faster: six fill PCIe 5. */
enum { MOST_WORKERS = 6, MAPPED_BYTES = 192 << 10 };

/* A share of the machine's memory that its other users will not miss. */
static size_t default_pinned_limit(void) {
    return (size_t)sysconf(_SC_PHYS_PAGES) / 16 * (size_t)sysconf(_SC_PAGESIZE);
}

static pid_t *wiped_page(void) {
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, bytes, MADV_WIPEONFORK) == 0)
        return page;
    munmap(page, bytes);
    return NULL;
}

int gk_engine_init(gk_engine *engine, gk_locator locate, void *locate_context) {
    memset(engine, 0, sizeof *engine);
    pthread_mutex_init(&engine->lock, NULL);
    engine->locate = locate;
    engine->locate_context = locate_context;
    engine->pinned_limit = default_pinned_limit();
    engine->mapped_limit = MAPPED_BYTES;
    engine->chunk_limit = GK_PIPELINE_CHUNK;
    engine->here = wiped_page();
    return pthread_key_create(&engine->current, NULL) == 0 ? 0 : -1;
}

static bool is_cuda(const gk_backend *backend) {
    return strcmp(backend->name, "cuda") == 0;
}

static void close_device(gk_device *device, bool usable) {
    if (!device)
        return;
    if (usable && device->pipeline)
        gk_pipeline_free(device->pipeline, device->backend);
    if (usable && device->mailboxes)
        gk_mailboxes_free(device->mailboxes, device->backend);
    if (usable)
        gk_pool_close(device->pool);
    if (usable && device->backend)
        device->backend->close(device->backend);
    free(device);
}

void gk_engine_close(gk_engine *engine) {
    for (int i = 0; i < GK_MAX_DEVICES; i++) {
        gk_device *device = atomic_load(&engine->devices[i]);
        close_device(device, device && gk_engine_usable(engine, device) != NULL);
    }
    gk_workers_free(engine->workers);
    if (engine->here)
        munmap(engine->here, (size_t)sysconf(_SC_PAGESIZE));
    pthread_key_delete(engine->current);
    pthread_mutex_destroy(&engine->lock);
}

int gk_engine_current(const gk_engine *engine) {
    return (int)(intptr_t)pthread_getspecific(engine->current);
}

void gk_engine_choose(gk_engine *engine, int ordinal) {
    pthread_setspecific(engine->current, (void *)(intptr_t)ordinal);
}

/* opening -------------------------------------------------------------------------------------- */

static gk_status open_simulator(int ordinal, gk_backend **backend, gk_error *error) {
    if (ordinal != 0)
        return gk_fail(error, GK_VALUE_ERROR, "there is no device %d: the simulator is device 0",
                       ordinal);
    return gk_backend_sim_open(backend, error);
}

static gk_status open_cuda(gk_engine *engine, int ordinal, gk_backend **backend, gk_error *error) {
    return gk_backend_cuda_open(backend, ordinal, engine->locate, engine->locate_context, error);
}

static gk_status open_backend(gk_engine *engine, int ordinal, gk_backend **backend,
                              gk_error *error) {
    const char *choice = getenv("GPUKERN_DEVICE");
    if (!choice || !*choice) {
        if (engine->no_gpu.status == GK_OK &&
            open_cuda(engine, ordinal, backend, &engine->no_gpu) == GK_OK)
            return GK_OK;
        if (engine->no_gpu.status != GK_VALUE_ERROR) /* that one is about the ordinal */
            return open_simulator(ordinal, backend, error);
        *error = engine->no_gpu;
        engine->no_gpu.status = GK_OK;
        return error->status;
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

static gk_status equip(gk_engine *engine, gk_device *device, gk_error *error) {
    if (!engine->workers) {
        int cores = gk_cores();
        engine->workers = gk_workers_new(cores < MOST_WORKERS ? cores : MOST_WORKERS);
    }
    if (engine->workers)
        device->pool = gk_pool_new(device->backend, engine->workers, engine->pinned_limit);
    if (device->pool) {
        device->pipeline = gk_pipeline_new(engine->workers, device->pool);
        device->mailboxes = gk_mailboxes_new(device->pool);
    }
    if (!device->pipeline || !device->mailboxes)
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory");
    gk_choices_init(&device->choices);
    device->backend->choices = &device->choices;
    gk_backend_fault_wrap(&device->faulty, device->backend, &engine->faults);
    return GK_OK;
}

static gk_status open_once(gk_engine *engine, int ordinal, gk_device **device, gk_error *error) {
    gk_status status = GK_OK;
    pthread_mutex_lock(&engine->lock);
    *device = atomic_load(&engine->devices[ordinal]);
    if (!*device) {
        gk_device *made = calloc(1, sizeof *made);
        status = made ? open_backend(engine, ordinal, &made->backend, error)
                      : gk_fail(error, GK_MEMORY_ERROR, "out of host memory");
        if (status == GK_OK)
            status = equip(engine, made, error);
        if (status == GK_OK) {
            engine->opener = getpid();
            if (engine->here)
                *engine->here = engine->opener;
            atomic_store(&engine->devices[ordinal], made);
            *device = made;
        } else {
            close_device(made, true);
        }
    }
    pthread_mutex_unlock(&engine->lock);
    return status;
}

gk_status gk_engine_device(gk_engine *engine, gk_device **device, gk_backend **backend,
                           gk_error *error) {
    int ordinal = gk_engine_current(engine);
    if (ordinal < 0 || ordinal >= GK_MAX_DEVICES)
        return gk_fail(error, GK_VALUE_ERROR, "there is no device %d", ordinal);
    *device = atomic_load(&engine->devices[ordinal]);
    if (!*device) {
        gk_status status = open_once(engine, ordinal, device, error);
        if (status != GK_OK)
            return status;
    }
    *backend = (*device)->backend;
    if (!gk_engine_usable(engine, *device))
        return gk_fail(error, GK_CUDA_ERROR,
                       "this process was forked after the GPU had been used, and CUDA does not "
                       "survive a fork; use multiprocessing's \"spawn\" or \"forkserver\", or fork "
                       "before the first call");
    if (atomic_load_explicit(&engine->faults.left, memory_order_relaxed) > 0)
        *backend = &(*device)->faulty.base;
    return GK_OK;
}

bool gk_engine_is_open(const gk_engine *engine) {
    int ordinal = gk_engine_current(engine);
    return ordinal >= 0 && ordinal < GK_MAX_DEVICES && atomic_load(&engine->devices[ordinal]);
}

gk_backend *gk_engine_usable(const gk_engine *engine, const gk_device *device) {
    pid_t here = engine->here ? *engine->here : getpid();
    return here == engine->opener || !is_cuda(device->backend) ? device->backend : NULL;
}

void gk_engine_limit_pinned(gk_engine *engine, size_t bytes) {
    atomic_store(&engine->pinned_limit, bytes);
    for (int i = 0; i < GK_MAX_DEVICES; i++) {
        gk_device *device = atomic_load(&engine->devices[i]);
        if (device)
            gk_pool_set_limit(device->pool, bytes);
    }
}
