/* The engine: which device serves this process, opened when it is first needed. */
#ifndef GK_ENGINE_H
#define GK_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "backend.h"
#include "backend_cuda.h"
#include "backend_fault.h"

typedef struct gk_engine {
    pthread_mutex_t lock;
    _Atomic(gk_backend *) backend; /* NULL until first use */
    pid_t opener;                  /* the process that opened it: CUDA does not survive a fork */
    gk_error no_gpu;               /* why the simulator serves, where nobody asked for it */
    gk_faults faults;
    gk_faulty faulty;
    atomic_int strict; /* how many gpukern.strict() blocks are open */
    gk_locator locate;
    void *locate_context;
} gk_engine;

void gk_engine_init(gk_engine *engine, gk_locator locate, void *locate_context);
void gk_engine_close(gk_engine *engine);

/* The backend to call, opened now if it was not; not under the GIL. GPUKERN_DEVICE decides: "cuda",
   "sim", or unset for a GPU where there is one and the simulator elsewhere. */
gk_status gk_engine_backend(gk_engine *engine, gk_backend **backend, gk_error *error);

/* The backend that is open, for giving memory back; NULL in a process that must not touch it. */
gk_backend *gk_engine_opened(gk_engine *engine);

#endif
