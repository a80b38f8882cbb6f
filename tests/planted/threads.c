/* What threads share, hammered by several of them at once, for ThreadSanitizer to look at:
     threads workers | pool | mailboxes | pipeline | parts | events | launches | allocations
   prints "right" where everybody has found what is theirs. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/workers.h"
#include "device/registry.h"
#include "device/sim/backend.h"
#include "engine/mailbox.h"
#include "engine/passage.h"
#include "engine/pipeline.h"
#include "engine/pool.h"
#include "sim/sim.h"

enum {
    THREADS = 4,
    WORKERS = 6,
    MIB = 1 << 20,
    LANES = 128 * MIB, /* room for the staging memory of the workers */
    ELEMENTS = 200000,
    JOBS = 1000,
    BLOCKS = 48,
    BLOCK = 128, /* so many of them that a launch is spread over the cores */
};

static gk_backend *device;
static gk_workers *workers;
static gk_pool *pool;
static gk_mailboxes *mailboxes;
static gk_pipeline *pipeline;
static gk_event *shared_event;
static pthread_barrier_t together;
static atomic_bool wrong;

static void need(bool condition, const char *what) {
    if (condition || atomic_exchange(&wrong, true))
        return;
    printf("not so: %s\n", what);
}

/* Time for others to come in between, where nothing keeps them out. */
static void wait_a_little(int number) {
    usleep((useconds_t)(1 + number * 7));
}

/* the kernel ----------------------------------------------------------------------------------- */

static void add_one(void **arguments) {
    atomic_uint *cell = *(atomic_uint **)arguments[0];
    atomic_fetch_add(cell, 1);
}

static const unsigned sizes[] = {sizeof(void *), 0};
const gk_sim_body gk_sim_bodies_threads[] = {{"add_one", add_one, sizes}, {0}};

/* what each thread does ------------------------------------------------------------------------ */

typedef struct work {
    int runs[WORKERS];
} work;

static int jobs; /* under no lock of its own: one job runs at a time */

static void count_runs(void *context, int worker) {
    work *of = context;
    of->runs[worker]++;
    if (worker == 0)
        jobs++;
}

static void use_workers(int number) {
    work own = {0};
    (void)number;
    for (int i = 0; i < JOBS; i++)
        gk_workers_run(workers, GK_ALL_WORKERS, count_runs, &own);
    for (int i = 0; i < WORKERS; i++)
        need(own.runs[i] == JOBS, "every worker runs every job once");
}

/* What a thread writes where only it may write, it finds again. */
static void mark(char *memory, size_t bytes, int number) {
    memory[0] = (char)number;
    memory[bytes - 1] = (char)number;
}
static bool is_marked(const char *memory, size_t bytes, int number) {
    return memory[0] == number && memory[bytes - 1] == number;
}

static void use_pool(int number) {
    for (int i = 0; i < 60; i++) {
        size_t bytes = (size_t)(1 + (i + number) % 3) * 2 * MIB;
        wait_a_little(number);
        char *memory = gk_pool_take(pool, bytes);
        need(memory != NULL, "the pool has memory");
        if (!memory)
            return;
        mark(memory, bytes, number);
        wait_a_little(number);
        need(gk_pool_holds(pool, memory, bytes), "the pool knows what it gave");
        if (i % 16 == 0)
            gk_pool_trim(pool);
        if (i % 16 == 8)
            need(gk_pool_describe(pool).used >= bytes, "what is used is counted");
        need(is_marked(memory, bytes, number), "memory of the pool is one thread's");
        gk_pool_give(pool, memory);
    }
}

static void use_mailboxes(int number) {
    for (int i = 0; i < 1000; i++) {
        wait_a_little(number);
        gk_mailbox *box = gk_mailbox_take(mailboxes, device);
        need(box != NULL, "there is a mailbox");
        if (!box)
            return;
        mark(box->memory, GK_MAILBOX_BYTES, number);
        if (i % 16 == 0)
            gk_mailboxes_trim(mailboxes, device);
        need(is_marked(box->memory, GK_MAILBOX_BYTES, number), "a mailbox is one thread's");
        gk_mailbox_give(mailboxes, box);
    }
}

static gk_status copy_chunk(void *context, gk_stream stream, const gk_array *operands,
                            gk_array *result, size_t first, gk_error *error) {
    const bool *fails = context;
    (void)first;
    if (*fails)
        return gk_fail(error, GK_VALUE_ERROR, "as was asked for");
    return device->copy_within(device, result->data, operands[0].data, gk_bytes(result), stream,
                               error);
}

static gk_array floats(float *data) {
    gk_array array = {.data = data, .dtype = GK_float32, .ndim = 1};
    array.shape[0] = ELEMENTS;
    array.strides[0] = sizeof *data;
    return array;
}

static void use_pipeline(int number) {
    float *from = malloc(ELEMENTS * sizeof *from), *to = calloc(ELEMENTS, sizeof *to);
    bool fails = false;
    gk_flow flow = {.count = ELEMENTS,
                    .chunk = 1 << 17,
                    .operand_count = 1,
                    .operands = {floats(from)},
                    .work = copy_chunk,
                    .context = &fails,
                    .has_result = true,
                    .unpacks = true,
                    .result = floats(to)};
    for (int i = 0; i < 4; i++) {
        gk_error error = {0};
        fails = true;
        need(gk_pipeline_run(pipeline, device, &flow, &error) == GK_VALUE_ERROR, error.text);
        fails = false;
        for (int j = 0; j < ELEMENTS; j++)
            from[j] = (float)(number * 16 + i);
        need(gk_pipeline_run(pipeline, device, &flow, &error) == GK_OK, error.text);
        need(memcmp(from, to, ELEMENTS * sizeof *to) == 0, "all chunks come through");
        need(gk_pipeline_bytes(pipeline) < LANES, "the lanes hold what they need");
        if (number == 1 && i == 1)
            gk_pipeline_trim(pipeline, device);
    }
    free(from);
    free(to);
}

/* Elements of a part; and how a flow in parts looks to whoever packs or unpacks one. */
enum { PART = 1000, PARTS = 2 * GK_PASSAGE_SLOTS - 1 };
static void view_part(const void *context, size_t number, gk_array *operands, gk_array *result) {
    const gk_flow *flow = ((const gk_flow *const *)context)[1];
    operands[0] = flow->operands[0];
    *result = flow->result;
    operands[0].shape[0] = result->shape[0] = PART;
    operands[0].data = (float *)flow->operands[0].data + number * PART;
    result->data = (float *)flow->result.data + number * PART;
    if (number == 0) /* a worker that is kept from its piece while the others go on */
        usleep(2000);
}

static gk_status copy_part(void *context, gk_stream stream, const gk_array *operands,
                           gk_array *result, size_t number, gk_error *error) {
    return copy_chunk(*(void **)context, stream, operands, result, number, error);
}

/* From one chunk to some more than a pipeline has slots, so that rounds only pack, or only unpack, or do both. */
static void use_parts(int number) {
    float from[PART * PARTS], to[PART * PARTS];
    bool fails = false;
    const gk_flow *self = NULL;
    const void *context[2] = {&fails, NULL};
    gk_flow flow = {.part = view_part,
                    .operand_count = 1,
                    .operands = {floats(from)},
                    .work = copy_part,
                    .context = context,
                    .has_result = true,
                    .unpacks = true,
                    .result = floats(to)};
    self = &flow;
    context[1] = self;
    for (int i = 0; i < 40; i++) {
        gk_error error = {0};
        const size_t parts = 1 + (size_t)i % PARTS, bytes = parts * PART * sizeof *from;
        for (size_t j = 0; j < PART * PARTS; j++)
            from[j] = (float)(number * 64 + i), to[j] = -1.0F;
        flow.parts = parts;
        flow.operands[0].shape[0] = flow.result.shape[0] = (int64_t)(parts * PART);
        need(gk_pipeline_run(pipeline, device, &flow, &error) == GK_OK, error.text);
        need(memcmp(from, to, bytes) == 0, "all parts come through");
        need(parts == PARTS || to[parts * PART] == -1.0F, "and nothing else");
    }
}

static void use_events(int number) {
    gk_error error = {0};
    double seconds;
    for (int i = 0; i < 300; i++) {
        wait_a_little(number);
        if (number % 2) {
            need(device->record(device, shared_event, 0, &error) == GK_OK, error.text);
            need(device->wait_event(device, 0, shared_event, &error) == GK_OK, error.text);
        } else {
            need(device->elapsed(device, shared_event, shared_event, &seconds, &error) == GK_OK,
                 error.text);
            need(device->reach(device, shared_event, &error) == GK_OK, error.text);
        }
    }
}

static void use_launches(int number) {
    gk_row row = {.variant = "add_one", .symbol = "add_one"};
    gk_error error = {0};
    void *cell;
    gk_stream stream;
    wait_a_little(number);
    need(device->stream_new(device, &stream, &error) == GK_OK, error.text);
    need(device->allocate(device, sizeof(unsigned), stream, &cell, &error) == GK_OK, error.text);
    need(device->zero(device, cell, sizeof(unsigned), stream, &error) == GK_OK, error.text);
    void *arguments[] = {&cell};
    gk_launch launch = {.row = &row,
                        .grid = {BLOCKS, 1, 1},
                        .block = {BLOCK, 1, 1},
                        .arguments = arguments,
                        .stream = stream};
    unsigned sum = 0;
    for (int i = 0; i < 12; i++) {
        gk_stream other;
        wait_a_little(number);
        need(device->launch(device, &launch, &error) == GK_OK, error.text);
        need(device->stream_new(device, &other, &error) == GK_OK, error.text);
        device->stream_free(device, other);
    }
    need(device->copy_out(device, &sum, cell, sizeof sum, stream, &error) == GK_OK, error.text);
    need(sum == 12 * BLOCKS * BLOCK, "every thread of every block has run");
    device->release(device, cell, stream);
    device->stream_free(device, stream);
}

/* Each frees what the thread before it has allocated. */
static void use_allocations(int number) {
    static _Atomic(void *) shelf[THREADS];
    gk_error error = {0};
    for (int i = 0; i < 300; i++) {
        void *made;
        wait_a_little(number);
        need(device->allocate(device, 1000, 0, &made, &error) == GK_OK, error.text);
        need(device->place(device, made) == 0, "it is memory of the device");
        device->release(device, atomic_exchange(&shelf[(number + i) % THREADS], made), 0);
        if (i % 64 == 0)
            need(device->live_bytes(device) < MIB, "what was freed is not counted for long");
    }
    pthread_barrier_wait(&together);
    device->release(device, atomic_exchange(&shelf[number], NULL), 0);
}

/* all at once ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*use)(int number);
} uses[] = {
    {"workers", use_workers},         {"pool", use_pool},     {"mailboxes", use_mailboxes},
    {"pipeline", use_pipeline},       {"parts", use_parts},   {"events", use_events},
    {"launches", use_launches},
    {"allocations", use_allocations},
};
enum { USES = sizeof uses / sizeof uses[0] };

typedef struct hammer {
    pthread_t thread;
    int number;
    void (*use)(int number);
} hammer;

static void *swing(void *argument) {
    hammer *self = argument;
    pthread_barrier_wait(&together);
    self->use(self->number);
    return NULL;
}

static void hammer_all(void (*use)(int number)) {
    hammer hammers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        hammers[i] = (hammer){.number = i, .use = use};
        need(pthread_create(&hammers[i].thread, NULL, swing, &hammers[i]) == 0, "a thread starts");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(hammers[i].thread, NULL);
}

static bool open_all(void) {
    gk_error error = {0};
    if (gk_backend_sim_open(&device, 0, &error) != GK_OK ||
        device->event_new(device, &shared_event, &error) != GK_OK ||
        device->record(device, shared_event, 0, &error) != GK_OK)
        return false;
    workers = gk_workers_new(WORKERS);
    pool = workers ? gk_pool_new(device, workers, LANES) : NULL;
    mailboxes = pool ? gk_mailboxes_new(pool) : NULL;
    pipeline = pool ? gk_pipeline_new(workers, pool) : NULL;
    pthread_barrier_init(&together, NULL, THREADS);
    return mailboxes && pipeline;
}

static void close_all(void) {
    gk_pipeline_free(pipeline, device);
    gk_mailboxes_free(mailboxes, device);
    need(gk_pool_describe(pool).used == 0, "all pinned memory is given back");
    gk_pool_close(pool);
    gk_workers_free(workers);
    device->event_free(device, shared_event);
    need(device->live_bytes(device) == 0, "all device memory is given back");
    device->close(device);
    pthread_barrier_destroy(&together);
}

int main(int count, char **arguments) {
    need(open_all(), "everything opens");
    for (int i = 0; i < USES && !atomic_load(&wrong); i++)
        if (count < 2 || strcmp(arguments[1], uses[i].name) == 0)
            hammer_all(uses[i].use);
    if (atomic_load(&wrong))
        return 1;
    close_all();
    if (!atomic_load(&wrong))
        puts("right");
    return atomic_load(&wrong);
}
