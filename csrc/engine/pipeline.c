#include "engine/pipeline.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/pack.h"

enum {
    SLOTS = 3, /* chunks a lane has under way: one packed, one on the bus, one coming back */
    BUFFERS = GK_PIPELINE_OPERANDS + 1,
    RESULT = GK_PIPELINE_OPERANDS, /* the buffer of the result */
    FEWEST = 2,                    /* chunks a lane of a short array, */
    MANY = 10,                     /* and of one long enough for chunks of half a buffer */
    CHUNKS_A_LOOK = 16,            /* after so many of its own the caller's thread looks up */
};

/* A chunk under way. */
typedef struct slot {
    char *pinned[BUFFERS];
    char *device[BUFFERS];
    gk_event *done;
    bool busy;              /* `done` has been recorded and not been reached */
    size_t first, unpacked; /* elements of the result that wait in pinned memory; 0: none */
} slot;

/* A stream of chunks that one worker feeds. */
typedef struct lane {
    gk_stream stream;
    slot slots[SLOTS];
    unsigned turn;
} lane;

struct gk_pipeline {
    gk_workers *workers;
    gk_pool *pool;
    gk_lock turn; /* one flow at a time: there is one bus */
    int count;
    bool ready; /* all that follows is there */
    lane *lanes;
    char *pinned;
    void *device;
    atomic_size_t held; /* bytes of it, for those who ask without a turn */
    gk_pipeline_streams streams;
    gk_event *started; /* what the lanes wait for before they touch a caller's device memory */
};

/* One passage, as the workers see it. */
typedef struct passage {
    gk_pipeline *pipeline;
    gk_backend *backend;
    const gk_flow *flow;
    gk_trace *trace;
    size_t chunk, chunks;
    bool direct[BUFFERS]; /* the array is pinned memory itself: no staging */
    int twin[BUFFERS];    /* the operand that travels for this one: most travel for themselves */
    bool settles;         /* the caller's host memory is in use until the last chunk is through */
    atomic_size_t next;
    atomic_bool failed;
    pthread_mutex_t lock; /* guards the error: the first one stays */
    gk_error error;
} passage;

/* lanes ---------------------------------------------------------------------------------------- */

static size_t region_bytes(const gk_pipeline *pipeline) {
    return (size_t)pipeline->count * SLOTS * BUFFERS * GK_PIPELINE_CHUNK;
}

gk_pipeline *gk_pipeline_new(gk_workers *workers, gk_pool *pool) {
    gk_pipeline *pipeline = calloc(1, sizeof *pipeline);
    if (!pipeline)
        return NULL;
    pipeline->workers = workers;
    pipeline->pool = pool;
    pipeline->count = gk_workers_count(workers);
    if (gk_turn_init(&pipeline->turn))
        return pipeline;
    free(pipeline);
    return NULL;
}

static void forget_lanes(gk_pipeline *pipeline) {
    pipeline->ready = false;
    pipeline->lanes = NULL;
    pipeline->pinned = NULL;
    pipeline->device = NULL;
    atomic_store(&pipeline->held, 0);
    pipeline->started = NULL;
}

/* Nothing is under way any more: neither on the device nor in the staging buffers. */
static void clear_slots(gk_pipeline *pipeline) {
    for (int i = 0; i < pipeline->count; i++)
        for (int j = 0; j < SLOTS; j++) {
            pipeline->lanes[i].slots[j].busy = false;
            pipeline->lanes[i].slots[j].unpacked = 0;
        }
}

/* Wait until nothing reads or writes the memory of the lanes or of a caller any more. */
static void drain(gk_pipeline *pipeline, gk_backend *backend) {
    gk_error ignored; /* fails only after a fault, which the next call reports */
    for (int i = 0; i < pipeline->count; i++)
        (void)backend->synchronize(backend, pipeline->lanes[i].stream, &ignored);
    clear_slots(pipeline);
}

static void free_lanes(gk_pipeline *pipeline, gk_backend *backend) {
    if (pipeline->ready)
        drain(pipeline, backend);
    for (int i = 0; i < pipeline->count && pipeline->lanes; i++) {
        for (int j = 0; j < SLOTS; j++)
            backend->event_free(backend, pipeline->lanes[i].slots[j].done);
        backend->stream_free(backend, pipeline->lanes[i].stream);
    }
    backend->event_free(backend, pipeline->started);
    backend->release(backend, pipeline->device, 0);
    if (pipeline->pinned)
        gk_pool_give(pipeline->pool, pipeline->pinned);
    free(pipeline->lanes);
    forget_lanes(pipeline);
}

void gk_pipeline_free(gk_pipeline *pipeline, gk_backend *backend) {
    if (!pipeline)
        return;
    free_lanes(pipeline, backend);
    for (int i = 0; i < GK_PIPELINE_STREAMS; i++)
        backend->stream_free(backend, pipeline->streams.all[i]);
    gk_lock_free(&pipeline->turn);
    free(pipeline);
}

static gk_status fill_lane(gk_pipeline *pipeline, gk_backend *backend, int number,
                           gk_error *error) {
    lane *filled = &pipeline->lanes[number];
    gk_status status = backend->stream_new(backend, &filled->stream, error);
    for (int j = 0; j < SLOTS && status == GK_OK; j++) {
        slot *at = &filled->slots[j];
        size_t offset = ((size_t)number * SLOTS + (size_t)j) * BUFFERS * GK_PIPELINE_CHUNK;
        for (int k = 0; k < BUFFERS; k++, offset += GK_PIPELINE_CHUNK) {
            at->pinned[k] = pipeline->pinned + offset;
            at->device[k] = (char *)pipeline->device + offset;
        }
        status = backend->event_new(backend, &at->done, error);
    }
    return status;
}

/* Before the lanes: a GPU has eight queues that streams are given in turn, and a stream that waits
   for a product holds up the lane it shares one with. */
static gk_status need_streams(gk_pipeline *pipeline, gk_backend *backend, gk_error *error) {
    gk_status status = GK_OK;
    for (int i = 0; i < GK_PIPELINE_STREAMS && status == GK_OK; i++)
        if (!pipeline->streams.all[i])
            status = backend->stream_new(backend, &pipeline->streams.all[i], error);
    return status;
}

/* Buffers once a process: they cost milliseconds, and a call has none to spare. */
static gk_status need_lanes(gk_pipeline *pipeline, gk_backend *backend, gk_error *error) {
    if (pipeline->ready)
        return GK_OK;
    size_t bytes = region_bytes(pipeline);
    pipeline->lanes = calloc((size_t)pipeline->count, sizeof *pipeline->lanes);
    pipeline->pinned = gk_pool_take(pipeline->pool, bytes);
    if (!pipeline->lanes || !pipeline->pinned) {
        free_lanes(pipeline, backend);
        return gk_fail(error, GK_MEMORY_ERROR, "no pinned memory for staging");
    }
    gk_status status = need_streams(pipeline, backend, error);
    if (status == GK_OK)
        status = backend->allocate(backend, bytes, 0, &pipeline->device, error);
    if (status == GK_OK)
        atomic_store(&pipeline->held, bytes);
    if (status == GK_OK)
        status = backend->synchronize(backend, 0, error); /* its stream has it; now all have */
    if (status == GK_OK)
        status = backend->event_new(backend, &pipeline->started, error);
    for (int i = 0; i < pipeline->count && status == GK_OK; i++)
        status = fill_lane(pipeline, backend, i, error);
    pipeline->ready = status == GK_OK;
    if (status != GK_OK)
        free_lanes(pipeline, backend);
    return status;
}

size_t gk_pipeline_bytes(gk_pipeline *pipeline) {
    return atomic_load(&pipeline->held);
}

/* chunks --------------------------------------------------------------------------------------- */

static void fail(passage *run, const gk_error *error) {
    pthread_mutex_lock(&run->lock);
    if (!atomic_exchange(&run->failed, true))
        run->error = *error;
    pthread_mutex_unlock(&run->lock);
}

/* Wait for the chunk that used the slot before, and unpack what it brought back. */
static gk_status settle(passage *run, slot *used, gk_error *error) {
    gk_status status = GK_OK;
    if (used->busy)
        status = run->backend->reach(run->backend, used->done, error);
    used->busy = false;
    if (status == GK_OK && used->unpacked > 0)
        gk_unpack(&run->flow->result, used->pinned[RESULT], used->first, used->unpacked);
    used->unpacked = 0;
    return status;
}

static gk_array chunk_view(const gk_array *whole, void *data, size_t count) {
    gk_array view = {.data = data, .place = GK_DEVICE, .dtype = whole->dtype, .ndim = 1};
    view.shape[0] = (int64_t)count;
    view.strides[0] = (int64_t)gk_dtype_size(whole->dtype);
    return view;
}

static gk_status bring_in(passage *run, lane *on, slot *at, int number, size_t first, size_t count,
                          gk_array *view, gk_error *error) {
    const gk_array *operand = &run->flow->operands[number];
    char *landing = run->flow->landing[number];
    size_t size = gk_dtype_size(operand->dtype);
    const char *from = at->pinned[number];
    *view = chunk_view(operand, landing ? landing + first * size : at->device[number], count);
    if (run->direct[number])
        from = (const char *)operand->data + first * size;
    else
        gk_pack(at->pinned[number], operand, first, count);
    size_t step = gk_trace_start(run->trace, on->stream, GK_TRACE_IN);
    gk_status status = run->backend->start_copy_in(run->backend, view->data, from, count * size,
                                                   on->stream, error);
    gk_trace_end(run->trace, on->stream, step);
    return status;
}

static gk_status send_out(passage *run, lane *on, slot *at, const gk_array *view, size_t first,
                          size_t count, gk_error *error) {
    const gk_array *result = &run->flow->result;
    size_t size = gk_dtype_size(result->dtype);
    char *to = run->direct[RESULT] ? (char *)result->data + first * size : at->pinned[RESULT];
    size_t step = gk_trace_start(run->trace, on->stream, GK_TRACE_OUT);
    gk_status status =
        run->backend->start_copy_out(run->backend, to, view->data, count * size, on->stream, error);
    gk_trace_end(run->trace, on->stream, step);
    if (status == GK_OK && !run->direct[RESULT]) {
        at->first = first;
        at->unpacked = count;
    }
    return status;
}

static gk_status feed(passage *run, lane *on, slot *at, size_t number, gk_error *error) {
    const gk_flow *flow = run->flow;
    size_t first = number * run->chunk;
    size_t count = flow->count - first < run->chunk ? flow->count - first : run->chunk;
    gk_array operands[GK_PIPELINE_OPERANDS], result = {0};
    gk_status status = GK_OK;
    if (flow->has_result) {
        char *source = (char *)(uintptr_t)flow->source;
        size_t size = gk_dtype_size(flow->result.dtype);
        result =
            chunk_view(&flow->result, source ? source + first * size : at->device[RESULT], count);
    }
    for (int i = 0; i < flow->operand_count && status == GK_OK; i++)
        if (run->twin[i] < i)
            operands[i] = operands[run->twin[i]];
        else
            status = bring_in(run, on, at, i, first, count, &operands[i], error);
    if (status == GK_OK && flow->work) {
        size_t step = gk_trace_start(run->trace, on->stream, GK_TRACE_KERNEL);
        status = flow->work(flow->context, on->stream, operands, &result, first, error);
        gk_trace_end(run->trace, on->stream, step);
    }
    if (status == GK_OK && flow->has_result)
        status = send_out(run, on, at, &result, first, count, error);
    /* Also after a failure: part of the chunk may be on its way through the pinned memory. */
    gk_error ignored;
    gk_status recorded = run->backend->record(run->backend, at->done, on->stream,
                                              status == GK_OK ? error : &ignored);
    at->busy = recorded == GK_OK;
    return status != GK_OK ? status : recorded;
}

bool gk_interrupted(gk_interruption *interruption, gk_error *error) {
    if (!interruption || !interruption->wanted(interruption))
        return false;
    gk_fail(error, GK_INTERRUPTED, "interrupted");
    return true;
}

/* Only the caller's own thread, which is worker 0, can ask the user. */
static bool is_interrupted(const passage *run, int worker, size_t done, gk_error *error) {
    return worker == 0 && done % CHUNKS_A_LOOK == CHUNKS_A_LOOK - 1 &&
           gk_interrupted(run->flow->interruption, error);
}

/* What a worker does: take chunks until there are none, then see its own to their end. */
static void drive(void *context, int worker) {
    passage *run = context;
    lane *own = &run->pipeline->lanes[worker];
    gk_error error = {0};
    gk_status status = GK_OK;
    for (size_t done = 0; status == GK_OK && !atomic_load(&run->failed); done++) {
        size_t number = atomic_fetch_add(&run->next, 1);
        if (number >= run->chunks)
            break;
        slot *at = &own->slots[own->turn++ % SLOTS];
        status = settle(run, at, &error);
        if (status == GK_OK)
            status = feed(run, own, at, number, &error);
        if (status == GK_OK && is_interrupted(run, worker, done, &error))
            status = error.status;
    }
    for (int i = 0; i < SLOTS && run->settles; i++) {
        slot *at = &own->slots[own->turn++ % SLOTS];
        gk_status settled = settle(run, at, status == GK_OK ? &error : &(gk_error){0});
        status = status == GK_OK ? settled : status;
    }
    if (status != GK_OK)
        fail(run, &error);
}

/* flows ---------------------------------------------------------------------------------------- */

size_t gk_flow_least(const gk_flow *flow) {
    const size_t whole_blocks = 32768; /* a multiple of what a block of any ladder takes */
    size_t multiple = flow->multiple > 0 ? flow->multiple : whole_blocks;
    return (whole_blocks + multiple - 1) / multiple * multiple;
}

int gk_flow_twin(const gk_flow *flow, int number) {
    int twin = 0;
    while (twin < number && (flow->landing[twin] || flow->landing[number] ||
                             !gk_is_same_view(&flow->operands[twin], &flow->operands[number])))
        twin++;
    return twin;
}

/* Elements a chunk: as much as a buffer takes, but several chunks a lane where the arrays are
   short, so that no lane waits long for the last one to end. */
static size_t chunk_elements(const gk_pipeline *pipeline, const gk_flow *flow) {
    size_t size = flow->has_result ? gk_dtype_size(flow->result.dtype) : 1;
    for (int i = 0; i < flow->operand_count; i++) {
        size_t other = gk_dtype_size(flow->operands[i].dtype);
        size = other > size ? other : size;
    }
    size_t least = gk_flow_least(flow);
    size_t most = flow->chunk / size / least * least;
    most = most < least ? least : most;
    size_t lanes = (size_t)pipeline->count;
    size_t few = flow->count / (lanes * FEWEST), many = flow->count / (lanes * MANY);
    size_t share = few < most / 2 ? few : most / 2;
    share = many > share ? many : share;
    share = (share + least - 1) / least * least;
    share = share < least ? least : share;
    return share < most ? share : most;
}

static bool is_direct(gk_pool *pool, const gk_array *array) {
    return !array->swapped && gk_is_contiguous(array) &&
           gk_pool_holds(pool, array->data, gk_bytes(array));
}

/* Lanes start after what the caller's stream holds, so that memory allocated there is there. */
static gk_status start_after(passage *run, gk_error *error) {
    const gk_flow *flow = run->flow;
    gk_pipeline *pipeline = run->pipeline;
    bool foreign = flow->source != NULL;
    for (int i = 0; i < flow->operand_count; i++)
        foreign |= flow->landing[i] != NULL;
    foreign |= flow->work != NULL;
    if (!foreign)
        return GK_OK;
    gk_status status = run->backend->record(run->backend, pipeline->started, flow->after, error);
    for (int i = 0; i < pipeline->count && status == GK_OK; i++)
        status = run->backend->wait_event(run->backend, pipeline->lanes[i].stream,
                                          pipeline->started, error);
    return status;
}

/* The caller's stream goes on after the last chunk of every lane. */
static gk_status finish_before(passage *run, gk_error *error) {
    gk_status status = GK_OK;
    for (int i = 0; i < run->pipeline->count && status == GK_OK; i++)
        for (int j = 0; j < SLOTS && status == GK_OK; j++) {
            slot *at = &run->pipeline->lanes[i].slots[j];
            if (at->busy)
                status = run->backend->wait_event(run->backend, run->flow->after, at->done, error);
        }
    return status;
}

static gk_status pass(passage *run, gk_error *error) {
    gk_status status = start_after(run, error);
    if (status != GK_OK)
        return status;
    gk_workers_run(run->pipeline->workers, drive, run);
    if (!atomic_load(&run->failed))
        status = finish_before(run, error);
    else
        status = (*error = run->error).status;
    if (status == GK_OK && run->trace)
        status = gk_trace_read(run->trace, run->flow->busy, error);
    if (status != GK_OK)
        drain(run->pipeline, run->backend);
    return status;
}

/* In the child of a fork: what a thread that is not here had under way stays undone, and what it
   had half made is made anew. */
static void inherit(gk_pipeline *pipeline) {
    if (pipeline->ready)
        clear_slots(pipeline);
    else
        forget_lanes(pipeline);
}

/* One at a time. */
static gk_status take_turn(gk_pipeline *pipeline, gk_error *error) {
    gk_taken taken = gk_lock_take(&pipeline->turn);
    if (taken == GK_REFUSED)
        return gk_fail(error, GK_MEMORY_ERROR, "this thread's own call uses the staging memory");
    if (taken != GK_TAKEN)
        inherit(pipeline);
    return GK_OK;
}

void gk_pipeline_trim(gk_pipeline *pipeline, gk_backend *backend) {
    gk_error ignored;
    if (take_turn(pipeline, &ignored) != GK_OK)
        return;
    free_lanes(pipeline, backend);
    gk_lock_give(&pipeline->turn);
}

gk_status gk_pipeline_get_streams(gk_pipeline *pipeline, gk_backend *backend,
                                  gk_pipeline_streams *streams, gk_error *error) {
    gk_status status = take_turn(pipeline, error);
    if (status != GK_OK)
        return status;
    status = need_streams(pipeline, backend, error);
    *streams = pipeline->streams;
    gk_lock_give(&pipeline->turn);
    return status;
}

gk_status gk_pipeline_run(gk_pipeline *pipeline, gk_backend *backend, const gk_flow *flow,
                          gk_error *error) {
    passage run = {
        .pipeline = pipeline, .backend = backend, .flow = flow, .lock = PTHREAD_MUTEX_INITIALIZER};
    gk_status status = take_turn(pipeline, error);
    if (status != GK_OK)
        return status;
    run.chunk = chunk_elements(pipeline, flow);
    run.chunks = (flow->count + run.chunk - 1) / run.chunk;
    run.settles = flow->has_result;
    for (int i = 0; i < flow->operand_count; i++) {
        run.twin[i] = gk_flow_twin(flow, i);
        run.settles |= run.direct[i] = is_direct(pipeline->pool, &flow->operands[i]);
    }
    run.direct[RESULT] = flow->has_result && is_direct(pipeline->pool, &flow->result);
    status = need_lanes(pipeline, backend, error);
    if (status == GK_OK && flow->busy)
        status = gk_trace_new(backend, pipeline->lanes[0].stream,
                              run.chunks * (size_t)(flow->operand_count + 2), &run.trace, error);
    if (status == GK_OK)
        status = pass(&run, error);
    gk_trace_free(run.trace);
    gk_lock_give(&pipeline->turn);
    pthread_mutex_destroy(&run.lock);
    return status;
}
