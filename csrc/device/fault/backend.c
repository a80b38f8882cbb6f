#include "device/fault/backend.h"

bool gk_fault_due(gk_faults *faults) {
    if (atomic_load(&faults->left) <= 0 || atomic_fetch_sub(&faults->left, 1) != 1)
        return false;
    atomic_store(&faults->fired, true);
    return true;
}

/* One forwarder a function: it fails in place of the call, so that nothing has been done. */
#define GK_FORWARD(function, planted, parameters, ...)                                             \
    static gk_status fault_##function parameters {                                                 \
        gk_faulty *faulty = (gk_faulty *)base;                                                     \
        if (gk_fault_due(faulty->faults))                                                          \
            return gk_fail(error, planted, "planted fault in " #function);                         \
        return faulty->inner->function(faulty->inner, __VA_ARGS__, error);                         \
    }

GK_FORWARD(allocate, GK_MEMORY_ERROR,
           (gk_backend * base, size_t bytes, gk_stream stream, void **device, gk_error *error),
           bytes, stream, device)
GK_FORWARD(allocate_lasting, GK_MEMORY_ERROR,
           (gk_backend * base, size_t bytes, gk_stream stream, void **device, gk_error *error),
           bytes, stream, device)
GK_FORWARD(zero, GK_CUDA_ERROR,
           (gk_backend * base, void *device, size_t bytes, gk_stream stream, gk_error *error),
           device, bytes, stream)
GK_FORWARD(stream_memory, GK_CUDA_ERROR,
           (gk_backend * base, gk_stream stream, size_t bytes, gk_stream_memory *memory,
            gk_error *error),
           stream, bytes, memory)
GK_FORWARD(copy_in, GK_CUDA_ERROR,
           (gk_backend * base, void *device, const void *host, size_t bytes, gk_stream stream,
            gk_error *error),
           device, host, bytes, stream)
GK_FORWARD(copy_out, GK_CUDA_ERROR,
           (gk_backend * base, void *host, const void *device, size_t bytes, gk_stream stream,
            gk_error *error),
           host, device, bytes, stream)
GK_FORWARD(copy_within, GK_CUDA_ERROR,
           (gk_backend * base, void *to, const void *from, size_t bytes, gk_stream stream,
            gk_error *error),
           to, from, bytes, stream)
GK_FORWARD(launch, GK_CUDA_ERROR, (gk_backend * base, const gk_launch *launch, gk_error *error),
           launch)
GK_FORWARD(gemm, GK_CUDA_ERROR, (gk_backend * base, const gk_gemm *gemm, gk_error *error), gemm)
GK_FORWARD(module_load, GK_CUDA_ERROR,
           (gk_backend * base, const void *image, size_t bytes, gk_module **module,
            gk_error *error),
           image, bytes, module)
GK_FORWARD(module_kernel, GK_CUDA_ERROR,
           (gk_backend * base, gk_module *module, const char *symbol, gk_kernel *kernel,
            gk_error *error),
           module, symbol, kernel)
GK_FORWARD(module_symbol, GK_CUDA_ERROR,
           (gk_backend * base, gk_module *module, const char *symbol, void **device, size_t *bytes,
            gk_error *error),
           module, symbol, device, bytes)
GK_FORWARD(kernel_parameter, GK_CUDA_ERROR,
           (gk_backend * base, const gk_kernel *kernel, int number, size_t *bytes, gk_error *error),
           kernel, number, bytes)
GK_FORWARD(kernel_occupancy, GK_CUDA_ERROR,
           (gk_backend * base, const gk_kernel *kernel, int threads, size_t shared_bytes,
            int *blocks, gk_error *error),
           kernel, threads, shared_bytes, blocks)
GK_FORWARD(kernel_suggest, GK_CUDA_ERROR,
           (gk_backend * base, const gk_kernel *kernel, size_t shared_bytes, int *threads,
            gk_error *error),
           kernel, shared_bytes, threads)
GK_FORWARD(describe_box, GK_CUDA_ERROR,
           (gk_backend * base, const gk_tensor_box *box, gk_tensor_map *map, gk_error *error), box,
           map)
GK_FORWARD(event_new, GK_MEMORY_ERROR, (gk_backend * base, gk_event **event, gk_error *error),
           event)
GK_FORWARD(record, GK_CUDA_ERROR,
           (gk_backend * base, gk_event *event, gk_stream stream, gk_error *error), event, stream)
GK_FORWARD(elapsed, GK_CUDA_ERROR,
           (gk_backend * base, gk_event *from, gk_event *to, double *seconds, gk_error *error),
           from, to, seconds)
GK_FORWARD(stream_new, GK_CUDA_ERROR, (gk_backend * base, gk_stream *stream, gk_error *error),
           stream)
GK_FORWARD(start_copy_in, GK_CUDA_ERROR,
           (gk_backend * base, void *device, const void *host, size_t bytes, gk_stream stream,
            gk_error *error),
           device, host, bytes, stream)
GK_FORWARD(start_copy_out, GK_CUDA_ERROR,
           (gk_backend * base, void *host, const void *device, size_t bytes, gk_stream stream,
            gk_error *error),
           host, device, bytes, stream)
GK_FORWARD(start_lines_out, GK_CUDA_ERROR,
           (gk_backend * base, void *host, const void *device, const gk_lines *lines,
            gk_stream stream, gk_error *error),
           host, device, lines, stream)
GK_FORWARD(map, GK_CUDA_ERROR, (gk_backend * base, void *host, void **device, gk_error *error),
           host, device)
GK_FORWARD(reach, GK_CUDA_ERROR, (gk_backend * base, gk_event *event, gk_error *error), event)
GK_FORWARD(wait_event, GK_CUDA_ERROR,
           (gk_backend * base, gk_stream waiting, gk_event *event, gk_error *error), waiting, event)
GK_FORWARD(wait, GK_CUDA_ERROR,
           (gk_backend * base, gk_stream waiting, gk_stream producer, gk_error *error), waiting,
           producer)
GK_FORWARD(synchronize, GK_CUDA_ERROR, (gk_backend * base, gk_stream stream, gk_error *error),
           stream)
GK_FORWARD(owns, GK_CUDA_ERROR,
           (gk_backend * base, const void *first, size_t bytes, gk_error *error), first, bytes)

GK_FORWARD(capture, GK_CUDA_ERROR, (gk_backend * base, gk_stream stream, gk_error *error), stream)
GK_FORWARD(graph_launch, GK_CUDA_ERROR,
           (gk_backend * base, gk_graph *graph, gk_stream stream, gk_error *error), graph, stream)
GK_FORWARD(copy_across, GK_CUDA_ERROR,
           (gk_backend * base, void *to, gk_backend *other, const void *from, size_t bytes,
            gk_error *error),
           to, other, from, bytes)

/* What gives back, or only answers, does not fail. */
static void fault_release(gk_backend *base, void *device, gk_stream stream) {
    gk_faulty *faulty = (gk_faulty *)base;
    faulty->inner->release(faulty->inner, device, stream);
}

static void fault_stream_free(gk_backend *base, gk_stream stream) {
    gk_faulty *faulty = (gk_faulty *)base;
    faulty->inner->stream_free(faulty->inner, stream);
}

/* A stream that nobody takes out of its capture would be lost. */
static gk_status fault_capture_end(gk_backend *base, gk_stream stream, gk_graph **graph,
                                   gk_error *error) {
    gk_faulty *faulty = (gk_faulty *)base;
    return faulty->inner->capture_end(faulty->inner, stream, graph, error);
}

static void fault_graph_free(gk_backend *base, gk_graph *graph) {
    gk_faulty *faulty = (gk_faulty *)base;
    faulty->inner->graph_free(faulty->inner, graph);
}

static void fault_event_free(gk_backend *base, gk_event *event) {
    gk_faulty *faulty = (gk_faulty *)base;
    faulty->inner->event_free(faulty->inner, event);
}

static gk_status fault_captured(gk_backend *base, gk_stream stream, bool *captured,
                                gk_error *error) {
    gk_faulty *faulty = (gk_faulty *)base;
    return faulty->inner->captured(faulty->inner, stream, captured, error);
}

static gk_status fault_holds(gk_backend *base, const gk_row *row, gk_error *error) {
    gk_faulty *faulty = (gk_faulty *)base;
    return faulty->inner->holds(faulty->inner, row, error);
}

static gk_status fault_make_current(gk_backend *base, gk_error *error) {
    gk_faulty *faulty = (gk_faulty *)base;
    return faulty->inner->make_current(faulty->inner, error);
}

static char *fault_printed(gk_backend *base, size_t *bytes) {
    gk_faulty *faulty = (gk_faulty *)base;
    return faulty->inner->printed(faulty->inner, bytes);
}

/* For calls. What only the engine and the pool of pinned memory ask a device is not here: they have
   the device itself. */
void gk_backend_fault_wrap(gk_faulty *faulty, gk_backend *inner, gk_faults *faults) {
    *faulty = (gk_faulty){
        .base = {.name = inner->name,
                 .ordinal = inner->ordinal,
                 .devices = inner->devices,
                 .capability = inner->capability,
                 .choices = inner->choices,
                 .streams_are_addresses = inner->streams_are_addresses,
                 .fetch_room = inner->fetch_room,
                 .watches_arrays = inner->watches_arrays,
                 .allocate = fault_allocate,
                 .allocate_lasting = fault_allocate_lasting,
                 .release = fault_release,
                 .captured = fault_captured,
                 .zero = fault_zero,
                 .stream_memory = fault_stream_memory,
                 .copy_in = fault_copy_in,
                 .copy_out = fault_copy_out,
                 .copy_within = fault_copy_within,
                 .launch = fault_launch,
                 .gemm = fault_gemm,
                 .module_load = fault_module_load,
                 .module_kernel = fault_module_kernel,
                 .module_symbol = fault_module_symbol,
                 .kernel_parameter = fault_kernel_parameter,
                 .kernel_occupancy = fault_kernel_occupancy,
                 .kernel_suggest = fault_kernel_suggest,
                 .printed = inner->printed ? fault_printed : NULL,
                 .describe_box = fault_describe_box,
                 .stream_new = fault_stream_new,
                 .stream_free = fault_stream_free,
                 .start_copy_in = fault_start_copy_in,
                 .start_copy_out = fault_start_copy_out,
                 .start_lines_out = fault_start_lines_out,
                 .map = fault_map,
                 .event_new = fault_event_new,
                 .event_free = fault_event_free,
                 .record = fault_record,
                 .elapsed = fault_elapsed,
                 .reach = fault_reach,
                 .wait_event = fault_wait_event,
                 .wait = fault_wait,
                 .synchronize = fault_synchronize,
                 .capture = fault_capture,
                 .capture_end = fault_capture_end,
                 .graph_launch = fault_graph_launch,
                 .graph_free = fault_graph_free,
                 .holds = fault_holds,
                 .owns = fault_owns,
                 .copy_across = fault_copy_across,
                 .make_current = fault_make_current},
        .inner = inner,
        .faults = faults,
    };
}
