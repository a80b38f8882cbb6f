/* The engine: which device serves this process, opened when it is first needed, and what is kept
   for it: pinned memory, worker threads, the pipeline of the host's arrays. */
#ifndef GK_ENGINE_H
#define GK_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "device/backend.h"
#include "device/cuda/backend.h"
#include "device/fault/backend.h"
#include "engine/mailbox.h"
#include "engine/pipeline.h"
#include "engine/pool.h"
#include "device/registry.h"
#include "base/workers.h"

enum { GK_MAX_DEVICES = 16 };

typedef struct gk_device {
    gk_backend *backend;
    gk_faulty faulty;
    gk_choices choices;
    gk_pool *pool;
    gk_pipeline *pipeline;
    gk_mailboxes *mailboxes;
} gk_device;

typedef struct gk_engine {
    pthread_mutex_t lock;
    _Atomic(gk_device *) devices[GK_MAX_DEVICES]; /* NULL until first use */
    pthread_key_t current; /* the ordinal that a thread has chosen, as a pointer; 0 by default */
    gk_workers *workers;   /* shared by the devices */
    pid_t opener;          /* the process that opened a device: CUDA does not survive a fork */
    pid_t *here;           /* the same on a page that a fork wipes: nobody need be asked who we are;
                              NULL where the system has no such pages */
    gk_error no_gpu;       /* why the simulator serves, where nobody asked for it */
    gk_faults faults;
    atomic_int strict;          /* how many gpukern.strict() blocks are open */
    atomic_size_t pinned_limit; /* bytes of pinned host memory a device */
    atomic_size_t device_limit; /* bytes of device memory that a call's arrays may take; 0: all */
    atomic_size_t mapped_limit; /* a call of no more bytes than this copies nothing */
    atomic_size_t chunk_limit;  /* bytes of a chunk of a host array */
    gk_locator locate;
    void *locate_context;
} gk_engine;

/* 0, or -1 where the system has no more locks to give. */
int gk_engine_init(gk_engine *engine, gk_locator locate, void *locate_context);
void gk_engine_close(gk_engine *engine);

/* The calling thread's device, opened now if it was not; not under the GIL. `backend` is what to
   call: the device's own, or the one with planted faults. GPUKERN_DEVICE decides: "cuda", "sim", or
   unset for a GPU where there is one and the simulator elsewhere. */
gk_status gk_engine_device(gk_engine *engine, gk_device **device, gk_backend **backend,
                           gk_error *error);

/* Whether the calling thread's device is open. */
bool gk_engine_is_open(const gk_engine *engine);

/* The device's backend for giving memory back; NULL in a process that must not touch it. */
gk_backend *gk_engine_usable(const gk_engine *engine, const gk_device *device);

/* The calling thread's choice of a device; not checked until it is used. */
int gk_engine_current(const gk_engine *engine);
void gk_engine_choose(gk_engine *engine, int ordinal);

void gk_engine_limit_pinned(gk_engine *engine, size_t bytes);

#endif
