/* The streams of a simulated device, and the graphs that are captured on them.

   A stream's work is a queue of steps. Eagerly, a step runs as it is added. Lazily, steps wait in
   their queues until the host waits for one of them, and run in an order that a seed draws from all
   that the streams, the events and the legacy default stream allow: what nobody was made to wait
   for runs too late or too early in some of them, and its result is wrong. */
#ifndef GK_SIM_QUEUES_H
#define GK_SIM_QUEUES_H

#include <stddef.h>
#include <stdint.h>

#include "device/backend.h"

typedef struct gk_queues gk_queues;

/* What a stream does next: `run` on the bytes behind it. A step of a graph is run again and again.
 */
typedef struct gk_step gk_step;
typedef gk_status gk_run(void *context, const void *payload, gk_error *error);
/* With room for `bytes`, which gk_step_payload shows; NULL: out of memory. `drop` is told when the
   payload is no longer needed; NULL is fine. */
gk_step *gk_step_new(gk_run *run, void (*drop)(void *payload), size_t bytes);
void *gk_step_payload(gk_step *step);
/* Memory that is not used again before the step has run, beside the payload. */
void gk_step_weigh(gk_step *step, size_t bytes);

/* All that a stream was given until now. */
typedef struct gk_mark {
    uint64_t stream; /* 0: nothing */
    uint64_t count;
} gk_mark;

/* `context` is passed on to the steps. Seed 0: eagerly. NULL: out of memory or locks. */
gk_queues *gk_queues_new(void *context, int ordinal, uint64_t seed);
void gk_queues_free(gk_queues *queues); /* NULL is fine; what is left does not run */
bool gk_queues_are_lazy(const gk_queues *queues);
/* Lazily, nothing runs between these two. */
void gk_queues_hold(gk_queues *queues);
void gk_queues_let(gk_queues *queues);

/* A stream that waits for the legacy default stream, and that for it, or one that does not. */
gk_status gk_queues_stream_new(gk_queues *queues, bool blocking, gk_stream *stream,
                               gk_error *error);
void gk_queues_stream_free(gk_queues *queues, gk_stream stream); /* its work is done all the same */

/* Take the step, also on failure, to a stream's end, or to that of the graph being captured. */
gk_status gk_queues_add(gk_queues *queues, gk_stream stream, gk_step *step, gk_error *error);
gk_status gk_queues_mark(gk_queues *queues, gk_stream stream, gk_mark *mark, gk_error *error);
/* What is added from here on to the stream waits. */
gk_status gk_queues_wait(gk_queues *queues, gk_stream waiting, gk_mark mark, gk_error *error);

/* Wait on the host; for everything. */
void gk_queues_reach(gk_queues *queues, gk_mark mark);
void gk_queues_drain(gk_queues *queues);
/* What a step met whose caller had long returned, to be said once by whoever waits next. */
void gk_queues_blame(gk_queues *queues, const gk_error *fault);
gk_status gk_queues_report(gk_queues *queues, gk_error *error);

/* Capture what a stream is given, in place of doing it. */
gk_status gk_queues_capture(gk_queues *queues, gk_stream stream, gk_graph *into, gk_error *error);
/* The graph that is being captured on the stream, or NULL. */
gk_status gk_queues_captured(gk_queues *queues, gk_stream stream, gk_graph **graph,
                             gk_error *error);
gk_status gk_queues_capture_end(gk_queues *queues, gk_stream stream, gk_graph **graph,
                                gk_error *error);

/* The steps of a graph, and what the memory keeps for it. */
struct gk_graph {
    gk_step *first, **last;
    void *kept; /* allocations.c's */
};
void gk_graph_init(gk_graph *graph);
void gk_graph_drop_steps(gk_graph *graph);
gk_status gk_queues_launch(gk_queues *queues, const gk_graph *graph, gk_stream stream,
                           gk_error *error);

#endif
