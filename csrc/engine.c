#include "engine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_sim.h"

void gk_engine_init(gk_engine *engine, gk_locator locate, void *locate_context) {
    memset(engine, 0, sizeof *engine);
    pthread_mutex_init(&engine->lock, NULL);
    engine->locate = locate;
    engine->locate_context = locate_context;
}

void gk_engine_close(gk_engine *engine) {
    gk_backend *backend = gk_engine_opened(engine);
    if (backend)
        backend->close(backend);
    pthread_mutex_destroy(&engine->lock);
}

static bool is_cuda(const gk_backend *backend) {
    return strcmp(backend->name, "cuda") == 0;
}

static gk_status open_cuda(gk_engine *engine, gk_backend **backend, gk_error *error) {
    return gk_backend_cuda_open(backend, engine->locate, engine->locate_context, error);
}

static gk_status open_backend(gk_engine *engine, gk_backend **backend, gk_error *error) {
    const char *choice = getenv("GPUKERN_DEVICE");
    if (!choice || !*choice) {
        if (open_cuda(engine, backend, &engine->no_gpu) == GK_OK)
            return GK_OK;
        return gk_backend_sim_open(backend, error);
    }
    if (strcmp(choice, "cuda") == 0)
        return open_cuda(engine, backend, error);
    if (strcmp(choice, "sim") == 0)
        return gk_backend_sim_open(backend, error);
    return gk_fail(
        error, GK_VALUE_ERROR,
        "GPUKERN_DEVICE is \"%s\"; it takes \"cuda\" (a GPU or an error) or \"sim\" (the "
        "CPU simulator), and unset it means a GPU where there is one",
        choice);
}

static gk_status open_once(gk_engine *engine, gk_backend **backend, gk_error *error) {
    gk_status status = GK_OK;
    pthread_mutex_lock(&engine->lock);
    *backend = atomic_load(&engine->backend);
    if (!*backend)
        status = open_backend(engine, backend, error);
    if (status == GK_OK && !atomic_load(&engine->backend)) {
        engine->opener = getpid();
        gk_backend_fault_wrap(&engine->faulty, *backend, &engine->faults);
        atomic_store(&engine->backend, *backend);
    }
    pthread_mutex_unlock(&engine->lock);
    return status;
}

gk_status gk_engine_backend(gk_engine *engine, gk_backend **backend, gk_error *error) {
    *backend = atomic_load(&engine->backend);
    if (!*backend) {
        gk_status status = open_once(engine, backend, error);
        if (status != GK_OK)
            return status;
    }
    if (is_cuda(*backend) && engine->opener != getpid())
        return gk_fail(error, GK_CUDA_ERROR,
                       "this process was forked after the GPU had been used, and CUDA does not "
                       "survive a fork; use multiprocessing's \"spawn\" or \"forkserver\", or fork "
                       "before the first call");
    if (atomic_load_explicit(&engine->faults.left, memory_order_relaxed) > 0)
        *backend = &engine->faulty.base;
    return GK_OK;
}

gk_backend *gk_engine_opened(gk_engine *engine) {
    gk_backend *backend = atomic_load(&engine->backend);
    return backend && is_cuda(backend) && engine->opener != getpid() ? NULL : backend;
}
