#include "engine/passage.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "engine/chunks.h"

enum {
    SLOTS = GK_PASSAGE_SLOTS,
    HOLDS = GK_PASSAGE_HOLDS,
    FEW_CHUNKS = 2 * SLOTS, /* of a flow that ends before its threads are in step */
    ITEMS_A_LOOK = 64,      /* after so many of its own the caller's thread looks up */
    SPINS = 2000,           /* looks at what is about to come, before a worker goes to sleep */
};

/* How many chunks have come so far; one worker at a time watches for the next. */
typedef struct gate {
    atomic_size_t passed;
    atomic_bool watched;
} gate;

/* What the workers see of it. They take items in order: round k is of the pieces of chunk k that
   are packed, and of those of chunk k - SLOTS that are unpacked, which had its slot before. */
typedef struct passage {
    gk_berth *berth;
    gk_backend *backend;
    const gk_flow *flow;
    gk_trace *trace;
    gk_chunks chunks;
    gk_stream in, work, out;
    bool past_caches;
    atomic_size_t next;        /* item */
    atomic_size_t done[SLOTS]; /* items of the slot's rounds */
    atomic_size_t issued;      /* chunks whose copies and kernel have been started */
    gate free, back;           /* chunks that may be packed, and that have come back */
    pthread_mutex_t issuing;   /* one chunk after the other */
    pthread_mutex_t lock;      /* of `moved` and the error: the first one stays */
    pthread_cond_t moved;      /* something above, while somebody sleeps */
    atomic_int sleepers;
    atomic_bool failed;
    gk_error error;
} passage;

static gk_slot *slot_of(const passage *run, size_t number) {
    return &run->berth->slots[number % SLOTS];
}

static gk_hold *hold_of(const passage *run, size_t number) {
    return &run->berth->holds[number % HOLDS];
}

/* waiting -------------------------------------------------------------------------------------- */

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    sched_yield();
#endif
}

static void wake_all(passage *run) {
    if (atomic_load(&run->sleepers) == 0)
        return;
    pthread_mutex_lock(&run->lock);
    pthread_cond_broadcast(&run->moved);
    pthread_mutex_unlock(&run->lock);
}

static void fail(passage *run, const gk_error *error) {
    pthread_mutex_lock(&run->lock);
    if (!atomic_exchange(&run->failed, true))
        run->error = *error;
    pthread_cond_broadcast(&run->moved);
    pthread_mutex_unlock(&run->lock);
}

/* What a worker waits for: a count, or that nobody watches for it any more. */
typedef struct event {
    atomic_size_t *counter;
    size_t needed;
    atomic_bool *watched; /* or NULL */
} event;

static bool has_come(const event *of) {
    return atomic_load(of->counter) >= of->needed || (of->watched && !atomic_load(of->watched));
}

/* Whether it has come; false: the passage has failed. */
static bool await(passage *run, event of) {
    for (int i = 0; i < SPINS; i++) {
        if (has_come(&of))
            return true;
        relax();
    }
    pthread_mutex_lock(&run->lock);
    atomic_fetch_add(&run->sleepers, 1);
    while (!has_come(&of) && !atomic_load(&run->failed))
        pthread_cond_wait(&run->moved, &run->lock);
    atomic_fetch_sub(&run->sleepers, 1);
    pthread_mutex_unlock(&run->lock);
    return has_come(&of);
}

static bool await_issue(passage *run, size_t number) {
    return await(run, (event){.counter = &run->issued, .needed = number + 1});
}

/* Whether it writes to slots, or has copies in of its own to be told of: not where results alone go
   straight to where they belong. */
static bool uses_slots(const passage *run) {
    return run->flow->operand_count > 0 || run->chunks.unpacks > 0;
}

/* The copies in of the chunk that had the slot before are through, be it one of another flow's. */
static gk_status watch_free(passage *run, size_t number, gk_error *error) {
    gk_slot *slot = slot_of(run, number);
    if (number >= SLOTS && (!await_issue(run, number - SLOTS) || !run->chunks.stages))
        return GK_OK;
    if (number < SLOTS && !slot->lands)
        return GK_OK;
    slot->lands = false;
    return run->backend->reach(run->backend, slot->landed, error);
}

/* The result of a chunk is in pinned memory. */
static gk_status watch_back(passage *run, size_t number, gk_error *error) {
    if (!await_issue(run, number))
        return GK_OK;
    return run->backend->reach(run->backend, slot_of(run, number)->returned, error);
}

/* Wait until chunk `number` is through a gate: whoever comes first watches, the others look on. */
static gk_status pass_gate(passage *run, gate *at, size_t number,
                           gk_status (*watch)(passage *, size_t, gk_error *), gk_error *error) {
    gk_status status = GK_OK;
    while (atomic_load(&at->passed) <= number && !atomic_load(&run->failed)) {
        if (atomic_exchange(&at->watched, true)) {
            (void)await(run, (event){&at->passed, number + 1, &at->watched});
            continue;
        }
        while (status == GK_OK && atomic_load(&at->passed) <= number &&
               !atomic_load(&run->failed)) {
            status = watch(run, atomic_load(&at->passed), error);
            if (status == GK_OK)
                atomic_fetch_add(&at->passed, 1);
            wake_all(run);
        }
        atomic_store(&at->watched, false);
        wake_all(run);
        if (status != GK_OK)
            return status;
    }
    return GK_OK;
}

/* issuing -------------------------------------------------------------------------------------- */

static char *operand_data(const passage *run, const gk_chunk *at, int number) {
    const gk_stretch *operand = &at->operands[number];
    char *landing = run->flow->landing[number];
    return landing ? landing + gk_stretch_offset(operand)
                   : hold_of(run, at->number)->device[GK_INWARD] + operand->offset;
}

static char *result_data(const passage *run, const gk_chunk *at) {
    char *source = (char *)(uintptr_t)run->flow->source;
    return source ? source + gk_stretch_offset(&at->result)
                  : hold_of(run, at->number)->device[GK_OUTWARD];
}

static gk_status copy_in(passage *run, void *device, const void *host, size_t bytes,
                         gk_error *error) {
    gk_stream stream = run->in;
    size_t step = gk_trace_start(run->trace, stream, GK_TRACE_IN);
    gk_status status =
        run->backend->start_copy_in(run->backend, device, host, bytes, stream, error);
    gk_trace_end(run->trace, stream, step);
    return status;
}

/* What is bundled goes in one copy: the bus stands still between two. */
static gk_status bring_in(passage *run, const gk_chunk *at, gk_error *error) {
    const gk_slot *slot = slot_of(run, at->number);
    const gk_hold *hold = hold_of(run, at->number);
    gk_status status = GK_OK;
    if (run->flow->work && (at->number >= HOLDS || hold->works))
        status = run->backend->wait_event(run->backend, run->in, hold->worked, error);
    if (status == GK_OK && at->bundle > 0)
        status = copy_in(run, hold->device[GK_INWARD], slot->pinned, at->bundle, error);
    for (int i = 0; i < run->flow->operand_count && status == GK_OK; i++) {
        const gk_stretch *operand = &at->operands[i];
        if (run->chunks.twin[i] < i || gk_goes_bundled(&run->chunks, i))
            continue;
        const char *from = slot->pinned + operand->offset;
        if (run->chunks.direct[i])
            from = (const char *)operand->array.data + gk_stretch_offset(operand);
        status = copy_in(run, operand_data(run, at, i), from, operand->bytes, error);
    }
    return status == GK_OK ? run->backend->record(run->backend, slot->landed, run->in, error)
                           : status;
}

static gk_status work_on(passage *run, const gk_chunk *at, gk_error *error) {
    const gk_flow *flow = run->flow;
    gk_backend *backend = run->backend;
    gk_stream stream = run->work;
    gk_array operands[GK_FLOW_OPERANDS], result = {0};
    gk_status status = GK_OK;
    for (int i = 0; i < flow->operand_count; i++)
        operands[i] = gk_stretch_on_device(flow, &at->operands[i],
                                           operand_data(run, at, run->chunks.twin[i]));
    if (flow->has_result)
        result = gk_stretch_on_device(flow, &at->result, result_data(run, at));
    if (flow->operand_count > 0)
        status = backend->wait_event(backend, stream, slot_of(run, at->number)->landed, error);
    if (status == GK_OK && flow->has_result && at->number >= HOLDS)
        status =
            backend->wait_event(backend, stream, slot_of(run, at->number - HOLDS)->returned, error);
    if (status != GK_OK)
        return status;
    size_t step = gk_trace_start(run->trace, stream, GK_TRACE_KERNEL);
    status = flow->work(flow->context, stream, operands, &result, gk_chunk_first(&run->chunks, at),
                        error);
    gk_trace_end(run->trace, stream, step);
    return status == GK_OK
               ? backend->record(backend, hold_of(run, at->number)->worked, stream, error)
               : status;
}

static gk_status send_out(passage *run, const gk_chunk *at, gk_error *error) {
    gk_backend *backend = run->backend;
    gk_stream stream = run->out;
    const gk_slot *slot = slot_of(run, at->number);
    const char *from = result_data(run, at);
    char *to = slot->pinned + run->chunks.outward;
    gk_lines lines = {.count = 1, .bytes = at->result.bytes};
    gk_status status = GK_OK;
    if (run->flow->work)
        status = backend->wait_event(backend, stream, hold_of(run, at->number)->worked, error);
    if (run->chunks.is_result_direct) {
        to = (char *)at->result.array.data + gk_stretch_offset(&at->result);
        if (run->flow->parts > 0)
            (void)gk_as_lines(&at->result.array, &lines);
    }
    if (status != GK_OK)
        return status;
    size_t step = gk_trace_start(run->trace, stream, GK_TRACE_OUT);
    status = backend->start_lines_out(backend, to, from, &lines, stream, error);
    gk_trace_end(run->trace, stream, step);
    return status == GK_OK ? backend->record(backend, slot->returned, stream, error) : status;
}

static gk_status issue(passage *run, size_t number, gk_error *error) {
    gk_chunk at;
    gk_status status = GK_OK;
    gk_chunk_view(&run->chunks, number, &at);
    if (run->flow->operand_count > 0)
        status = bring_in(run, &at, error);
    if (status == GK_OK && run->flow->work)
        status = work_on(run, &at, error);
    if (status == GK_OK && run->flow->has_result)
        status = send_out(run, &at, error);
    return status;
}

/* items ---------------------------------------------------------------------------------------- */

/* What a round has, if there is a chunk to pack and one to unpack. */
static size_t items_of_round(const passage *run) {
    return run->chunks.packs + run->chunks.unpacks;
}

/* Items of the slot's rounds up to that of this chunk, the first of which unpacks nothing. */
static size_t needed(const passage *run, size_t number) {
    return items_of_round(run) * (number / SLOTS) + run->chunks.packs;
}

static bool is_packed(passage *run, size_t number) {
    return atomic_load(&run->done[number % SLOTS]) >= needed(run, number);
}

/* Whether the next chunk is packed, and nothing has failed. */
static bool is_next_ready(passage *run) {
    const size_t number = atomic_load(&run->issued);
    return number < run->chunks.count && is_packed(run, number) && !atomic_load(&run->failed);
}

static gk_status issue_next(passage *run, gk_error *error) {
    const size_t number = atomic_load(&run->issued);
    gk_status status = issue(run, number, error);
    if (status == GK_OK)
        atomic_store(&run->issued, number + 1);
    else /* before anybody else starts it again: a trace has no room for that */
        fail(run, error);
    wake_all(run);
    return status;
}

/* Of few chunks nobody waits for who is at the driver, and goes on with packing: cores that were
   idle begin with calls of 50 to 100 us. Of many the memory is what all wait for, and one less at
   it is no loss. */
static bool may_issue(passage *run) {
    if (run->chunks.count > FEW_CHUNKS)
        return pthread_mutex_lock(&run->issuing) == 0;
    return pthread_mutex_trylock(&run->issuing) == 0;
}

/* Start what is packed, in the order of the chunks: whoever ends a round does it for all. What is
   packed meanwhile by those who did not wait is looked for once more after the lock is given. */
static gk_status issue_ready(passage *run, gk_error *error) {
    gk_status status = GK_OK;
    while (status == GK_OK && is_next_ready(run)) {
        if (!may_issue(run))
            return GK_OK;
        while (status == GK_OK && is_next_ready(run))
            status = issue_next(run, error);
        pthread_mutex_unlock(&run->issuing);
        atomic_thread_fence(memory_order_seq_cst);
    }
    return status;
}

static gk_status unpack(passage *run, size_t number, size_t piece, gk_error *error) {
    gk_chunk at;
    gk_status status = pass_gate(run, &run->back, number, watch_back, error);
    if (status != GK_OK || atomic_load(&run->failed))
        return status;
    gk_chunk_view(&run->chunks, number, &at);
    gk_unpack_piece(&run->chunks, &at, piece, slot_of(run, number)->pinned);
    return GK_OK;
}

/* Not before the chunk that had the slot is on its way: what is done in this round is none of that.
 */
static gk_status pack(passage *run, size_t number, size_t piece, gk_error *error) {
    gk_chunk at;
    gk_status status = GK_OK;
    if (uses_slots(run))
        status = pass_gate(run, &run->free, number, watch_free, error);
    else if (number >= SLOTS)
        (void)await_issue(run, number - SLOTS);
    if (status != GK_OK || !run->chunks.stages || atomic_load(&run->failed))
        return status;
    gk_chunk_view(&run->chunks, number, &at);
    gk_pack_piece(&run->chunks, &at, piece, slot_of(run, number)->pinned, run->past_caches);
    return GK_OK;
}

static gk_status do_item(passage *run, size_t round, size_t item, gk_error *error) {
    gk_status status;
    if (item < run->chunks.unpacks && round >= SLOTS)
        status = unpack(run, round - SLOTS, item, error);
    else if (item >= run->chunks.unpacks && round < run->chunks.count)
        status = pack(run, round, item - run->chunks.unpacks, error);
    else
        return GK_OK; /* there is no such item in the first rounds and the last */
    if (status != GK_OK || atomic_load(&run->failed))
        return status;
    size_t done = atomic_fetch_add(&run->done[round % SLOTS], 1) + 1;
    return round < run->chunks.count && done == needed(run, round) ? issue_ready(run, error)
                                                                   : GK_OK;
}

/* Only the caller's own thread, which is worker 0, can ask the user. */
static bool is_interrupted(const passage *run, int worker, size_t done, gk_error *error) {
    return worker == 0 && done % ITEMS_A_LOOK == ITEMS_A_LOOK - 1 &&
           gk_interrupted(run->flow->interruption, error);
}

/* What a worker does: take items until there are none. */
static void drive(void *context, int worker) {
    passage *run = context;
    gk_error error = {0};
    gk_status status = GK_OK;
    size_t each = items_of_round(run),
           rounds = run->chunks.count + (run->chunks.unpacks > 0 ? SLOTS : 0);
    for (size_t done = 0; status == GK_OK && !atomic_load(&run->failed); done++) {
        size_t number = atomic_fetch_add(&run->next, 1);
        if (number >= each * rounds)
            break;
        status = do_item(run, number / each, number % each, &error);
        if (status == GK_OK && is_interrupted(run, worker, done, &error))
            status = error.status;
    }
    if (status != GK_OK)
        fail(run, &error);
}

/* the whole ------------------------------------------------------------------------------------ */

/* A single chunk goes by one stream: there is nothing to overlap, and nothing to wait for. */
static void choose_streams(passage *run) {
    const gk_berth *berth = run->berth;
    bool alone = run->chunks.count == 1;
    run->in = alone ? berth->work : berth->in;
    run->work = berth->work;
    run->out = alone ? berth->work : berth->out;
}

/* Begin after what the caller's stream holds, so that memory allocated there is there. */
static gk_status start_after(passage *run, gk_error *error) {
    gk_backend *backend = run->backend;
    const gk_flow *flow = run->flow;
    gk_event *started = run->berth->started;
    bool lands = false;
    for (int i = 0; i < flow->operand_count; i++)
        lands |= flow->landing[i] != NULL;
    if (!lands && !flow->work && !flow->source)
        return GK_OK;
    gk_status status = backend->record(backend, started, flow->after, error);
    if (status == GK_OK && lands)
        status = backend->wait_event(backend, run->in, started, error);
    if (status == GK_OK && flow->work)
        status = backend->wait_event(backend, run->work, started, error);
    if (status == GK_OK && flow->source)
        status = backend->wait_event(backend, run->out, started, error);
    return status;
}

/* The caller's host memory is in use until the last chunk is through; else the copies that are
   under way are noted, and the caller's stream goes on after them. */
static gk_status finish(passage *run, bool settles, gk_error *error) {
    gk_backend *backend = run->backend;
    const gk_flow *flow = run->flow;
    const gk_slot *last = slot_of(run, run->chunks.count - 1);
    const gk_hold *hold = hold_of(run, run->chunks.count - 1);
    for (int i = 0; i < flow->operand_count; i++)
        settles |= run->chunks.direct[i];
    for (size_t i = 0; i < SLOTS && i < run->chunks.count && uses_slots(run); i++)
        slot_of(run, i)->lands = flow->operand_count > 0 && !settles && !flow->has_result;
    for (size_t i = 0; i < HOLDS && i < run->chunks.count && flow->work; i++)
        hold_of(run, i)->works = !flow->has_result;
    if (flow->has_result)
        return backend->reach(backend, last->returned, error);
    gk_status status = settles ? backend->reach(backend, last->landed, error) : GK_OK;
    if (status == GK_OK)
        status = backend->wait_event(backend, flow->after, flow->work ? hold->worked : last->landed,
                                     error);
    return status;
}

static gk_status pass(passage *run, gk_workers *workers, gk_staging how, bool settles,
                      gk_error *error) {
    gk_status status = start_after(run, error);
    if (status != GK_OK)
        return status;
    size_t items = items_of_round(run) * run->chunks.count;
    int most = items < (size_t)how.workers ? (int)items : how.workers; /* have something to do */
    gk_workers_run(workers, most, drive, run);
    if (atomic_load(&run->failed))
        return (*error = run->error).status;
    status = finish(run, settles, error);
    if (status == GK_OK && run->trace)
        status = gk_trace_read(run->trace, run->flow->busy, error);
    return status;
}

void gk_berth_drain(gk_berth *berth, gk_backend *backend) {
    gk_error ignored; /* fails only after a fault, which the next call reports */
    (void)backend->synchronize(backend, berth->in, &ignored);
    (void)backend->synchronize(backend, berth->work, &ignored);
    (void)backend->synchronize(backend, berth->out, &ignored);
    gk_berth_clear(berth);
}

void gk_berth_clear(gk_berth *berth) {
    for (int i = 0; i < SLOTS; i++)
        berth->slots[i].lands = false;
    for (int i = 0; i < HOLDS; i++)
        berth->holds[i].works = false;
}

gk_status gk_passage_run(gk_berth *berth, gk_backend *backend, gk_workers *workers, gk_pool *pool,
                         const gk_flow *flow, gk_staging how, bool settles, gk_error *error) {
    passage run = {.berth = berth,
                   .backend = backend,
                   .flow = flow,
                   .past_caches = how.past_caches,
                   .issuing = PTHREAD_MUTEX_INITIALIZER,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .moved = PTHREAD_COND_INITIALIZER};
    gk_status status = GK_OK;
    gk_chunks_plan(&run.chunks, flow, pool, how.chunk);
    if (run.chunks.most > GK_PASSAGE_BYTES)
        return gk_fail(error, GK_VALUE_ERROR, "a chunk of %zu bytes is more than its buffers hold",
                       run.chunks.most);
    choose_streams(&run);
    if (flow->busy)
        status = gk_trace_new(backend, run.in, run.chunks.count * (size_t)(flow->operand_count + 2),
                              &run.trace, error);
    if (status == GK_OK)
        status = pass(&run, workers, how, settles, error);
    if (status != GK_OK)
        gk_berth_drain(berth, backend);
    gk_trace_free(run.trace);
    pthread_cond_destroy(&run.moved);
    pthread_mutex_destroy(&run.lock);
    pthread_mutex_destroy(&run.issuing);
    return status;
}
