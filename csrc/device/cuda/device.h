/* A CUDA device as backend.c (work) and memory.c (memory) see it. */
#ifndef GK_CUDA_DEVICE_H
#define GK_CUDA_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/backend.h"
#include "device/cuda/capture.h"
#include "device/cuda/cublas.h"
#include "device/cuda/driver.h"

typedef struct gk_modules gk_modules;

/* What streams and graphs keep: standing.h. */
enum { GK_STANDING_PLACES = 64, GK_NOT_CAPTURED = 0 };

typedef struct gk_standing_block {
    gk_stream stream;
    cuuint64_t capture; /* the driver's number of it; whose graph owns the memory */
    void *memory;       /* NULL: a vacant place */
} gk_standing_block;

typedef struct gk_standing {
    pthread_mutex_t lock;
    size_t bytes;  /* of a block */
    size_t zeroed; /* of its first ones, as it is made */
    int places;    /* no more than GK_STANDING_PLACES */
    gk_standing_block blocks[GK_STANDING_PLACES];
} gk_standing;

typedef struct gk_cuda {
    gk_backend base;
    gk_driver driver;
    CUdevice device;
    CUcontext context; /* the primary one, so that PyTorch, CuPy and Numba share it */
    CUmemoryPool pool;
    size_t cache, multiprocessors; /* bytes of the L2 cache, and how many; 0: not known */
    /* Bytes of shared memory of a multiprocessor, of a block at most, and that are set aside for
       each; 0: not known, or none. */
    size_t shared, most_shared, reserved_shared;
    pthread_mutex_t lock; /* guards what is loaded or made at first use: modules, functions, the
                             event and the stream */
    gk_modules *modules;
    _Atomic(const char *) last_launch; /* the name of a kernel */
    atomic_bool is_lost;
    gk_error lost;  /* what every call says after a fault that took the context */
    CUevent joint;  /* recorded and waited for at once, under the lock */
    CUstream aside; /* for what is done beside a capture */
    gk_captures *captures;
    pthread_mutex_t event_lock, /* an event is recorded or read, not both at a time */
        cublas_lock;            /* of its own: whoever looks for cuBLAS asks Python for the place */
    gk_standing workspaces, /* of cuBLAS; a handle has one stream at a time, and goes by the lock */
        meetings,           /* of gk_stream_memory: counters, and a little scratch behind them */
        scratch;            /* and where that is too little */
    gk_cublas *cublas;
    gk_error cublas_problem;
    gk_locator locate;
    void *locate_context;
} gk_cuda;

/* The sentence for a result of the driver, or GK_OK. */
gk_status gk_cuda_check(gk_cuda *cuda, CUresult result, const char *doing, gk_error *error);
/* The same of what was made: that takes memory, and a call may know a way without it. */
gk_status gk_cuda_check_made(gk_cuda *cuda, CUresult result, const char *doing, gk_error *error);

/* Make the primary context current for the expression and give the thread back what it had. */
CUresult gk_cuda_enter(const gk_cuda *cuda, bool *pushed);
void gk_cuda_leave(const gk_cuda *cuda, bool pushed);

#define GK_IN_CONTEXT(cuda, result, expression)                                                    \
    do {                                                                                           \
        bool gk_pushed;                                                                            \
        result = gk_cuda_enter(cuda, &gk_pushed);                                                  \
        if (result == CUDA_SUCCESS)                                                                \
            result = (expression);                                                                 \
        gk_cuda_leave(cuda, gk_pushed);                                                            \
    } while (0)

/* Of struct gk_backend: user_modules.c. */
gk_status gk_cuda_module_load(gk_backend *base, const void *image, size_t bytes, gk_module **loaded,
                              gk_error *error);
void gk_cuda_module_free(gk_backend *base, gk_module *module);
gk_status gk_cuda_module_kernel(gk_backend *base, gk_module *module, const char *symbol,
                                gk_kernel *kernel, gk_error *error);
gk_status gk_cuda_module_symbol(gk_backend *base, gk_module *module, const char *symbol,
                                void **device, size_t *bytes, gk_error *error);
gk_status gk_cuda_kernel_parameter(gk_backend *base, const gk_kernel *kernel, int number,
                                   size_t *bytes, gk_error *error);
gk_status gk_cuda_kernel_occupancy(gk_backend *base, const gk_kernel *kernel, int threads,
                                   size_t shared_bytes, int *blocks, gk_error *error);
gk_status gk_cuda_kernel_suggest(gk_backend *base, const gk_kernel *kernel, size_t shared_bytes,
                                 int *threads, gk_error *error);

/* Of struct gk_backend: tensor_map.c. */
gk_status gk_cuda_describe_box(gk_backend *base, const gk_tensor_box *box, gk_tensor_map *map,
                               gk_error *error);

/* Of struct gk_backend: memory.c. */
gk_status gk_cuda_captured(gk_backend *base, gk_stream stream, bool *captured, gk_error *error);
gk_status gk_cuda_allocate(gk_backend *base, size_t bytes, gk_stream stream, void **device,
                           gk_error *error);
gk_status gk_cuda_allocate_lasting(gk_backend *base, size_t bytes, gk_stream stream, void **device,
                                   gk_error *error);
/* Shared by the caller and the graph that the stream is being captured in; so many of its first
   bytes are zeros. */
gk_status gk_cuda_allocate_shared(gk_cuda *cuda, size_t bytes, size_t zeroed, gk_stream stream,
                                  void **device, gk_error *error);
void gk_cuda_release(gk_backend *base, void *device, gk_stream stream);
gk_status gk_cuda_zero(gk_backend *base, void *device, size_t bytes, gk_stream stream,
                       gk_error *error);
gk_status gk_cuda_stream_memory(gk_backend *base, gk_stream stream, size_t bytes,
                                gk_stream_memory *memory, gk_error *error);
gk_status gk_cuda_start_copy_in(gk_backend *base, void *device, const void *host, size_t bytes,
                                gk_stream stream, gk_error *error);
gk_status gk_cuda_start_copy_out(gk_backend *base, void *host, const void *device, size_t bytes,
                                 gk_stream stream, gk_error *error);
gk_status gk_cuda_start_lines_out(gk_backend *base, void *host, const void *device,
                                  const gk_lines *lines, gk_stream stream, gk_error *error);
gk_status gk_cuda_copy_in(gk_backend *base, void *device, const void *host, size_t bytes,
                          gk_stream stream, gk_error *error);
gk_status gk_cuda_copy_out(gk_backend *base, void *host, const void *device, size_t bytes,
                           gk_stream stream, gk_error *error);
gk_status gk_cuda_copy_within(gk_backend *base, void *to, const void *from, size_t bytes,
                              gk_stream stream, gk_error *error);
gk_status gk_cuda_pin(gk_backend *base, void *host, size_t bytes, gk_error *error);
gk_status gk_cuda_map(gk_backend *base, void *host, void **device, gk_error *error);
void gk_cuda_unpin(gk_backend *base, void *host);
gk_status gk_cuda_owns(gk_backend *base, const void *first, size_t bytes, gk_error *error);
gk_status gk_cuda_capture(gk_backend *base, gk_stream stream, gk_error *error);
gk_status gk_cuda_capture_end(gk_backend *base, gk_stream stream, gk_graph **graph,
                              gk_error *error);
gk_status gk_cuda_graph_launch(gk_backend *base, gk_graph *graph, gk_stream stream,
                               gk_error *error);
void gk_cuda_graph_free(gk_backend *base, gk_graph *graph);
int gk_cuda_place(gk_backend *base, const void *pointer);
gk_status gk_cuda_copy_across(gk_backend *base, void *to, gk_backend *other, const void *from,
                              size_t bytes, gk_error *error);
size_t gk_cuda_live_bytes(gk_backend *base);
void gk_cuda_trim(gk_backend *base);

#endif
