/* Streams, events, and captures in graphs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

/* --- the log ----------------------------------------------------------------------------- */

/* What was done in which order: "l77 " a launch on stream 77, "r" and "w" an event recorded and
   waited for, "z" memory zeroed, "f" memory freed, "i" and "o" a copy in and out. */
char fake_log[1 << 18];

void fake_note(char what, handle stream) {
    static size_t length;
    if (length + 32 < sizeof fake_log)
        length += (size_t)sprintf(fake_log + length, "%c%zu ", what, fake_stream_number(stream));
}

/* --- captures ---------------------------------------------------------------------------- */

/* One stream at a time is captured, from fake_capture(stream) to fake_capture(NULL), and its graph
   lives until fake_graph_gone(); or as the driver has it, to a graph of which the launches do
   nothing. */
enum { OBJECTS = 64 };
static handle captured;
static int is_blocking, is_ended; /* by a call that is forbidden meanwhile */
static uint64_t capture_number;
static int graph, holders; /* of the graph: itself and executables */
static _Thread_local int mode_of_thread;
static struct user_object {
    void (*gone)(void *); /* NULL: there is none in this place */
    void *data;
    int is_of_graph;
} objects[OBJECTS];

static void end_object(struct user_object *object) {
    void (*gone)(void *) = object->gone;
    object->gone = NULL;
    gone(object->data);
    fake_count("objects", -1);
}

void fake_capture(handle stream, int blocking) {
    captured = stream;
    capture_number += stream != NULL;
    is_blocking = blocking;
    is_ended = 0;
}

/* Whether a call ends the capture under way, as it does in a thread that is not relaxed. */
int fake_is_forbidden(void) {
    int is_now = captured && mode_of_thread != RELAXED;
    is_ended |= is_now;
    return is_now;
}

void fake_graph_gone(void) {
    for (int i = 0; i < OBJECTS; i++)
        if (objects[i].gone && objects[i].is_of_graph)
            end_object(&objects[i]);
}

static void let_go(const char *kind) {
    fake_count(kind, -1);
    if (--holders == 0)
        fake_graph_gone();
}

result cuStreamBeginCapture_v2(handle stream, int mode) {
    FAKE_ENTER();
    if (mode != 1)
        fake_violation("%s: a capture that forbids other threads their calls", __func__);
    fake_capture(stream, 0);
    return fake_sticky;
}

result cuStreamEndCapture(handle stream, handle *ended) {
    if (!fake_is_captured(stream))
        return INVALID_VALUE;
    int was_ended = is_ended;
    fake_capture(NULL, 0);
    FAKE_ENTER();
    if (was_ended)
        return CAPTURE_INVALIDATED;
    holders++;
    fake_count("graphs", 1);
    *ended = &graph;
    return fake_sticky;
}

result cuGraphInstantiateWithFlags(handle *executable, handle of, unsigned long long flags) {
    (void)flags;
    FAKE_ENTER();
    if (fake_is_forbidden())
        return CAPTURE_UNSUPPORTED;
    holders++;
    fake_count("executables", 1);
    *executable = of;
    return fake_sticky;
}

result cuGraphLaunch(handle executable, handle named) {
    FAKE_ENTER();
    if (executable != &graph)
        return INVALID_VALUE;
    fake_lock();
    (void)fake_submit(fake_stream(named, __func__));
    fake_unlock();
    return fake_sticky;
}

result cuGraphDestroy(handle gone) {
    (void)gone;
    let_go("graphs");
    return fake_sticky;
}

result cuGraphExecDestroy(handle gone) {
    (void)gone;
    if (fake_is_forbidden())
        return CAPTURE_UNSUPPORTED;
    let_go("executables");
    return fake_sticky;
}

int fake_is_captured(handle stream) {
    return captured && stream == captured;
}

int fake_blocks_legacy(handle stream) {
    return captured && is_blocking && (uintptr_t)stream <= 1;
}

result cuStreamIsCapturing(handle stream, int *status) {
    FAKE_ENTER();
    *status = fake_is_captured(stream);
    return fake_blocks_legacy(stream) ? CAPTURE_IMPLICIT : fake_sticky;
}

result cuStreamGetCaptureInfo_v3(handle stream, int *status, uint64_t *id, handle *of,
                                 handle **dependencies, void **edges, size_t *count) {
    (void)dependencies, (void)edges, (void)count;
    FAKE_ENTER();
    *of = &graph;
    if (id)
        *id = capture_number;
    return cuStreamIsCapturing(stream, status);
}

result cuStreamGetCaptureInfo_v2(handle stream, int *status, uint64_t *id, handle *of,
                                 handle **dependencies, size_t *count) {
    return cuStreamGetCaptureInfo_v3(stream, status, id, of, dependencies, NULL, count);
}

result cuUserObjectCreate(handle *object, void *data, void (*gone)(void *), unsigned references,
                          unsigned flags) {
    FAKE_ENTER();
    int i = 0;
    while (i < OBJECTS && objects[i].gone)
        i++;
    if (i == OBJECTS)
        fake_violation("%s: there are %d objects: are they ever released?", __func__, OBJECTS);
    if (references != 1 || flags != 1)
        return INVALID_VALUE;
    objects[i] = (struct user_object){gone, data, 0};
    *object = &objects[i];
    fake_count("objects", 1);
    return OK;
}

result cuUserObjectRelease(handle object, unsigned count) {
    if (count != 1)
        return INVALID_VALUE;
    end_object(object);
    return OK;
}

result cuGraphRetainUserObject(handle of, handle object, unsigned count, unsigned flags) {
    FAKE_ENTER();
    if (of != &graph || count != 1 || flags != 1)
        return INVALID_VALUE;
    ((struct user_object *)object)->is_of_graph = 1;
    return OK;
}

result cuThreadExchangeStreamCaptureMode(int *mode) {
    int before = mode_of_thread;
    mode_of_thread = *mode;
    *mode = before;
    return OK;
}

/* --- streams ----------------------------------------------------------------------------- */

result cuStreamCreate(handle *made, unsigned flags) {
    FAKE_ENTER();
    handle context = fake_context(__func__);
    fake_lock();
    *made = fake_new_stream(flags != 1, context);
    fake_count("streams", 1);
    fake_count("blocking streams", flags != 1);
    fake_unlock();
    return fake_sticky;
}

result cuStreamDestroy_v2(handle gone) {
    fake_lock();
    (void)fake_stream(gone, __func__);
    fake_end_stream(gone);
    fake_count("streams", -1);
    fake_unlock();
    return fake_sticky;
}

result cuStreamSynchronize(handle named) {
    FAKE_ENTER();
    if (fake_is_captured(named))
        return CAPTURE_UNSUPPORTED;
    fake_lock();
    stream *waited = fake_stream(named, __func__);
    (void)fake_submit(waited); /* the legacy stream waits for others */
    fake_host_waits(&waited->clock);
    fake_unlock();
    return fake_sticky;
}

result cuCtxSynchronize(void) {
    FAKE_ENTER();
    if (captured)
        return CAPTURE_UNSUPPORTED;
    (void)fake_context(__func__);
    fake_lock();
    fake_host_waits_for_all();
    fake_unlock();
    return fake_sticky;
}

/* --- events ------------------------------------------------------------------------------ */

enum { EVENTS = 8192 };
typedef struct event {
    int is_live, is_recorded, tells_time;
    handle context;
    clock_vector clock;
} event;
static event *events[EVENTS];
static int next_event;

/* Under the lock. The places go round, so that a handle that is gone is known as such for long. */
static event *event_of(handle named, const char *function) {
    for (int i = 0; i < EVENTS; i++)
        if (events[i] == named && named && events[i]->is_live) {
            if (events[i]->context != fake_context(function))
                fake_violation("%s: the event is of another context", function);
            return events[i];
        }
    fake_violation("%s: %p is no event, or one that was destroyed", function, named);
}

result cuEventCreate(handle *made, unsigned flags) {
    FAKE_ENTER();
    handle context = fake_context(__func__);
    usleep((useconds_t)fake_setting("FAKE_SLOW_EVENTS", 0));
    fake_lock();
    int looked_at = 0;
    while (events[next_event] && events[next_event]->is_live && looked_at++ < EVENTS)
        next_event = (next_event + 1) % EVENTS;
    if (looked_at > EVENTS)
        fake_violation("there are %d events: are they ever destroyed?", EVENTS);
    free(events[next_event]);
    event *fresh = events[next_event] = calloc(1, sizeof *fresh);
    next_event = (next_event + 1) % EVENTS;
    fresh->is_live = 1;
    fresh->tells_time = flags != 2;
    fresh->context = context;
    fake_count("events", 1);
    fake_unlock();
    *made = fresh;
    return fake_sticky;
}

result cuEventDestroy_v2(handle named) {
    fake_lock();
    event_of(named, __func__)->is_live = 0;
    fake_count("events", -1);
    fake_unlock();
    return fake_sticky;
}

result cuEventRecord(handle named, handle stream_named) {
    FAKE_ENTER();
    fake_lock();
    fake_note('r', stream_named);
    event *recorded = event_of(named, __func__);
    stream *on = fake_stream(stream_named, __func__);
    (void)fake_submit(on);
    recorded->clock = on->clock;
    recorded->is_recorded = 1;
    fake_unlock();
    return fake_sticky;
}

result cuStreamWaitEvent(handle stream_named, handle named, unsigned flags) {
    (void)flags;
    FAKE_ENTER();
    fake_lock();
    fake_note('w', stream_named);
    const event *waited = event_of(named, __func__);
    stream *on = fake_stream(stream_named, __func__);
    fake_join(&on->clock, &waited->clock); /* one that was never recorded has nothing to wait for */
    fake_unlock();
    return fake_sticky;
}

result cuEventSynchronize(handle named) {
    FAKE_ENTER();
    fake_lock();
    fake_host_waits(&event_of(named, __func__)->clock);
    fake_unlock();
    return fake_sticky;
}

result cuEventElapsedTime_v2(float *milliseconds, handle from, handle to) {
    FAKE_ENTER();
    fake_lock();
    const event *first = event_of(from, __func__), *last = event_of(to, __func__);
    int tells = first->is_recorded && last->is_recorded && first->tells_time && last->tells_time;
    fake_unlock();
    *milliseconds = 0.0f;
    return tells ? fake_sticky : INVALID_HANDLE;
}

result cuEventElapsedTime(float *milliseconds, handle from, handle to) {
    return cuEventElapsedTime_v2(milliseconds, from, to);
}
