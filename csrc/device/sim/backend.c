#define _GNU_SOURCE /* clock_gettime */
#include "device/sim/backend.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/sim/settings.h"
#include "device/sim/simulator.h"
#include "device/sim/user_modules.h"

/* Lazily an event is stamped when its stream comes to it, by when its owner may have freed it.
   Threads may share it: what is not atomic is under the simulator's lock of events. */
typedef struct moment {
    struct timespec at;
    bool recorded;
    gk_mark mark;
} moment;
struct gk_event {
    atomic_int holders;
    moment held;
};

/* waiting -------------------------------------------------------------------------------------- */

static gk_status wait_for(gk_simulated *sim, gk_mark mark, gk_error *error) {
    gk_queues_reach(sim->queues, mark);
    return gk_queues_report(sim->queues, error);
}

static gk_status settle_and_report(gk_simulated *sim, gk_error *error) {
    gk_simulated_settle(sim);
    return gk_queues_report(sim->queues, error);
}

static gk_status sim_captured(gk_backend *backend, gk_stream stream, bool *captured,
                              gk_error *error) {
    gk_graph *graph;
    gk_status status = gk_queues_captured(((gk_simulated *)backend)->queues, stream, &graph, error);
    *captured = graph != NULL;
    return status;
}

static gk_status refuse_captured(gk_backend *backend, gk_stream stream, const char *what,
                                 gk_error *error) {
    bool captured;
    if (sim_captured(backend, stream, &captured, error) != GK_OK)
        return error->status;
    if (captured)
        return gk_fail(error, GK_CUDA_ERROR, "%s a stream that is being captured in a graph", what);
    return GK_OK;
}

static gk_status sim_synchronize(gk_backend *backend, gk_stream stream, gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    gk_mark mark;
    if (!stream)
        return settle_and_report(sim, error);
    if (refuse_captured(backend, stream, "nobody waits for", error) != GK_OK ||
        gk_queues_mark(sim->queues, stream, &mark, error) != GK_OK)
        return error->status;
    return wait_for(sim, mark, error);
}

/* copies --------------------------------------------------------------------------------------- */

typedef struct copy {
    void *to;
    const void *from; /* NULL: zeros */
    size_t bytes;
    gk_lines lines;                                        /* of `to`, where it is these */
    unsigned char snapshot[] __attribute__((aligned(16))); /* what is copied, if it is `from` */
} copy;

static gk_status run_copy(void *context, const void *payload, gk_error *error) {
    const copy *what = payload;
    (void)context, (void)error;
    if (what->from)
        memmove(what->to, what->from, what->bytes);
    else
        memset(what->to, 0, what->bytes);
    return GK_OK;
}

static gk_status run_lines(void *context, const void *payload, gk_error *error) {
    const copy *what = payload;
    (void)context, (void)error;
    for (size_t i = 0; i < what->lines.count; i++)
        memcpy((char *)what->to + i * what->lines.apart,
               (const char *)what->from + i * what->lines.bytes, what->lines.bytes);
    return GK_OK;
}

static gk_status run_snapshot(void *context, const void *payload, gk_error *error) {
    const copy *what = payload;
    (void)context, (void)error;
    memcpy(what->to, what->snapshot, what->bytes);
    return GK_OK;
}

static gk_status add_copy(gk_simulated *sim, void *to, const void *from, size_t bytes,
                          gk_stream stream, gk_error *error) {
    gk_step *step = gk_step_new(run_copy, NULL, sizeof(copy));
    if (step)
        *(copy *)gk_step_payload(step) = (copy){.to = to, .from = from, .bytes = bytes};
    return gk_queues_add(sim->queues, stream, step, error);
}

static gk_status sim_zero(gk_backend *backend, void *device, size_t bytes, gk_stream stream,
                          gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    gk_status status = gk_simulated_inside(sim, device, bytes, error);
    return status == GK_OK ? add_copy(sim, device, NULL, bytes, stream, error) : status;
}

/* A fault ends a launch half-way here without ending the process: the counters would stay as they
   are. */
static gk_status sim_stream_memory(gk_backend *backend, gk_stream stream, size_t bytes,
                                   gk_stream_memory *memory, gk_error *error) {
    (void)backend, (void)stream, (void)bytes, (void)error;
    *memory = (gk_stream_memory){0};
    return GK_OK;
}

static gk_status sim_start_copy_in(gk_backend *backend, void *device, const void *host,
                                   size_t bytes, gk_stream stream, gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    gk_status status = gk_simulated_inside(sim, device, bytes, error);
    return status == GK_OK ? add_copy(sim, device, host, bytes, stream, error) : status;
}

static gk_status sim_start_copy_out(gk_backend *backend, void *host, const void *device,
                                    size_t bytes, gk_stream stream, gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    gk_status status = gk_simulated_inside(sim, device, bytes, error);
    return status == GK_OK ? add_copy(sim, host, device, bytes, stream, error) : status;
}

static gk_status sim_start_lines_out(gk_backend *backend, void *host, const void *device,
                                     const gk_lines *lines, gk_stream stream, gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    if (gk_simulated_inside(sim, device, lines->count * lines->bytes, error) != GK_OK)
        return error->status;
    gk_step *step = gk_step_new(run_lines, NULL, sizeof(copy));
    if (step)
        *(copy *)gk_step_payload(step) = (copy){.to = host, .from = device, .lines = *lines};
    return gk_queues_add(sim->queues, stream, step, error);
}

/* The host's memory is read at once, and written when the stream gets there. */
static gk_status sim_copy_in(gk_backend *backend, void *device, const void *host, size_t bytes,
                             gk_stream stream, gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    if (!gk_queues_are_lazy(sim->queues))
        return sim_start_copy_in(backend, device, host, bytes, stream, error);
    if (gk_simulated_inside(sim, device, bytes, error) != GK_OK)
        return error->status;
    gk_step *step = gk_step_new(run_snapshot, NULL, sizeof(copy) + bytes);
    if (step) {
        copy *what = gk_step_payload(step);
        *what = (copy){.to = device, .bytes = bytes};
        memcpy(what->snapshot, host, bytes);
    }
    return gk_queues_add(sim->queues, stream, step, error);
}

static gk_status sim_copy_out(gk_backend *backend, void *host, const void *device, size_t bytes,
                              gk_stream stream, gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    gk_mark mark;
    if (sim_start_copy_out(backend, host, device, bytes, stream, error) != GK_OK ||
        gk_queues_mark(sim->queues, stream, &mark, error) != GK_OK)
        return error->status;
    return wait_for(sim, mark, error);
}

static gk_status sim_copy_within(gk_backend *backend, void *to, const void *from, size_t bytes,
                                 gk_stream stream, gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    if (gk_simulated_inside(sim, to, bytes, error) || gk_simulated_inside(sim, from, bytes, error))
        return error->status;
    return add_copy(sim, to, from, bytes, stream, error);
}

static gk_status sim_copy_across(gk_backend *backend, void *to, gk_backend *other, const void *from,
                                 size_t bytes, gk_error *error) {
    if (gk_simulated_inside((gk_simulated *)backend, to, bytes, error) ||
        gk_simulated_inside((gk_simulated *)other, from, bytes, error))
        return error->status;
    gk_queues *queues = ((gk_simulated *)other)->queues;
    gk_queues_hold(queues); /* no kernel has hidden it */
    memcpy(to, from, bytes);
    gk_queues_let(queues);
    return GK_OK;
}

/* streams and events --------------------------------------------------------------------------- */

static gk_status sim_stream_new(gk_backend *backend, gk_stream *stream, gk_error *error) {
    return gk_queues_stream_new(((gk_simulated *)backend)->queues, false, stream, error);
}

static void sim_stream_free(gk_backend *backend, gk_stream stream) {
    gk_queues_stream_free(((gk_simulated *)backend)->queues, stream);
}

/* The kernels run on the CPU: all memory is theirs to read and write. */
static gk_status sim_pin(gk_backend *backend, void *host, size_t bytes, gk_error *error) {
    (void)backend, (void)host, (void)bytes, (void)error;
    return GK_OK;
}

static gk_status sim_map(gk_backend *backend, void *host, void **device, gk_error *error) {
    (void)backend, (void)error;
    *device = host;
    return GK_OK;
}

static void sim_unpin(gk_backend *backend, void *host) {
    (void)backend, (void)host;
}

static gk_status sim_event_new(gk_backend *backend, gk_event **event, gk_error *error) {
    (void)backend;
    *event = calloc(1, sizeof **event);
    if (!*event)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for an event");
    (*event)->holders = 1;
    return GK_OK;
}

static void let_go(gk_event *event) {
    if (event && atomic_fetch_sub(&event->holders, 1) == 1)
        free(event);
}

static void sim_event_free(gk_backend *backend, gk_event *event) {
    (void)backend;
    let_go(event);
}

static gk_status run_record(void *context, const void *payload, gk_error *error) {
    gk_simulated *sim = context;
    gk_event *event = *(gk_event *const *)payload;
    struct timespec now;
    (void)error;
    clock_gettime(CLOCK_MONOTONIC, &now);
    (void)gk_lock_take(&sim->events);
    event->held.at = now;
    gk_lock_give(&sim->events);
    return GK_OK;
}

static void drop_record(void *payload) {
    let_go(*(gk_event **)payload);
}

static gk_status sim_record(gk_backend *backend, gk_event *event, gk_stream stream,
                            gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    if (refuse_captured(backend, stream, "no event is recorded on", error) != GK_OK)
        return error->status;
    gk_step *step = gk_step_new(run_record, drop_record, sizeof event);
    if (step) {
        atomic_fetch_add(&event->holders, 1);
        *(gk_event **)gk_step_payload(step) = event;
    }
    if (gk_queues_add(sim->queues, stream, step, error) != GK_OK)
        return error->status;
    gk_mark mark;
    gk_status status = gk_queues_mark(sim->queues, stream, &mark, error);
    if (status == GK_OK) {
        (void)gk_lock_take(&sim->events);
        event->held.recorded = true;
        event->held.mark = mark;
        gk_lock_give(&sim->events);
    }
    return status;
}

/* What the event holds now. */
static moment moment_of(gk_simulated *sim, const gk_event *event) {
    (void)gk_lock_take(&sim->events);
    moment held = event->held;
    gk_lock_give(&sim->events);
    return held;
}

static gk_status sim_reach(gk_backend *backend, gk_event *event, gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    return wait_for(sim, moment_of(sim, event).mark, error);
}

static gk_status sim_elapsed(gk_backend *backend, gk_event *from, gk_event *to, double *seconds,
                             gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    moment first = moment_of(sim, from), last = moment_of(sim, to);
    if (!first.recorded || !last.recorded)
        return gk_fail(error, GK_VALUE_ERROR, "an event that was not recorded has no time");
    gk_queues_reach(sim->queues, first.mark);
    gk_status status = wait_for(sim, last.mark, error);
    struct timespec start = moment_of(sim, from).at, end = moment_of(sim, to).at;
    *seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    return status;
}

static gk_status sim_wait_event(gk_backend *backend, gk_stream waiting, gk_event *event,
                                gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    return gk_queues_wait(sim->queues, waiting, moment_of(sim, event).mark, error);
}

static gk_status sim_wait(gk_backend *backend, gk_stream waiting, gk_stream producer,
                          gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    gk_graph *later, *produced_later;
    gk_mark mark;
    if (gk_queues_captured(sim->queues, waiting, &later, error) != GK_OK ||
        gk_queues_captured(sim->queues, producer, &produced_later, error) != GK_OK)
        return error->status;
    if (produced_later && !later)
        return gk_fail(error, GK_VALUE_ERROR, GK_ON_CAPTURED_STREAM);
    if (later) /* a graph's steps run one after another */
        return GK_OK;
    if (gk_queues_mark(sim->queues, producer, &mark, error) != GK_OK)
        return error->status;
    return gk_queues_wait(sim->queues, waiting, mark, error);
}

/* graphs --------------------------------------------------------------------------------------- */

static gk_status sim_capture(gk_backend *backend, gk_stream stream, gk_error *error) {
    gk_graph *graph = malloc(sizeof *graph);
    if (!graph)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for a graph");
    gk_graph_init(graph);
    gk_status status = gk_queues_capture(((gk_simulated *)backend)->queues, stream, graph, error);
    if (status != GK_OK)
        free(graph);
    return status;
}

static gk_status sim_capture_end(gk_backend *backend, gk_stream stream, gk_graph **graph,
                                 gk_error *error) {
    return gk_queues_capture_end(((gk_simulated *)backend)->queues, stream, graph, error);
}

static gk_status sim_graph_launch(gk_backend *backend, gk_graph *graph, gk_stream stream,
                                  gk_error *error) {
    return gk_queues_launch(((gk_simulated *)backend)->queues, graph, stream, error);
}

static void sim_graph_free(gk_backend *backend, gk_graph *graph) {
    gk_simulated *sim = (gk_simulated *)backend;
    if (!graph)
        return;
    gk_queues_drain(sim->queues); /* it may be running */
    gk_simulated_unkeep(sim, graph);
    gk_graph_drop_steps(graph);
    free(graph);
}

/* the device ----------------------------------------------------------------------------------- */

/* No other library knows of the simulator. */
static gk_status sim_make_current(gk_backend *backend, gk_error *error) {
    (void)backend, (void)error;
    return GK_OK;
}

/* The simulator keeps nothing for later calls. */
static void sim_trim(gk_backend *backend) {
    gk_simulated_settle((gk_simulated *)backend);
}

static size_t sim_live_bytes(gk_backend *backend) {
    gk_simulated *sim = (gk_simulated *)backend;
    gk_simulated_settle(sim);
    return gk_simulated_used(sim);
}

static void sim_close(gk_backend *backend) {
    gk_simulated *sim = (gk_simulated *)backend;
    gk_queues_free(sim->queues);
    gk_simulated_close_memory(sim);
    gk_sim_close(sim->sim);
    gk_lock_free(&sim->events);
    gk_lock_free(&sim->lock);
    gk_sim_output_free(sim->output);
    while (sim->names) {
        gk_simulated_name *name = sim->names;
        sim->names = name->next;
        free(name);
    }
    free(sim->bodies);
    free(sim);
}

static char *sim_printed(gk_backend *backend, size_t *bytes) {
    return gk_sim_output_take(((gk_simulated *)backend)->output, bytes);
}

static const gk_backend functions = {
    .name = "sim",
    .model = GK_SIM_MODEL,
    .capability = GK_SIM_CAPABILITY,
    .fetch_room = GK_SIM_MAX_SHARED,
    .watches_arrays = true,
    .allocate = gk_simulated_allocate,
    .allocate_lasting = gk_simulated_allocate_lasting,
    .release = gk_simulated_release,
    .captured = sim_captured,
    .zero = sim_zero,
    .stream_memory = sim_stream_memory,
    .copy_in = sim_copy_in,
    .copy_out = sim_copy_out,
    .copy_within = sim_copy_within,
    .launch = gk_simulated_launch,
    .module_load = gk_simulated_module_load,
    .module_free = gk_simulated_module_free,
    .module_kernel = gk_simulated_module_kernel,
    .module_symbol = gk_simulated_module_symbol,
    .kernel_parameter = gk_simulated_kernel_parameter,
    .kernel_occupancy = gk_simulated_kernel_occupancy,
    .kernel_suggest = gk_simulated_kernel_suggest,
    .printed = sim_printed,
    .stream_new = sim_stream_new,
    .stream_free = sim_stream_free,
    .start_copy_in = sim_start_copy_in,
    .start_copy_out = sim_start_copy_out,
    .start_lines_out = sim_start_lines_out,
    .pin = sim_pin,
    .map = sim_map,
    .unpin = sim_unpin,
    .event_new = sim_event_new,
    .event_free = sim_event_free,
    .record = sim_record,
    .elapsed = sim_elapsed,
    .reach = sim_reach,
    .wait_event = sim_wait_event,
    .wait = sim_wait,
    .synchronize = sim_synchronize,
    .capture = sim_capture,
    .capture_end = sim_capture_end,
    .graph_launch = sim_graph_launch,
    .graph_free = sim_graph_free,
    .holds = gk_simulated_holds,
    .owns = gk_simulated_owns,
    .place = gk_simulated_place,
    .copy_across = sim_copy_across,
    .make_current = sim_make_current,
    .live_bytes = sim_live_bytes,
    .trim = sim_trim,
    .close = sim_close,
};

gk_status gk_backend_sim_open(gk_backend **backend, int ordinal, gk_error *error) {
    gk_sim_settings settings;
    if (gk_sim_settings_read(&settings, error) != GK_OK)
        return error->status;
    if (ordinal >= settings.devices)
        return gk_fail(error, GK_VALUE_ERROR, "there is no device %d: the simulator has %d",
                       ordinal, settings.devices);
    gk_simulated *sim = calloc(1, sizeof *sim);
    if (!sim)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for the simulator");
    sim->base = functions;
    sim->base.ordinal = ordinal;
    sim->base.devices = settings.devices;
    sim->total = settings.memory;
    if (!gk_lock_init(&sim->lock))
        goto no_lock;
    if (!gk_lock_init(&sim->events))
        goto no_events;
    sim->sim = gk_sim_open(settings.cores, settings.seed);
    sim->queues = gk_queues_new(sim, ordinal, settings.lazy);
    sim->output = gk_sim_output_new();
    if (!sim->sim || !sim->queues || !sim->output || !gk_simulated_tabulate(sim)) {
        sim_close(&sim->base);
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for the simulator");
    }
    *backend = &sim->base;
    return GK_OK;
no_events:
    gk_lock_free(&sim->lock);
no_lock:
    free(sim);
    return gk_fail(error, GK_MEMORY_ERROR, "the system has no lock for the simulator");
}
