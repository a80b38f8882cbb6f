/* A CUDA driver without a GPU, and a cuBLAS for it. Device memory is malloc's, copies copy, a few
   kernels compute (kernels.c); what every call uses is held to the order that streams, events and
   the host's waits make (order.c), and the first call that breaks it ends the process with a line
   about it. Environment variables choose what goes wrong:
     FAKE_INIT=n        what cuInit returns                 FAKE_VERSION=n   13000 for CUDA 13.0
     FAKE_VERSION_FAILS=n  what cuDriverGetVersion returns  FAKE_DEVICES=n   how many GPUs there are
     FAKE_CAPABILITY=n  75 for 7.5                          FAKE_MODULE=n    what loading returns
     FAKE_MACHINE_CODE=n  what loading an image with machine code returns
     FAKE_LAUNCH=n      what a launch returns               FAKE_MEMORY=n    bytes of the device
     FAKE_FAULT=n       what every call returns from the first one that waits for a kernel
     FAKE_POOL=n        how far the pool can grow; a real one grows by 32 MiB at the least
     FAKE_HOST_POINTERS=0  kernels see pinned memory elsewhere than the host, as under WSL 2
     FAKE_KERNELS=0     kernels do nothing              FAKE_PTX=n       75: code was made for 7.5
     FAKE_MAPS=0        kernels do not see pinned memory
     FAKE_SLOW_EVENTS=n microseconds that making one takes
     FAKE_EXIT=1        what lives when the process ends is written to stderr
     FAKE_PAUSE=file    cuInit makes the file and goes on when it is gone

   A test calls fake_fail to have a function fail some times, and fake_live to count what lives. A
   symbol is made missing by compiling with -Dname=absent_name. */
#ifndef GK_TESTS_FAKE_H
#define GK_TESTS_FAKE_H

#include <stddef.h>
#include <stdint.h>

typedef int result;
typedef uintptr_t pointer;
typedef void *handle;

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, NOT_FOUND = 500 };
enum { INVALID_HANDLE = 400, NOT_READY = 600, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };
enum {
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_IMPLICIT = 906
};
enum { RELAXED = 2 }; /* a mode of captures */

/* driver.c ----------------------------------------------------------------------------------- */

long long fake_setting(const char *name, long long otherwise);
/* The failure that a test has planted in the function, or OK. */
result fake_planted(const char *function);
#define FAKE_ENTER()                                                                               \
    do {                                                                                           \
        result planted = fake_planted(__func__);                                                   \
        if (planted != OK)                                                                         \
            return planted;                                                                        \
    } while (0)
extern result fake_sticky;                 /* what every call returns after a fault */
handle fake_context(const char *function); /* the current one; without one the process ends */
int fake_device_of(handle context);

/* Every function that follows is called under the lock. */
void fake_lock(void);
void fake_unlock(void);

/* How many of a kind live: "streams", "events", "modules", "objects", "pinned", "graphs",
   "executables", "pools", "cublas"; "blocking streams" are all that were ever made. */
void fake_count(const char *kind, int change);

/* End the process with a line about what is wrong. */
void fake_violation(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* order.c ------------------------------------------------------------------------------------ */

enum { HOST = 0, ACTORS = 512 }; /* what acts: the host, and streams */
typedef struct clock_vector {
    uint32_t at[ACTORS]; /* how far each actor is known to have come */
} clock_vector;
typedef struct epoch {
    int actor;
    uint32_t time;
} epoch;

typedef struct stream {
    handle handle, context;
    int actor, is_live, is_blocking, is_captured;
    clock_vector clock;
} stream;

size_t fake_stream_number(handle named); /* as tests know it */
stream *fake_stream(handle handle, const char *function);
handle fake_new_stream(int is_blocking, handle context);
void fake_end_stream(handle handle);

/* The next piece of work of the stream, after what the host has waited for. */
epoch fake_submit(stream *on);
void fake_join(clock_vector *into, const clock_vector *from);
/* The host has waited for all that the clock knows. */
void fake_host_waits(const clock_vector *for_what);
void fake_host_waits_for_all(void);
epoch fake_host_acts(void);

/* memory.c ----------------------------------------------------------------------------------- */

typedef enum access_kind { READS, WRITES } access_kind;

/* The work of that epoch uses the bytes; they have to be there, and ordered after other uses.
   Returns where they really lie. */
char *fake_touch(const stream *on, epoch when, pointer first, size_t bytes, access_kind kind,
                 const char *what);
/* The variables of a module that is unloaded. */
void fake_drop_variables(handle module);
int fake_is_of(handle context, const void *memory);
int fake_is_pinned(const void *host, size_t bytes);
/* A copy between pinned memory and the device, or a kernel's use of it, is under way until the host
   has waited for it: what it writes appears then, and what it reads may not change before. */
void fake_pend(epoch when, void *host, const void *content, size_t bytes, access_kind kind);
void fake_settle(const clock_vector *host);

/* streams.c ---------------------------------------------------------------------------------- */

int fake_is_captured(handle stream);
int fake_is_forbidden(void); /* what a capture forbids its thread, and is ended by */
int fake_blocks_legacy(handle stream); /* a capture that the legacy stream would have to wait for */
void fake_note(char what, handle stream);

#endif
