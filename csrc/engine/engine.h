/* The engine: which device serves this process, opened when it is first needed, and what is kept
   for it: pinned memory, worker threads, the pipeline of the host's arrays. */
#ifndef GK_ENGINE_H
#define GK_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "device/backend.h"
#include "device/compiler.h"
#include "device/reports.h"

typedef struct gk_workers gk_workers;
typedef struct gk_pool gk_pool;
typedef struct gk_pipeline gk_pipeline;
typedef struct gk_mailboxes gk_mailboxes;
typedef struct gk_ways gk_ways;

enum { GK_MOST_DEVICES = 16 }; /* that a process can use */

/* An open device; what else it has is engine.c's. */
typedef struct gk_device {
    gk_backend *backend;
    gk_workers *workers; /* its own: calls on two devices do not wait for one another */
    gk_pool *pool;
    gk_pipeline *pipeline;
    gk_mailboxes *mailboxes;
    gk_ways *ways;
} gk_device;

enum { GK_MAPPED_BYTES = 192 << 10 }; /* unless somebody sets it */

/* What a call reads of the engine; what else it has is engine.c's. */
typedef struct gk_engine {
    atomic_int strict;          /* how many gpukern.strict() blocks are open */
    atomic_size_t pinned_limit; /* bytes of pinned host memory a device */
    atomic_size_t device_limit; /* bytes of device memory that a call's arrays may take; 0: all */
    atomic_size_t mapped_limit; /* a call of no more bytes than this copies nothing;
                                   GK_MAPPED_BYTES: or what was found to be faster */
    atomic_size_t chunk_limit;  /* bytes of a chunk of a host array */
    atomic_size_t boxed_limit;  /* copies of no less bytes than this may go by boxes, */
    atomic_size_t tiled_limit;  /* and of more than this by tiles, of eight times that by lines */
    atomic_size_t
        vectors_limit; /* arrays of no less are reduced by vectors; SIZE_MAX: as is best */
    atomic_size_t repeated_limit; /* rows of no less that are read several times are so in parts */
} gk_engine;

/* The Python side knows where things are: cuBLAS, and the tables of what was measured on a device
   of that name. Called without the GIL. */
enum { GK_PLACES_BYTES = 8192 };
typedef struct gk_places {
    gk_locator cublas;
    void (*tables)(void *context, const char *device, char *paths, size_t size);
    void *context;
} gk_places;

/* NULL: out of memory, or the system has no more locks to give. */
gk_engine *gk_engine_new(gk_places places);
void gk_engine_free(gk_engine *engine); /* NULL is fine */

/* The device of that number, opened now if it was not; not under the GIL. `backend` is what to
   call: the device's own, or the one with planted faults. GPUKERN_DEVICE decides: "cuda", "sim", or
   unset for a GPU where there is one and the simulator elsewhere. */
gk_status gk_engine_device(gk_engine *engine, int ordinal, gk_device **device, gk_backend **backend,
                           gk_error *error);

/* Whether the device of that number is open. */
bool gk_engine_is_open(const gk_engine *engine, int ordinal);

/* How many devices there are to choose from; 0: not known before one is open. */
int gk_engine_devices(const gk_engine *engine);
/* The open device whose memory that is; -1: none's. */
int gk_engine_place(const gk_engine *engine, const void *pointer);

/* The device's backend for giving memory back; NULL in a process that must not touch it. */
gk_backend *gk_device_usable(const gk_device *device);

/* The calling thread's choice of a device; not checked until it is used. False: out of memory. */
int gk_engine_current(const gk_engine *engine);
bool gk_engine_choose(gk_engine *engine, long ordinal);

/* Open `change` more gpukern.strict() blocks. */
void gk_engine_add_strict(gk_engine *engine, int change);

/* The settings, in bytes. */
typedef enum gk_limit {
    GK_LIMIT_PINNED,
    GK_LIMIT_DEVICE,
    GK_LIMIT_MAPPED,
    GK_LIMIT_CHUNK,
    GK_LIMIT_BOXED,
    GK_LIMIT_TILED,
    GK_LIMIT_VECTORS,
    GK_LIMIT_REPEATED,
} gk_limit;
size_t gk_engine_limit(gk_engine *engine, gk_limit which);
/* What is more than the engine can do stands for the most that it can. */
void gk_engine_set_limit(gk_engine *engine, gk_limit which, size_t bytes);

/* For tests: the number-th call from now that can fail does, host allocations among them; 0: none.
   Returns whether the fault planted before has come to pass. */
bool gk_engine_plant_fault(gk_engine *engine, long number);
/* Whether the host allocation being made is the one to fail. */
bool gk_engine_fault_due(gk_engine *engine);

/* Device memory that arrays and calls have now. */
size_t gk_device_live_bytes(const gk_device *device);
/* What is kept for later calls, to the system. */
void gk_device_trim(const gk_device *device);

/* Why the simulator serves though nobody asked for it, or NULL. */
const char *gk_engine_no_gpu(const gk_engine *engine);

/* Why a table of what was measured on such a device is not used, or NULL. */
const char *gk_device_complaint(const gk_device *device);

/* The devices of the same kind as an open one, and what one of them is. */
int gk_device_count(const gk_device *device);
gk_status gk_device_describe(const gk_device *device, int ordinal, gk_device_summary *summary,
                             gk_attribute_visitor visit, void *context, gk_error *error);
/* The driver and cuBLAS; what is wrong with them stands in the report. */
void gk_describe_driver(gk_driver_report *report);
gk_build_report gk_describe_build(void);
/* NVRTC, which needs no device. GK_OK also for a source that does not compile: the log says why. */
gk_status gk_compile_source(const gk_compiler_job *job, gk_compiled *result, gk_error *error);
void gk_compiled_free(gk_compiled *result);
gk_status gk_compiler_version(const char *library, int *version, gk_error *error);
void gk_device_describe_cublas(const gk_device *device, gk_cublas_report *report);

#endif
