/* matmul from host arrays: by panels, so that one comes in, one is computed and one goes out at a
   time, and that a product or a stack that is larger than the device goes through it. A panel is a
   part of a stack along one of its axes, or rows of one product, or where these do not fit columns
   of it too. */
#include "engine/pipeline.h"
#include "engine/pool.h"
#include "engine/transfer.h"
#include "ops/matmul.h"

enum {
    RING = 3,        /* panels under way: one coming in, one computed, one going out */
    PANELS = 4,      /* of what fits: enough to overlap, few enough to stay large */
    PANEL_ROWS = 128 /* heights are a multiple of it, the tile of most kernels */
};

/* Device memory for a part of an operand or of the result, and what its next user waits for. */
typedef struct slot {
    void *memory;
    gk_array part;  /* of the host array, that it holds; no axes: none */
    gk_event *used; /* the product that reads or writes it is computed */
    gk_event *sent; /* of the result: it has left */
} slot;

enum { A, B, C, SIDES };
typedef struct side {
    gk_array host; /* of 2 axes or more */
    int slots, at;
    slot ring[RING];
} side;

typedef struct product {
    gk_call *call;
    side sides[SIDES];
    int axes;              /* of the stack */
    int axis;              /* panels are cut along it; those before it are taken one by one */
    int64_t width;         /* indices of it a panel */
    int64_t rows, columns; /* of a panel; fewer than all only where `axis` is behind the stack's */
    gk_pipeline_streams streams;
} product;

/* Where a panel begins. */
typedef struct place {
    int64_t at[GK_MAX_DIMENSIONS], row, column;
} place;

static gk_array as_matrix(const gk_array *vector, bool is_row) {
    gk_array matrix = *vector;
    if (vector->ndim >= 2)
        return matrix;
    matrix.ndim = 2;
    matrix.shape[0] = is_row ? 1 : vector->shape[0];
    matrix.shape[1] = is_row ? vector->shape[0] : 1;
    matrix.strides[0] = vector->strides[0];
    matrix.strides[1] = is_row ? vector->strides[0] : (int64_t)gk_dtype_size(vector->dtype);
    return matrix;
}

/* parts -----------------------------------------------------------------------------------------
 */

static void narrow(gk_array *part, int axis, int64_t first, int64_t length) {
    int64_t left = part->shape[axis] - first;
    part->data = (char *)part->data + first * part->strides[axis];
    part->shape[axis] = length < left ? length : left;
}

static gk_array part_of(const product *of, const side *whole, const place *from) {
    gk_array part = whole->host;
    for (int i = 0; i <= of->axis && i < of->axes; i++) {
        int own = gk_own_axis(&part, of->axes, i);
        if (own >= 0 && part.shape[own] > 1)
            narrow(&part, own, from->at[i], i < of->axis ? 1 : of->width);
    }
    if (whole != &of->sides[B])
        narrow(&part, part.ndim - 2, from->row, of->rows);
    if (whole != &of->sides[A])
        narrow(&part, part.ndim - 1, from->column, of->columns);
    return part;
}

/* The place of the next panel; false behind the last one. */
static bool advance(const product *of, place *at) {
    const gk_array *c = &of->sides[C].host;
    if ((at->row += of->rows) < c->shape[c->ndim - 2])
        return true;
    at->row = 0;
    if ((at->column += of->columns) < c->shape[c->ndim - 1])
        return true;
    at->column = 0;
    for (int i = of->axis < of->axes ? of->axis : of->axes - 1; i >= 0; i--) {
        if ((at->at[i] += i < of->axis ? 1 : of->width) < c->shape[i])
            return true;
        at->at[i] = 0;
    }
    return false;
}

/* The part on the device: a host array that lies by columns is not gathered, but taken so. */
static gk_array device_part(const gk_array *host, void *data) {
    gk_array part = *host;
    bool exchanged = gk_lies_by_columns(host);
    part.data = data;
    part.place = GK_DEVICE;
    part.swapped = false;
    if (exchanged)
        gk_exchange_last(&part);
    gk_make_contiguous(&part);
    if (exchanged)
        gk_exchange_last(&part);
    return part;
}

/* how large panels are --------------------------------------------------------------------------
 */

/* Whether panels along the stack have parts of their own of the operand. */
static bool moves(const product *of, const side *operand) {
    for (int i = 0; i <= of->axis && i < of->axes; i++) {
        int own = gk_own_axis(&operand->host, of->axes, i);
        if (own >= 0 && operand->host.shape[own] > (i < of->axis ? 1 : of->width))
            return true;
    }
    return false;
}

static void count_slots(product *of) {
    bool by_rows = of->rows < of->sides[C].host.shape[of->sides[C].host.ndim - 2];
    of->sides[A].slots = by_rows || moves(of, &of->sides[A]) ? RING : 1;
    of->sides[B].slots = moves(of, &of->sides[B]) ? RING : 1;
    of->sides[C].slots = RING;
}

static size_t slot_bytes(const product *of, const side *whole) {
    const place first = {0};
    gk_array part = part_of(of, whole, &first);
    return gk_bytes(&part);
}

static size_t bytes_needed(product *of) {
    size_t bytes = 0;
    count_slots(of);
    for (side *each = of->sides; each < of->sides + SIDES; each++)
        bytes += (size_t)each->slots * slot_bytes(of, each);
    return bytes;
}

static int64_t share(int64_t whole, int64_t parts) {
    return (whole + parts - 1) / parts;
}

static int64_t halve(int64_t length) {
    int64_t half = share(length / 2, PANEL_ROWS) * PANEL_ROWS;
    return half < length ? half : (length + 1) / 2;
}

/* False where panels are as small as they can be. */
static bool shrink(product *of) {
    if (of->axis < of->axes && of->width > 1)
        of->width = share(of->width, 2);
    else if (of->axis < of->axes)
        of->width = ++of->axis < of->axes ? of->sides[C].host.shape[of->axis] : 1;
    else if (of->rows == 1 && of->columns == 1)
        return false;
    else if (of->rows > PANEL_ROWS || of->columns == 1)
        of->rows = halve(of->rows);
    else
        of->columns = halve(of->columns);
    return true;
}

/* Along the stack's first axes, and where these are too short along rows, until there are enough
   panels to overlap; smaller ones as long as they do not fit. */
static void plan(product *of, size_t limit) {
    const gk_array *c = &of->sides[C].host;
    int64_t wanted = PANELS;
    of->rows = c->shape[c->ndim - 2];
    of->columns = c->shape[c->ndim - 1];
    for (of->axis = 0; of->axis < of->axes; of->axis++) {
        of->width = share(c->shape[of->axis], wanted);
        if (of->width > 1 || c->shape[of->axis] == wanted)
            break;
        wanted = share(wanted, c->shape[of->axis]);
    }
    if (of->axis == of->axes && (wanted == PANELS || moves(of, &of->sides[A]))) {
        int64_t high = share(share(of->rows, wanted), PANEL_ROWS) * PANEL_ROWS;
        of->rows = high < of->rows ? high : of->rows;
    }
    while (limit && bytes_needed(of) > limit && shrink(of))
        ;
}

/* memory ----------------------------------------------------------------------------------------
 */

static gk_status make_slots(product *of, side *whole) {
    gk_call *call = of->call;
    gk_backend *backend = call->backend;
    size_t bytes = slot_bytes(of, whole);
    gk_status status = GK_OK;
    for (int i = 0; i < whole->slots && status == GK_OK; i++) {
        slot *made = &whole->ring[i];
        status = gk_call_temporary(call, bytes, &made->memory);
        if (status == GK_OK)
            status = backend->event_new(backend, &made->used, &call->error);
        if (status == GK_OK && whole == &of->sides[C])
            status = backend->event_new(backend, &made->sent, &call->error);
    }
    return status;
}

static gk_status make_rings(product *of) {
    gk_call *call = of->call;
    gk_backend *backend = call->backend;
    gk_status status = GK_OK;
    count_slots(of);
    for (side *each = of->sides; each < of->sides + SIDES && status == GK_OK; each++)
        status = make_slots(of, each);
    /* The memory is there for the call's stream; the others have to pass it first. */
    for (int i = 0; i < GK_PIPELINE_STREAMS && status == GK_OK; i++)
        status = backend->wait(backend, of->streams.all[i], call->stream, &call->error);
    return status;
}

static void free_rings(product *of) {
    gk_backend *backend = of->call->backend;
    gk_error ignored;
    for (int i = 0; i < GK_PIPELINE_STREAMS; i++)
        (void)backend->synchronize(backend, of->streams.all[i], &ignored);
    for (side *each = of->sides; each < of->sides + SIDES; each++)
        for (int i = 0; i < RING; i++) {
            slot *gone = &each->ring[i];
            backend->event_free(backend, gone->used);
            backend->event_free(backend, gone->sent);
            gone->used = gone->sent = NULL;
            gone->part.ndim = 0;
        }
}

/* the way of a panel ----------------------------------------------------------------------------
 */

/* An upload that begins when the stream `gate` lets it, and that `gate` then waits for. */
static gk_status bring(product *of, const gk_array *host, void *device) {
    gk_call upload = gk_call_part(of->call, of->streams.gate);
    gk_array lying = *host;
    if (gk_lies_by_columns(host))
        gk_exchange_last(&lying);
    gk_status status = gk_upload(&upload, &lying, device);
    gk_call_end(&upload);
    if (status != GK_OK)
        of->call->error = upload.error;
    return status;
}

static slot *current(side *whole) {
    return &whole->ring[whole->at];
}

static slot *next(side *whole) {
    whole->at = (whole->at + 1) % whole->slots;
    return current(whole);
}

/* The operand's part for a panel; there already where it is that of the panel before. */
static gk_status fetch(product *of, side *operand, const place *at, gk_array *there) {
    gk_backend *backend = of->call->backend;
    gk_array part = part_of(of, operand, at);
    slot *on = current(operand);
    gk_status status = GK_OK;
    if (on->part.data != part.data || !gk_same_shape(&on->part, &part)) {
        on = next(operand);
        status = backend->wait_event(backend, of->streams.gate, on->used, &of->call->error);
        if (status == GK_OK)
            status = bring(of, &part, on->memory);
        on->part = part;
    }
    *there = device_part(&part, on->memory);
    return status;
}

static gk_status compute(product *of, const gk_array *operands, gk_array *c) {
    gk_call call = gk_call_part(of->call, of->streams.compute);
    gk_backend *backend = call.backend;
    slot *on = current(&of->sides[C]);
    gk_status status = backend->wait(backend, call.stream, of->streams.gate, &call.error);
    if (status == GK_OK)
        status = backend->wait_event(backend, call.stream, on->sent, &call.error);
    if (status == GK_OK)
        status = gk_run_matmul(gk_op_matmul, &call, operands, c);
    of->call->ran = call.ran; /* a profile names it */
    gk_call_end(&call);
    for (side *each = of->sides; each < of->sides + SIDES && status == GK_OK; each++)
        status = backend->record(backend, current(each)->used, call.stream, &call.error);
    if (status != GK_OK)
        of->call->error = call.error;
    return status;
}

static gk_status send(product *of, const gk_array *c, const gk_array *host) {
    gk_call *call = of->call;
    gk_backend *backend = call->backend;
    gk_stream out = of->streams.out;
    slot *on = current(&of->sides[C]);
    size_t bytes = gk_bytes(host);
    gk_status status = backend->wait_event(backend, out, on->used, &call->error);
    /* A profile has it measured as a flow: a copy that nobody waits for tells no time. */
    if (status == GK_OK && !call->phases && gk_is_contiguous(host) &&
        gk_pool_holds(call->device->pool, host->data, bytes)) {
        status = backend->start_copy_out(backend, host->data, c->data, bytes, out, &call->error);
    } else if (status == GK_OK) {
        gk_flow flow = {
            .count = gk_count(host), .has_result = true, .result = *host, .source = c->data};
        gk_stream before = call->stream;
        call->stream = out;
        status = gk_call_flow(call, &flow);
        call->stream = before;
    }
    return status == GK_OK ? backend->record(backend, on->sent, out, &call->error) : status;
}

static gk_status run_panel(product *of, const place *at) {
    gk_array operands[2];
    gk_array host = part_of(of, &of->sides[C], at),
             c = device_part(&host, next(&of->sides[C])->memory);
    gk_status status = fetch(of, &of->sides[B], at, &operands[1]);
    if (status == GK_OK)
        status = fetch(of, &of->sides[A], at, &operands[0]);
    if (status == GK_OK)
        status = compute(of, operands, &c);
    if (status == GK_OK)
        status = send(of, &c, &host);
    if (status == GK_OK && gk_interrupted(of->call->interruption, &of->call->error))
        status = GK_INTERRUPTED;
    return status;
}

static gk_status multiply(product *of) {
    gk_backend *backend = of->call->backend;
    place at = {0};
    gk_status status = make_rings(of);
    if (status == GK_OK)
        do
            status = run_panel(of, &at);
        while (status == GK_OK && advance(of, &at));
    if (status == GK_OK)
        status = backend->synchronize(backend, of->streams.out, &of->call->error);
    free_rings(of);
    return status;
}

/* The whole product, as its panels see it: every array has the axes of matrices. */
static void describe(product *of, gk_call *call, const gk_array *operands, const gk_array *result) {
    gk_array *c = &of->sides[C].host;
    *of = (product){.call = call,
                    .sides[A].host = as_matrix(&operands[0], true),
                    .sides[B].host = as_matrix(&operands[1], false),
                    .sides[C].host = *result,
                    .axes = gk_stack_axes(operands)};
    c->ndim = of->axes + 2;
    c->shape[of->axes] = of->sides[A].host.shape[of->sides[A].host.ndim - 2];
    c->shape[of->axes + 1] = of->sides[B].host.shape[of->sides[B].host.ndim - 1];
    gk_make_contiguous(c);
}

gk_status gk_flow_matmul(const gk_operation *operation, gk_call *call, const gk_array *operands,
                         const gk_array *result) {
    product of;
    (void)operation;
    describe(&of, call, operands, result);
    gk_status status =
        gk_pipeline_get_streams(call->device->pipeline, call->backend, &of.streams, &call->error);
    if (status != GK_OK)
        return status;
    double start = gk_seconds();
    plan(&of, atomic_load(&call->engine->device_limit));
    while ((status = multiply(&of)) == GK_MEMORY_ERROR) {
        /* The device is fuller than the limit says, or has no room for what a product works in:
           smaller panels, from the start. */
        gk_call_end(call);
        size_t limit = bytes_needed(&of) / 2;
        if (!shrink(&of))
            break;
        plan(&of, limit);
    }
    if (status == GK_OK && call->phases) {
        gk_phases *phases = call->phases;
        double sum = phases->host_to_device + phases->kernel + phases->device_to_host;
        double wall = gk_seconds() - start;
        phases->overlapped = sum > wall ? sum - wall : 0.0;
    }
    return status;
}
