#include "device/sim/queues.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"

/* Of a stream; more, and some of them run. */
enum { MOST_PENDING = 512, MOST_PENDING_BYTES = 4 << 20 };

struct gk_step {
    gk_step *next;
    gk_run *run; /* NULL: a wait, for `until` */
    void (*drop)(void *payload);
    gk_mark until;
    size_t bytes, held;
    unsigned char payload[] __attribute__((aligned(16)));
};

typedef struct queue {
    struct queue *next;
    gk_stream handle;
    uint64_t number; /* never used again */
    bool blocking, is_gone;
    gk_step *first, **last;
    uint64_t added, done;
    size_t held;         /* bytes, by its steps */
    gk_graph *capturing; /* or NULL */
} queue;

struct gk_queues {
    void *context;
    int ordinal;
    uint64_t seed; /* 0: eager */
    gk_lock lock;  /* of what follows; lazily also held while a step runs */
    uint64_t random, numbers;
    queue *first;
    queue legacy, of_threads; /* the two that need not be made */
    gk_error fault;           /* of a step that nobody has heard of yet */
};

/* steps ---------------------------------------------------------------------------------------- */

gk_step *gk_step_new(gk_run *run, void (*drop)(void *payload), size_t bytes) {
    gk_step *step = malloc(sizeof *step + bytes);
    if (step)
        *step = (gk_step){.run = run, .drop = drop, .bytes = bytes, .held = bytes};
    return step;
}

void gk_step_weigh(gk_step *step, size_t bytes) {
    step->held += bytes;
}

void *gk_step_payload(gk_step *step) {
    return step->payload;
}

static void drop_step(gk_step *step) {
    if (step->drop)
        step->drop(step->payload);
    free(step);
}

void gk_graph_init(gk_graph *graph) {
    *graph = (gk_graph){.last = &graph->first};
}

void gk_graph_drop_steps(gk_graph *graph) {
    while (graph->first) {
        gk_step *step = graph->first;
        graph->first = step->next;
        drop_step(step);
    }
    graph->last = &graph->first;
}

/* streams -------------------------------------------------------------------------------------- */

static void lock(gk_queues *queues) {
    (void)gk_lock_take(&queues->lock); /* after a fork the queues are what they were */
}

static void unlock(gk_queues *queues) {
    gk_lock_give(&queues->lock);
}

static void enlist(gk_queues *queues, queue *added, gk_stream handle, bool blocking) {
    *added = (queue){
        .next = queues->first, .handle = handle, .number = ++queues->numbers, .blocking = blocking};
    added->last = &added->first;
    queues->first = added;
}

/* Under the lock, like all that follows to the functions without `static`. */
static queue *find(gk_queues *queues, gk_stream handle, gk_error *error) {
    if (gk_is_legacy(handle))
        return &queues->legacy;
    if (handle == GK_PER_THREAD_STREAM)
        return &queues->of_threads;
    for (queue *at = queues->first; at; at = at->next)
        if (at->handle == handle && !at->is_gone)
            return at;
    gk_fail(error, GK_VALUE_ERROR,
            "the simulator's device %d has no stream %#zx; see "
            "gpukern.Stream",
            queues->ordinal, (size_t)handle);
    return NULL;
}

static bool is_over(const gk_queues *queues, gk_mark mark) {
    for (const queue *at = queues->first; at; at = at->next)
        if (at->number == mark.stream)
            return at->done >= mark.count;
    return true; /* of a stream that is gone, or of none */
}

static void forget_gone(gk_queues *queues) {
    for (queue **link = &queues->first; *link;) {
        queue *at = *link;
        if (at->is_gone && !at->first) {
            *link = at->next;
            free(at);
        } else {
            link = &at->next;
        }
    }
}

/* running -------------------------------------------------------------------------------------- */

static uint64_t draw(gk_queues *queues) {
    queues->random ^= queues->random << 13; /* xorshift, Marsaglia 2003 */
    queues->random ^= queues->random >> 7;
    queues->random ^= queues->random << 17;
    return queues->random;
}

static bool is_runnable(const gk_queues *queues, const queue *at) {
    return at->first && (at->first->run || is_over(queues, at->first->until));
}

static void run_first(gk_queues *queues, queue *of) {
    gk_step *step = of->first;
    gk_error error = {.status = GK_OK};
    if (step->run && step->run(queues->context, step->payload, &error) != GK_OK &&
        queues->fault.status == GK_OK)
        queues->fault = error;
    of->first = step->next;
    if (!of->first)
        of->last = &of->first;
    of->done++;
    of->held -= step->held;
    drop_step(step);
}

/* Any stream that can run; NULL: none, and so nothing is left. */
static queue *any_runnable(gk_queues *queues) {
    uint64_t runnable = 0;
    for (queue *at = queues->first; at; at = at->next)
        runnable += is_runnable(queues, at);
    if (!runnable)
        return NULL;
    uint64_t chosen = draw(queues) % runnable;
    queue *at = queues->first;
    while (!is_runnable(queues, at) || chosen-- > 0)
        at = at->next;
    return at;
}

static queue *numbered(gk_queues *queues, uint64_t number) {
    queue *at = queues->first;
    while (at && at->number != number)
        at = at->next;
    return at;
}

/* The stream to run if nothing but the mark is to be reached: its own, or what that waits for. */
static queue *needed(gk_queues *queues, gk_mark mark) {
    queue *at = numbered(queues, mark.stream);
    while (at && at->first && !is_runnable(queues, at))
        at = numbered(queues, at->first->until.stream);
    return at;
}

/* Half of the waits bring no more than what they are for, the others also bring other things. */
static void run_until(gk_queues *queues, gk_mark mark) {
    bool alone = draw(queues) % 2 == 0;
    while (!is_over(queues, mark)) {
        queue *next = alone || draw(queues) % 2 == 0 ? needed(queues, mark) : any_runnable(queues);
        if (!next || !next->first)
            return;
        run_first(queues, next);
    }
}

static gk_mark mark_of(const queue *of) {
    return (gk_mark){.stream = of->number, .count = of->added};
}

static void append(gk_queues *queues, queue *to, gk_step *step) {
    step->next = NULL;
    *to->last = step;
    to->last = &step->next;
    to->added++;
    to->held += step->held;
    if (to->added - to->done > MOST_PENDING || to->held > MOST_PENDING_BYTES)
        run_until(queues, (gk_mark){.stream = to->number,
                                    .count = to->done + (to->added - to->done + 1) / 2});
}

static bool append_wait(gk_queues *queues, queue *waiting, gk_mark mark) {
    if (mark.stream == waiting->number || is_over(queues, mark))
        return true;
    gk_step *step = gk_step_new(NULL, NULL, 0);
    if (!step)
        return false;
    step->until = mark;
    append(queues, waiting, step);
    return true;
}

/* The legacy default stream and those that are not made otherwise wait for one another. */
static bool join_legacy(gk_queues *queues, queue *to) {
    bool joined = true;
    if (to == &queues->legacy) {
        for (queue *at = queues->first; at && joined; at = at->next)
            joined = !at->blocking || append_wait(queues, to, mark_of(at));
        return joined;
    }
    return !to->blocking || append_wait(queues, to, mark_of(&queues->legacy));
}

/* the interface -------------------------------------------------------------------------------- */

gk_queues *gk_queues_new(void *context, int ordinal, uint64_t seed) {
    gk_queues *queues = calloc(1, sizeof *queues);
    if (!queues)
        return NULL;
    if (!gk_lock_init(&queues->lock)) {
        free(queues);
        return NULL;
    }
    queues->context = context;
    queues->ordinal = ordinal;
    queues->seed = seed;
    queues->random = seed * 0x9e3779b97f4a7c15u | 1; /* never 0 */
    enlist(queues, &queues->legacy, GK_LEGACY_STREAM, false);
    enlist(queues, &queues->of_threads, GK_PER_THREAD_STREAM, true);
    return queues;
}

void gk_queues_free(gk_queues *queues) {
    if (!queues)
        return;
    while (queues->first) {
        queue *at = queues->first;
        queues->first = at->next;
        while (at->first) {
            gk_step *step = at->first;
            at->first = step->next;
            drop_step(step);
        }
        if (at != &queues->legacy && at != &queues->of_threads)
            free(at);
    }
    gk_lock_free(&queues->lock);
    free(queues);
}

bool gk_queues_are_lazy(const gk_queues *queues) {
    return queues->seed != 0;
}

void gk_queues_hold(gk_queues *queues) {
    lock(queues);
}

void gk_queues_let(gk_queues *queues) {
    unlock(queues);
}

gk_status gk_queues_stream_new(gk_queues *queues, bool blocking, gk_stream *stream,
                               gk_error *error) {
    queue *made = malloc(sizeof *made);
    if (!made)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for a stream");
    lock(queues);
    forget_gone(queues);
    /* Another device's is none of this one's. */
    *stream = ((gk_stream)(queues->ordinal + 1) << 32) + 16 * (queues->numbers + 1);
    enlist(queues, made, *stream, blocking);
    unlock(queues);
    return GK_OK;
}

void gk_queues_stream_free(gk_queues *queues, gk_stream stream) {
    gk_error ignored;
    if (stream <= GK_PER_THREAD_STREAM)
        return;
    lock(queues);
    queue *gone = find(queues, stream, &ignored);
    if (gone)
        gone->is_gone = true;
    forget_gone(queues);
    unlock(queues);
}

gk_status gk_queues_add(gk_queues *queues, gk_stream stream, gk_step *step, gk_error *error) {
    if (!step)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for a stream's work");
    lock(queues);
    queue *to = find(queues, stream, error);
    gk_graph *graph = to ? to->capturing : NULL;
    bool now = to && !graph && !queues->seed;
    gk_status status = to ? GK_OK : error->status;
    if (graph) {
        step->next = NULL;
        *graph->last = step;
        graph->last = &step->next;
    } else if (to && queues->seed) {
        if (join_legacy(queues, to))
            append(queues, to, step);
        else
            status = gk_fail(error, GK_MEMORY_ERROR, "out of memory for a stream's work");
    }
    unlock(queues);
    if (now)
        status = step->run(queues->context, step->payload, error);
    if (now || status != GK_OK)
        drop_step(step);
    return status;
}

gk_status gk_queues_mark(gk_queues *queues, gk_stream stream, gk_mark *mark, gk_error *error) {
    lock(queues);
    queue *of = find(queues, stream, error);
    /* The legacy default stream stands for all that it would wait for. */
    bool joined = of != &queues->legacy || join_legacy(queues, of);
    *mark = of ? mark_of(of) : (gk_mark){0};
    unlock(queues);
    if (!joined)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for a stream's work");
    return of ? GK_OK : error->status;
}

gk_status gk_queues_wait(gk_queues *queues, gk_stream waiting, gk_mark mark, gk_error *error) {
    lock(queues);
    queue *to = find(queues, waiting, error);
    bool joined = !to || append_wait(queues, to, mark);
    unlock(queues);
    if (!joined)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for a stream's work");
    return to ? GK_OK : error->status;
}

void gk_queues_reach(gk_queues *queues, gk_mark mark) {
    lock(queues);
    run_until(queues, mark);
    unlock(queues);
}

void gk_queues_drain(gk_queues *queues) {
    lock(queues);
    for (queue *next = any_runnable(queues); next; next = any_runnable(queues))
        run_first(queues, next);
    unlock(queues);
}

void gk_queues_blame(gk_queues *queues, const gk_error *fault) {
    lock(queues);
    if (queues->fault.status == GK_OK)
        queues->fault = *fault;
    unlock(queues);
}

gk_status gk_queues_report(gk_queues *queues, gk_error *error) {
    lock(queues);
    gk_status status = queues->fault.status;
    if (status != GK_OK)
        *error = queues->fault;
    queues->fault.status = GK_OK;
    unlock(queues);
    return status;
}

/* graphs --------------------------------------------------------------------------------------- */

gk_status gk_queues_capture(gk_queues *queues, gk_stream stream, gk_graph *into, gk_error *error) {
    gk_status status = GK_OK;
    lock(queues);
    queue *of = find(queues, stream, error);
    if (!of)
        status = error->status;
    else if (of == &queues->legacy)
        status = gk_fail(error, GK_VALUE_ERROR, "the legacy default stream cannot be captured");
    else if (of->capturing)
        status = gk_fail(error, GK_VALUE_ERROR, "the stream is being captured already");
    else
        of->capturing = into;
    unlock(queues);
    return status;
}

gk_status gk_queues_captured(gk_queues *queues, gk_stream stream, gk_graph **graph,
                             gk_error *error) {
    lock(queues);
    queue *of = find(queues, stream, error);
    *graph = of ? of->capturing : NULL;
    unlock(queues);
    return of ? GK_OK : error->status;
}

gk_status gk_queues_capture_end(gk_queues *queues, gk_stream stream, gk_graph **graph,
                                gk_error *error) {
    lock(queues);
    queue *of = find(queues, stream, error);
    *graph = of ? of->capturing : NULL;
    if (of)
        of->capturing = NULL;
    unlock(queues);
    if (!of)
        return error->status;
    return *graph ? GK_OK
                  : gk_fail(error, GK_VALUE_ERROR,
                            "the stream is not being captured; call begin_capture() first");
}

gk_status gk_queues_launch(gk_queues *queues, const gk_graph *graph, gk_stream stream,
                           gk_error *error) {
    gk_status status = GK_OK;
    for (const gk_step *step = graph->first; step && status == GK_OK; step = step->next) {
        gk_step *again = gk_step_new(step->run, NULL, step->bytes); /* the graph drops it */
        if (again)
            memcpy(again->payload, step->payload, step->bytes);
        status = gk_queues_add(queues, stream, again, error);
    }
    return status;
}
