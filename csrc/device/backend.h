/* The one interface to a device: the CUDA driver (cuda/), the same kernels on the CPU (sim/), or
   either with planted faults (fault/). No Python, no CUDA types. */
#ifndef GK_BACKEND_H
#define GK_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

typedef struct gk_row gk_row;
typedef struct gk_backend gk_backend;
typedef struct gk_choices gk_choices;
typedef struct gk_event gk_event;
typedef struct gk_graph gk_graph;
typedef uintptr_t gk_stream; /* a CUstream, or one of these */

/* The legacy default stream is 0 to the driver; where 0 means that none is named it is 1. */
enum { GK_LEGACY_STREAM = 1, GK_PER_THREAD_STREAM = 2 };
enum { GK_STREAM_COUNTERS = 2048 };
enum { GK_LEAST_CAPABILITY = 75 }; /* that gpukern runs on: 7.5, Turing */

#define GK_ON_CAPTURED_STREAM                                                                      \
    "an array is of a stream that is being captured in a CUDA graph, and the call is not on it; "  \
    "pass that stream as stream="

static inline bool gk_is_legacy(gk_stream stream) {
    return stream <= GK_LEGACY_STREAM;
}

static inline bool gk_same_stream(gk_stream a, gk_stream b) {
    return a == b || (gk_is_legacy(a) && gk_is_legacy(b));
}

/* A kernel of a user's module, loaded, and what a launch of it may take. Memory in bytes: local
   memory is a thread's, shared memory a block's. It is of no use once its module is freed. */
typedef struct gk_module gk_module;
typedef struct gk_kernel {
    const char *name; /* a fault names it; lasts as long as the backend */
    void *function;   /* the driver's */
    int registers, local_bytes, constant_bytes;
    int shared_bytes;       /* that it declares itself */
    int most_dynamic;       /* that a launch may ask for beside */
    int most_threads;       /* a block of this kernel */
    int most_block_threads; /* a block of any */
    int most_resident;      /* threads of a multiprocessor */
    int most_block[3], most_grid[3];
} gk_kernel;

typedef struct gk_launch {
    const gk_row *row;       /* the kernel; a fault names it */
    const gk_kernel *kernel; /* in its place: one of a user's module */
    unsigned grid[3];
    unsigned block[3];
    size_t shared_bytes; /* dynamic shared memory; no more than the row says */
    void **arguments;    /* a pointer to each argument, as cuLaunchKernelEx takes them */
    gk_stream stream;
    size_t reads; /* bytes that all of its blocks read together, where that takes most of its time;
                     else 0 */
    bool (*interrupted)(void *context); /* whether the user wants it to end, where it can be */
    void *context;
} gk_launch;

/* For one kernel at a time. NULL: there is none. */
typedef struct gk_stream_memory {
    unsigned *counters; /* GK_STREAM_COUNTERS, which kernels find 0 and leave 0 */
    void *scratch;      /* of the bytes that were asked for, and of any contents */
} gk_stream_memory;

/* A part of a matrix that the copy engine of capability 9.0 moves at a time (TMA), described as
   cuTensorMapEncodeTiled takes it: row-major, `pitch` bytes from row to row. Of a stack the
   matrices are planes, `plane_pitch` bytes apart, and the copy engine is told which; planes 0:
   there is no such axis. */
typedef struct gk_tensor_map {
    unsigned char bytes[128];
} __attribute__((aligned(64))) gk_tensor_map;
typedef struct gk_tensor_box {
    int dtype; /* gk_dtype: float32, float16 or bfloat16 */
    const void *data;
    uint64_t rows, columns, pitch;
    uint32_t box_rows, box_columns;
    uint32_t swizzle; /* bytes of the pattern in shared memory: 0, 64 or 128 */
    uint64_t planes, plane_pitch;
} gk_tensor_box;

/* What a row does on the host before its kernel runs: of the problem, which is the operation's (of
   matmul a gk_gemm), it makes the grid and the arguments, which may point to its own values and
   maps. Before that it says how much device memory it works in, of which the first bytes are
   zeroed. A row may have parts: kernels that run before its own, one after another, with as many of
   its arguments as each takes. */
enum { GK_PREPARED_ARGUMENTS = 8, GK_PREPARED_BYTES = 128, GK_PREPARED_MAPS = 4 };
enum { GK_PREPARED_PARTS = 4 };
typedef struct gk_part {
    const char *name; /* of its row, of the operation "matmul_part" */
    unsigned blocks;
} gk_part;
typedef struct gk_prepared {
    const void *problem;
    void *workspace;
    int part_count;
    gk_part parts[GK_PREPARED_PARTS];
    unsigned blocks;     /* of the row's own kernel; 0: its parts are enough */
    size_t shared_bytes; /* that this takes of what the row says; 0: all */
    void *arguments[GK_PREPARED_ARGUMENTS];
    unsigned char values[GK_PREPARED_BYTES] __attribute__((aligned(16)));
    gk_tensor_map maps[GK_PREPARED_MAPS];
} gk_prepared;
typedef struct gk_room {
    size_t bytes, zeroed;
} gk_room;
typedef gk_room gk_workspace(const void *problem);
typedef gk_status gk_prepare(gk_backend *backend, gk_prepared *prepared, gk_error *error);

/* C = A x B: A is m x k, B is k x n, C is m x n, row-major and contiguous; A and B are of `dtype`,
   C of `result` (gk_dtype). The rows of A and B lie `leading` elements apart, no fewer than there
   are columns; where they are transposed their columns do, no fewer than there are rows. So many
   products, whose matrices lie so many elements behind those of the one before. */
typedef struct gk_gemm {
    int dtype, result;
    int64_t m, n, k;
    int64_t a_leading, b_leading;
    bool a_transposed, b_transposed;
    int64_t products, a_step, b_step, c_step;
    const void *a, *b;
    void *c;
    gk_stream stream;
} gk_gemm;

/* Where to look for a library that is not part of the driver: the Python side knows the wheels.
   Writes full names or paths, one a line, to try in order. */
typedef void (*gk_locator)(void *context, char *candidates, size_t size);

/* Every function returns GK_OK or writes a sentence into `error`. Memory functions take bytes.
   All are safe to call from many threads at once, without the GIL. */
struct gk_backend {
    const char *name;           /* "cuda" or "sim" */
    char model[256];            /* what it is called, "NVIDIA H200"; "": not known */
    int ordinal;                /* which of the devices */
    int devices;                /* how many there are of this kind */
    int capability;             /* compute capability, 90 for 9.0; the simulator claims 75 */
    gk_choices *choices;        /* of rows, so far */
    bool streams_are_addresses; /* which the driver follows, whatever they are */
    bool watches_arrays;        /* users' kernels may touch no byte beside an array's allocation */
    /* Bytes of shared memory of a multiprocessor to which its copy engine brings runs, on 9.0 and
       up and on the simulator; 0: it brings none. */
    size_t fetch_room;

    gk_status (*allocate)(gk_backend *, size_t bytes, gk_stream, void **device, gk_error *);
    /* The same, to last: on a stream that is being captured in a CUDA graph, `allocate` takes what
       is the graph's, and this what the graph shares with its caller. */
    gk_status (*allocate_lasting)(gk_backend *, size_t bytes, gk_stream, void **device, gk_error *);
    void (*release)(gk_backend *, void *device,
                    gk_stream); /* after the stream's work; NULL is fine */
    gk_status (*captured)(gk_backend *, gk_stream, bool *, gk_error *);
    gk_status (*zero)(gk_backend *, void *device, size_t bytes, gk_stream, gk_error *);
    /* What lasts as long as the stream, or as the graph that it is being captured in, both of which
       run kernels one after another. */
    gk_status (*stream_memory)(gk_backend *, gk_stream, size_t bytes, gk_stream_memory *,
                               gk_error *);
    /* Copies return when the host memory may be reused (in) or read (out). */
    gk_status (*copy_in)(gk_backend *, void *device, const void *host, size_t bytes, gk_stream,
                         gk_error *);
    gk_status (*copy_out)(gk_backend *, void *host, const void *device, size_t bytes, gk_stream,
                          gk_error *);
    gk_status (*copy_within)(gk_backend *, void *to, const void *from, size_t bytes, gk_stream,
                             gk_error *);
    gk_status (*launch)(gk_backend *, const gk_launch *, gk_error *);
    gk_status (*gemm)(gk_backend *, const gk_gemm *, gk_error *); /* cuBLAS; NULL: there is none */

    /* What users compiled: a cubin, a fatbin or PTX, on the simulator a shared object, loaded. A
       module whose kernels a graph has may not be freed before the graph. */
    gk_status (*module_load)(gk_backend *, const void *image, size_t bytes, gk_module **,
                             gk_error *);
    void (*module_free)(gk_backend *, gk_module *);
    /* The kernel comes with the name that its user knows, or none. */
    gk_status (*module_kernel)(gk_backend *, gk_module *, const char *symbol, gk_kernel *,
                               gk_error *);
    /* A variable of the module, in memory that lives as long as the module. */
    gk_status (*module_symbol)(gk_backend *, gk_module *, const char *symbol, void **device,
                               size_t *bytes, gk_error *);
    /* The bytes of a parameter; 0: it has none of that number. */
    gk_status (*kernel_parameter)(gk_backend *, const gk_kernel *, int number, size_t *bytes,
                                  gk_error *);
    /* How many blocks of so many threads a multiprocessor runs side by side. */
    gk_status (*kernel_occupancy)(gk_backend *, const gk_kernel *, int threads, size_t shared_bytes,
                                  int *blocks, gk_error *);
    /* The threads a block at which a multiprocessor is fullest. */
    gk_status (*kernel_suggest)(gk_backend *, const gk_kernel *, size_t shared_bytes, int *threads,
                                gk_error *);
    /* What kernels have printed so far, to be freed; NULL: nothing, or the driver prints it. NULL
       in its own place: the driver does. */
    char *(*printed)(gk_backend *, size_t *bytes);
    /* NULL: no row that runs here needs it. */
    gk_status (*describe_box)(gk_backend *, const gk_tensor_box *, gk_tensor_map *, gk_error *);

    /* Streams of our own, which do not wait for the legacy stream, and copies that return at once:
       their host memory has to be pinned and to stay as it is until the stream has passed them. */
    gk_status (*stream_new)(gk_backend *, gk_stream *, gk_error *);
    void (*stream_free)(gk_backend *, gk_stream); /* 0 is fine */
    gk_status (*start_copy_in)(gk_backend *, void *device, const void *host, size_t bytes,
                               gk_stream, gk_error *);
    gk_status (*start_copy_out)(gk_backend *, void *host, const void *device, size_t bytes,
                                gk_stream, gk_error *);
    /* The same to lines of the host's, which lie side by side on the device. */
    gk_status (*start_lines_out)(gk_backend *, void *host, const void *device, const gk_lines *,
                                 gk_stream, gk_error *);
    gk_status (*pin)(gk_backend *, void *host, size_t bytes, gk_error *);
    /* Where kernels read and write pinned memory, which is not always its address on the host; an
       error where they cannot. */
    gk_status (*map)(gk_backend *, void *host, void **device, gk_error *);
    void (*unpin)(gk_backend *, void *host);

    gk_status (*event_new)(gk_backend *, gk_event **, gk_error *);
    void (*event_free)(gk_backend *, gk_event *); /* NULL is fine */
    gk_status (*record)(gk_backend *, gk_event *, gk_stream, gk_error *);
    gk_status (*elapsed)(gk_backend *, gk_event *from, gk_event *to, double *seconds, gk_error *);
    gk_status (*reach)(gk_backend *, gk_event *, gk_error *); /* wait on the host */
    gk_status (*wait_event)(gk_backend *, gk_stream waiting, gk_event *, gk_error *);
    /* Captured work does not wait for what is not captured: its graph may run at any time. The
       other way round is an error. */
    gk_status (*wait)(gk_backend *, gk_stream waiting, gk_stream producer, gk_error *);
    gk_status (*synchronize)(gk_backend *, gk_stream, gk_error *); /* 0: the whole device */

    /* What a stream is given between these two is not done but kept, as a graph to launch. */
    gk_status (*capture)(gk_backend *, gk_stream, gk_error *);
    gk_status (*capture_end)(gk_backend *, gk_stream, gk_graph **, gk_error *);
    gk_status (*graph_launch)(gk_backend *, gk_graph *, gk_stream, gk_error *);
    void (*graph_free)(gk_backend *, gk_graph *); /* NULL is fine */

    /* Whether this backend holds the kernel or library that the row needs. */
    gk_status (*holds)(gk_backend *, const gk_row *, gk_error *);
    /* Whether the bytes are memory of this device, as an array handed over by others must be. A GPU
       answers for the first and the last byte, the simulator for all. */
    gk_status (*owns)(gk_backend *, const void *first, size_t bytes, gk_error *);
    /* The number of the device of this kind whose memory that is; -1: of none that this one knows
       of. */
    int (*place)(gk_backend *, const void *pointer);
    /* Bytes of another device of this kind, to where both are idle, and as it returns both are. */
    gk_status (*copy_across)(gk_backend *, void *to, gk_backend *other, const void *from,
                             size_t bytes, gk_error *);
    /* Make this device the one that other libraries take where their user names none. */
    gk_status (*make_current)(gk_backend *, gk_error *);
    size_t (*live_bytes)(gk_backend *); /* allocated and not yet released, the device idle */
    void (*trim)(gk_backend *);         /* what is kept for later allocations, to the system */
    void (*close)(gk_backend *);
};

#endif
