#include "engine/pipeline.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "engine/passage.h"

enum {
    SLOTS = GK_PASSAGE_SLOTS,
    HOLDS = GK_PASSAGE_HOLDS,
    EACH = GK_PASSAGE_BYTES,
    PINNED_BYTES = SLOTS * EACH,
    DEVICE_BYTES = HOLDS * GK_WAYS * EACH,
};

struct gk_pipeline {
    gk_workers *workers;
    gk_pool *pool;
    gk_lock turn; /* one flow at a time: there is one bus */
    gk_tuner tuner;
    bool ready; /* all that follows is there */
    gk_berth berth;
    char *pinned;
    void *device;
    atomic_size_t held; /* bytes of it, for those who ask without a turn */
    gk_pipeline_streams streams;
};

/* memory and streams --------------------------------------------------------------------------- */

gk_pipeline *gk_pipeline_new(gk_workers *workers, gk_pool *pool) {
    gk_pipeline *pipeline = calloc(1, sizeof *pipeline);
    if (!pipeline)
        return NULL;
    pipeline->workers = workers;
    pipeline->pool = pool;
    pipeline->tuner.cores = gk_workers_count(workers);
    if (gk_turn_init(&pipeline->turn))
        return pipeline;
    free(pipeline);
    return NULL;
}

static void forget_berth(gk_pipeline *pipeline) {
    pipeline->ready = false;
    pipeline->berth = (gk_berth){0};
    pipeline->pinned = NULL;
    pipeline->device = NULL;
    atomic_store(&pipeline->held, 0);
}

static void free_berth(gk_pipeline *pipeline, gk_backend *backend) {
    gk_berth *berth = &pipeline->berth;
    if (pipeline->ready)
        gk_berth_drain(berth, backend);
    for (int i = 0; i < SLOTS; i++) {
        backend->event_free(backend, berth->slots[i].landed);
        backend->event_free(backend, berth->slots[i].returned);
    }
    for (int i = 0; i < HOLDS; i++)
        backend->event_free(backend, berth->holds[i].worked);
    backend->event_free(backend, berth->started);
    backend->stream_free(backend, berth->in);
    backend->stream_free(backend, berth->work);
    backend->stream_free(backend, berth->out);
    backend->release(backend, pipeline->device, 0);
    if (pipeline->pinned)
        gk_pool_give(pipeline->pool, pipeline->pinned);
    forget_berth(pipeline);
}

void gk_pipeline_free(gk_pipeline *pipeline, gk_backend *backend) {
    if (!pipeline)
        return;
    free_berth(pipeline, backend);
    for (int i = 0; i < GK_PIPELINE_STREAMS; i++)
        backend->stream_free(backend, pipeline->streams.all[i]);
    gk_lock_free(&pipeline->turn);
    free(pipeline);
}

static gk_status fill_slot(gk_pipeline *pipeline, gk_backend *backend, int number,
                           gk_error *error) {
    gk_slot *slot = &pipeline->berth.slots[number];
    slot->pinned = pipeline->pinned + (size_t)number * EACH;
    gk_status status = backend->event_new(backend, &slot->landed, error);
    return status == GK_OK ? backend->event_new(backend, &slot->returned, error) : status;
}

static gk_status fill_hold(gk_pipeline *pipeline, gk_backend *backend, int number,
                           gk_error *error) {
    gk_hold *hold = &pipeline->berth.holds[number];
    for (int way = 0; way < GK_WAYS; way++)
        hold->device[way] =
            (char *)pipeline->device + ((size_t)number * GK_WAYS + (size_t)way) * EACH;
    return backend->event_new(backend, &hold->worked, error);
}

/* Before the others: a GPU has eight queues that streams are given in turn, and a stream that waits
   for a product holds up the one it shares one with. */
static gk_status need_streams(gk_pipeline *pipeline, gk_backend *backend, gk_error *error) {
    gk_status status = GK_OK;
    for (int i = 0; i < GK_PIPELINE_STREAMS && status == GK_OK; i++)
        if (!pipeline->streams.all[i])
            status = backend->stream_new(backend, &pipeline->streams.all[i], error);
    return status;
}

static gk_status fill_berth(gk_pipeline *pipeline, gk_backend *backend, gk_error *error) {
    gk_berth *berth = &pipeline->berth;
    gk_status status = backend->event_new(backend, &berth->started, error);
    if (status == GK_OK)
        status = backend->stream_new(backend, &berth->in, error);
    if (status == GK_OK)
        status = backend->stream_new(backend, &berth->work, error);
    if (status == GK_OK)
        status = backend->stream_new(backend, &berth->out, error);
    for (int i = 0; i < SLOTS && status == GK_OK; i++)
        status = fill_slot(pipeline, backend, i, error);
    for (int i = 0; i < HOLDS && status == GK_OK; i++)
        status = fill_hold(pipeline, backend, i, error);
    return status;
}

/* Buffers once a process: they cost milliseconds, and a call has none to spare. */
static gk_status need_berth(gk_pipeline *pipeline, gk_backend *backend, gk_error *error) {
    if (pipeline->ready)
        return GK_OK;
    pipeline->pinned = gk_pool_take(pipeline->pool, PINNED_BYTES);
    if (!pipeline->pinned)
        return gk_fail(error, GK_MEMORY_ERROR, "no pinned memory for staging");
    gk_status status = need_streams(pipeline, backend, error);
    if (status == GK_OK)
        status = backend->allocate(backend, DEVICE_BYTES, 0, &pipeline->device, error);
    if (status == GK_OK)
        atomic_store(&pipeline->held, DEVICE_BYTES);
    if (status == GK_OK)
        status = backend->synchronize(backend, 0, error); /* its stream has it; now all have */
    if (status == GK_OK)
        status = fill_berth(pipeline, backend, error);
    pipeline->ready = status == GK_OK;
    if (status != GK_OK)
        free_berth(pipeline, backend);
    return status;
}

size_t gk_pipeline_bytes(gk_pipeline *pipeline) {
    return atomic_load(&pipeline->held);
}

/* flows ---------------------------------------------------------------------------------------- */

/* In the child of a fork: what a thread that is not here had under way stays undone, and what it
   had half made is made anew. */
static void inherit(gk_pipeline *pipeline) {
    if (pipeline->ready)
        gk_berth_clear(&pipeline->berth);
    else
        forget_berth(pipeline);
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
    free_berth(pipeline, backend);
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

gk_tuner gk_pipeline_tuner(gk_pipeline *pipeline) {
    gk_error ignored;
    gk_status status = take_turn(pipeline, &ignored);
    gk_tuner tuner = pipeline->tuner;
    if (status == GK_OK)
        gk_lock_give(&pipeline->turn);
    return tuner;
}

/* By the setting that its size has been found to be fastest with, or by one that is being tried.
   What is measured has no copies left under way, and no limit on its chunks but the usual one. */
static gk_status run_tuned(gk_pipeline *pipeline, gk_backend *backend, const gk_flow *flow,
                           gk_error *error) {
    gk_direction direction;
    bool counts;
    const size_t bytes = gk_flow_bytes(flow, &direction);
    gk_staging how = gk_tuner_choose(&pipeline->tuner, direction, bytes, &counts);
    counts = counts && flow->chunk >= GK_FLOW_HALF;
    if (flow->chunk < how.chunk)
        how.chunk = flow->chunk;
    double start = gk_seconds();
    gk_status status = gk_passage_run(&pipeline->berth, backend, pipeline->workers, pipeline->pool,
                                      flow, how, counts, error);
    if (counts && status == GK_OK)
        gk_tuner_note(&pipeline->tuner, direction, bytes, gk_seconds() - start);
    return status;
}

gk_status gk_pipeline_run(gk_pipeline *pipeline, gk_backend *backend, const gk_flow *flow,
                          gk_error *error) {
    gk_status status = take_turn(pipeline, error);
    if (status != GK_OK)
        return status;
    status = need_berth(pipeline, backend, error);
    if (status == GK_OK)
        status = run_tuned(pipeline, backend, flow, error);
    gk_lock_give(&pipeline->turn);
    return status;
}
