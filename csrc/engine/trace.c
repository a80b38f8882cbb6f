#include "engine/trace.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct step {
    gk_trace_kind kind;
    gk_event *from, *to;
} step;

struct gk_trace {
    gk_backend *backend;
    pthread_mutex_t lock;
    gk_event *base;
    size_t count;
    step *steps;
    gk_error error; /* of an event that could not be made or recorded; gk_trace_read tells */
};

gk_status gk_trace_new(gk_backend *backend, gk_stream stream, size_t steps, gk_trace **trace,
                       gk_error *error) {
    gk_trace *made = calloc(1, sizeof *made);
    step *room = calloc(steps, sizeof *room);
    if (!made || !room) {
        free(made);
        free(room);
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory for a profile");
    }
    *made = (gk_trace){.backend = backend, .steps = room, .lock = PTHREAD_MUTEX_INITIALIZER};
    *trace = made;
    gk_status status = backend->event_new(backend, &made->base, error);
    return status == GK_OK ? backend->record(backend, made->base, stream, error) : status;
}

void gk_trace_free(gk_trace *trace) {
    if (!trace)
        return;
    for (size_t i = 0; i < trace->count; i++) {
        trace->backend->event_free(trace->backend, trace->steps[i].from);
        trace->backend->event_free(trace->backend, trace->steps[i].to);
    }
    trace->backend->event_free(trace->backend, trace->base);
    pthread_mutex_destroy(&trace->lock);
    free(trace->steps);
    free(trace);
}

/* Under the lock. */
static void mark(gk_trace *trace, gk_event **event, gk_stream stream) {
    if (trace->error.status != GK_OK ||
        trace->backend->event_new(trace->backend, event, &trace->error) != GK_OK)
        return;
    (void)trace->backend->record(trace->backend, *event, stream, &trace->error);
}

size_t gk_trace_start(gk_trace *trace, gk_stream stream, gk_trace_kind kind) {
    if (!trace)
        return 0;
    pthread_mutex_lock(&trace->lock);
    size_t number = trace->count++; /* the capacity is the number of steps that a flow has */
    trace->steps[number] = (step){.kind = kind};
    mark(trace, &trace->steps[number].from, stream);
    pthread_mutex_unlock(&trace->lock);
    return number;
}

void gk_trace_end(gk_trace *trace, gk_stream stream, size_t number) {
    if (!trace)
        return;
    pthread_mutex_lock(&trace->lock);
    mark(trace, &trace->steps[number].to, stream);
    pthread_mutex_unlock(&trace->lock);
}

typedef struct interval {
    double from, to;
} interval;

static int by_start(const void *left, const void *right) {
    const interval *a = left, *b = right;
    return a->from < b->from ? -1 : a->from > b->from;
}

/* The length of the union. */
static double covered(interval *intervals, size_t count) {
    double length = 0.0, end = -1.0;
    qsort(intervals, count, sizeof *intervals, by_start);
    for (size_t i = 0; i < count; i++) {
        double from = intervals[i].from > end ? intervals[i].from : end;
        if (intervals[i].to > from) {
            length += intervals[i].to - from;
            end = intervals[i].to;
        }
    }
    return length;
}

static gk_status read_intervals(gk_trace *trace, interval *read, gk_error *error) {
    gk_backend *backend = trace->backend;
    gk_status status = GK_OK;
    for (size_t i = 0; i < trace->count && status == GK_OK; i++) {
        const step *at = &trace->steps[i];
        status = backend->elapsed(backend, trace->base, at->from, &read[i].from, error);
        if (status == GK_OK)
            status = backend->elapsed(backend, trace->base, at->to, &read[i].to, error);
    }
    return status;
}

gk_status gk_trace_read(gk_trace *trace, gk_busy *busy, gk_error *error) {
    if (trace->error.status != GK_OK) {
        *error = trace->error;
        return error->status;
    }
    double *const totals[] = {&busy->in, &busy->kernel, &busy->out};
    size_t room = (trace->count ? trace->count : 1) * sizeof(interval);
    interval *all = malloc(room), *some = malloc(room);
    gk_status status = GK_OK;
    if (!all || !some)
        status = gk_fail(error, GK_MEMORY_ERROR, "out of host memory for a profile");
    if (status == GK_OK)
        status = read_intervals(trace, all, error);
    for (int kind = 0; kind < GK_TRACE_KINDS && status == GK_OK; kind++) {
        size_t count = 0;
        for (size_t i = 0; i < trace->count; i++)
            if ((int)trace->steps[i].kind == kind)
                some[count++] = all[i];
        *totals[kind] += covered(some, count);
    }
    if (status == GK_OK)
        busy->any += covered(all, trace->count);
    free(all);
    free(some);
    return status;
}
