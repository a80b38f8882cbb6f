/* matmul: on the device as a whole, from host arrays by panels of rows. */
#include "engine/pipeline.h"
#include "engine/pool.h"
#include "engine/transfer.h"
#include "ops/docs.h"
#include "ops/operation.h"

/* The sizes of a product; a 1-D operand is a row on the left and a column on the right. */
static gk_gemm product_sizes(const gk_array *a, const gk_array *b) {
    return (gk_gemm){
        .m = a->ndim == 2 ? a->shape[0] : 1,
        .k = a->shape[a->ndim - 1],
        .n = b->ndim == 2 ? b->shape[1] : 1,
    };
}

static gk_status infer_matmul(const gk_operation *operation, gk_call *call,
                              const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0], *b = &operands[1];
    for (int i = 0; i < 2; i++) {
        if (operands[i].ndim == 0)
            return gk_fail(&call->error, GK_VALUE_ERROR,
                           "matmul: Input operand %d does not have enough dimensions (has 0, "
                           "gufunc core with signature (n?,k),(k,m?)->(n?,m?) requires 1): %s is "
                           "0-d; multiply takes numbers",
                           i, operation->operands[i]);
        if (operands[i].ndim > 2)
            return gk_fail(&call->error, GK_VALUE_ERROR,
                           "matmul: %s has shape %s; it takes 1-D and 2-D arrays, and no stacks of "
                           "matrices",
                           operation->operands[i], gk_shape_text(&operands[i]).text);
    }
    int64_t inner = b->shape[0];
    gk_gemm sizes = product_sizes(a, b);
    if (inner != sizes.k)
        return gk_fail(
            &call->error, GK_VALUE_ERROR,
            "matmul: Input operand 1 has a mismatch in its core dimension 0, with "
            "gufunc signature (n?,k),(k,m?)->(n?,m?) (size %lld is different from %lld): "
            "a has shape %s and b has shape %s",
            (long long)inner, (long long)sizes.k, gk_shape_text(a).text, gk_shape_text(b).text);
    result->dtype = a->dtype;
    if (a->ndim == 2)
        result->shape[result->ndim++] = sizes.m;
    if (b->ndim == 2)
        result->shape[result->ndim++] = sizes.n;
    return GK_OK;
}

/* What a row's alignment is asked of: the addresses, and the steps from row to row. */
static uintptr_t product_bits(const gk_gemm *gemm) {
    size_t size = gk_dtype_size((gk_dtype)gemm->dtype);
    return (uintptr_t)gemm->a | (uintptr_t)gemm->b | (uintptr_t)gemm->c |
           (uintptr_t)gemm->k * size | (uintptr_t)gemm->n * size;
}

static gk_status launch_product(gk_call *call, const gk_row *row, gk_gemm gemm) {
    size_t m = (size_t)gemm.m, n = (size_t)gemm.n, k = (size_t)gemm.k;
    void *arguments[] = {&gemm.c, &gemm.a, &gemm.b, &m, &n, &k};
    size_t tiles = gk_blocks(m, row->tile_rows) * gk_blocks(n, row->tile_columns);
    return gk_call_launch(call, row, tiles, arguments);
}

static gk_status run_matmul(const gk_operation *operation, gk_call *call, const gk_array *operands,
                            gk_array *result) {
    gk_gemm gemm = product_sizes(&operands[0], &operands[1]);
    const gk_row *row;
    if (gemm.k == 0)
        return gk_call_zero(call, result->data, gk_bytes(result));
    gemm.dtype = (int)result->dtype;
    gemm.a = operands[0].data;
    gemm.b = operands[1].data;
    gemm.c = result->data;
    gk_status status =
        gk_call_choose(call, operation->op, result->dtype, product_bits(&gemm), &row);
    if (status != GK_OK || gk_count(result) == 0)
        return status;
    if (!row->symbol)
        return gk_call_gemm(call, row, gemm);
    return row->prepare ? gk_call_prepared(call, row, &gemm) : launch_product(call, row, gemm);
}

/* by panels ------------------------------------------------------------------------------------ */

enum {
    RING = 3,            /* panels under way: one coming in, one computed, one going out */
    PANELS = 4,          /* of a product that fits: enough to overlap, few enough to stay large */
    PANEL_ROWS = 128,    /* heights are a multiple of it, the tile of most kernels */
    FLOW_BYTES = 4 << 20 /* less is over before the first panel would be */
};

/* A panel of A and of C in device memory, and what its next user waits for. */
typedef struct panel {
    void *a, *c;
    gk_event *used; /* its product is computed: A may be overwritten */
    gk_event *sent; /* its C has left */
} panel;

typedef struct product {
    gk_call *call;
    gk_array a, b, c;      /* 2-D, on the host */
    int64_t rows, columns; /* of a panel */
    void *device_b;
    panel ring[RING];
    gk_pipeline_streams streams;
} product;

static gk_array as_matrix(const gk_array *vector, bool is_row) {
    gk_array matrix = *vector;
    if (vector->ndim == 2)
        return matrix;
    matrix.ndim = 2;
    matrix.shape[0] = is_row ? 1 : vector->shape[0];
    matrix.shape[1] = is_row ? vector->shape[0] : 1;
    matrix.strides[0] = vector->strides[0];
    matrix.strides[1] = is_row ? vector->strides[0] : (int64_t)gk_dtype_size(vector->dtype);
    return matrix;
}

static gk_array block_of(const gk_array *matrix, int64_t row, int64_t rows, int64_t column,
                         int64_t columns) {
    gk_array block = *matrix;
    block.data = (char *)matrix->data + row * matrix->strides[0] + column * matrix->strides[1];
    block.shape[0] = rows < matrix->shape[0] - row ? rows : matrix->shape[0] - row;
    block.shape[1] = columns < matrix->shape[1] - column ? columns : matrix->shape[1] - column;
    return block;
}

static size_t bytes_needed(const product *of) {
    size_t k = (size_t)of->a.shape[1], rows = (size_t)of->rows, columns = (size_t)of->columns;
    return (k * columns + RING * (rows * k + rows * columns)) * gk_dtype_size(of->a.dtype);
}

static int64_t halve(int64_t length) {
    int64_t half = (length / 2 + PANEL_ROWS - 1) / PANEL_ROWS * PANEL_ROWS;
    return half < length ? half : (length + 1) / 2;
}

/* Panels of rows as long as they fit; below that, panels of columns too. */
static void plan(product *of, size_t limit) {
    int64_t m = of->c.shape[0], share = (m + PANELS - 1) / PANELS;
    share = (share + PANEL_ROWS - 1) / PANEL_ROWS * PANEL_ROWS;
    of->rows = share < m ? share : m;
    of->columns = of->c.shape[1];
    while (limit && bytes_needed(of) > limit && (of->rows > 1 || of->columns > 1)) {
        if (of->rows > PANEL_ROWS || of->columns == 1)
            of->rows = halve(of->rows);
        else
            of->columns = halve(of->columns);
    }
}

static gk_status make_ring(product *of) {
    gk_call *call = of->call;
    gk_backend *backend = call->backend;
    size_t size = gk_dtype_size(of->a.dtype), k = (size_t)of->a.shape[1];
    gk_status status = gk_call_temporary(call, k * (size_t)of->columns * size, &of->device_b);
    for (int i = 0; i < RING && status == GK_OK; i++) {
        panel *made = &of->ring[i];
        status = gk_call_temporary(call, (size_t)of->rows * k * size, &made->a);
        if (status == GK_OK)
            status = gk_call_temporary(call, (size_t)(of->rows * of->columns) * size, &made->c);
        if (status == GK_OK)
            status = backend->event_new(backend, &made->used, &call->error);
        if (status == GK_OK)
            status = backend->event_new(backend, &made->sent, &call->error);
    }
    /* The memory is there for the call's stream; the others have to pass it first. */
    for (int i = 0; i < GK_PIPELINE_STREAMS && status == GK_OK; i++)
        status = backend->wait(backend, of->streams.all[i], call->stream, &call->error);
    return status;
}

static void free_ring(product *of) {
    gk_backend *backend = of->call->backend;
    gk_error ignored;
    for (int i = 0; i < GK_PIPELINE_STREAMS; i++)
        (void)backend->synchronize(backend, of->streams.all[i], &ignored);
    for (int i = 0; i < RING; i++) {
        backend->event_free(backend, of->ring[i].used);
        backend->event_free(backend, of->ring[i].sent);
        of->ring[i] = (panel){0};
    }
}

static gk_array device_matrix(const gk_array *host, void *data) {
    gk_array matrix = *host;
    matrix.data = data;
    matrix.place = GK_DEVICE;
    matrix.swapped = false;
    gk_make_contiguous(&matrix);
    return matrix;
}

/* An upload that begins when the stream `gate` lets it, and that `gate` then waits for. */
static gk_status bring(product *of, const gk_array *host, void *device) {
    gk_call upload = gk_call_part(of->call, of->streams.gate);
    gk_status status = gk_upload(&upload, host, device);
    gk_call_end(&upload);
    if (status != GK_OK)
        of->call->error = upload.error;
    return status;
}

static gk_status compute(product *of, panel *on, const gk_array *a, const gk_array *b,
                         gk_array *c) {
    gk_call call = gk_call_part(of->call, of->streams.compute);
    gk_backend *backend = call.backend;
    gk_array operands[] = {*a, *b};
    gk_status status = backend->wait(backend, call.stream, of->streams.gate, &call.error);
    if (status == GK_OK)
        status = backend->wait_event(backend, call.stream, on->sent, &call.error);
    if (status == GK_OK)
        status = run_matmul(gk_op_matmul, &call, operands, c);
    gk_call_end(&call);
    if (status == GK_OK)
        status = backend->record(backend, on->used, call.stream, &call.error);
    if (status != GK_OK)
        of->call->error = call.error;
    return status;
}

static gk_status send(product *of, panel *on, const gk_array *c, const gk_array *host) {
    gk_call *call = of->call;
    gk_backend *backend = call->backend;
    gk_stream out = of->streams.out;
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

static gk_status multiply(product *of) {
    gk_backend *backend = of->call->backend;
    gk_status status = GK_OK;
    int turn = 0;
    for (int64_t column = 0; column < of->c.shape[1] && status == GK_OK; column += of->columns) {
        gk_array host_b = block_of(&of->b, 0, of->b.shape[0], column, of->columns);
        gk_array b = device_matrix(&host_b, of->device_b);
        status = backend->wait(backend, of->streams.gate, of->streams.compute, &of->call->error);
        if (status == GK_OK)
            status = bring(of, &host_b, of->device_b);
        for (int64_t row = 0; row < of->c.shape[0] && status == GK_OK; row += of->rows) {
            panel *on = &of->ring[turn++ % RING];
            gk_array host_a = block_of(&of->a, row, of->rows, 0, of->a.shape[1]);
            gk_array host_c = block_of(&of->c, row, of->rows, column, of->columns);
            gk_array a = device_matrix(&host_a, on->a), c = device_matrix(&host_c, on->c);
            status = backend->wait_event(backend, of->streams.gate, on->used, &of->call->error);
            if (status == GK_OK)
                status = bring(of, &host_a, on->a);
            if (status == GK_OK)
                status = compute(of, on, &a, &b, &c);
            if (status == GK_OK)
                status = send(of, on, &c, &host_c);
            if (status == GK_OK && gk_interrupted(of->call->interruption, &of->call->error))
                status = GK_INTERRUPTED;
        }
    }
    if (status == GK_OK)
        status = backend->synchronize(backend, of->streams.out, &of->call->error);
    return status;
}

static gk_status flow_matmul(const gk_operation *operation, gk_call *call, const gk_array *operands,
                             const gk_array *result) {
    (void)operation;
    product of = {.call = call,
                  .a = as_matrix(&operands[0], true),
                  .b = as_matrix(&operands[1], false),
                  .c = *result};
    if (of.a.shape[1] == 0)
        return GK_MEMORY_ERROR; /* nothing to stream: the plain way writes the zeros */
    of.c.ndim = 2;
    of.c.shape[0] = of.a.shape[0];
    of.c.shape[1] = of.b.shape[1];
    gk_make_contiguous(&of.c);
    gk_status status =
        gk_pipeline_get_streams(call->device->pipeline, call->backend, &of.streams, &call->error);
    if (status != GK_OK)
        return status;
    double start = gk_seconds();
    plan(&of, atomic_load(&call->engine->device_limit));
    for (;;) {
        status = make_ring(&of);
        if (status == GK_OK)
            status = multiply(&of);
        free_ring(&of);
        if (status != GK_MEMORY_ERROR || (of.rows == 1 && of.columns == 1))
            break;
        /* The device is fuller than the limit says, or has no room for what a product works in:
           smaller panels, from the start. */
        gk_call_end(call);
        plan(&of, bytes_needed(&of) / 2);
    }
    if (status == GK_OK && call->phases) {
        gk_phases *phases = call->phases;
        double sum = phases->host_to_device + phases->kernel + phases->device_to_host;
        double wall = gk_seconds() - start;
        phases->overlapped = sum > wall ? sum - wall : 0.0;
    }
    return status;
}

static const char *const names[] = {"a", "b"};
static const gk_parameter parameters[] = {{"out", GK_OUT, 0}, {0}};

static const gk_operation operation_matmul = {
    .name = "matmul",
    .op = GK_OP_matmul,
    .doc = "matmul($module, a, b, /, out=None, *, variant=None, stream=None)\n--\n\n"
           "The matrix product of 1-D and 2-D arrays, with numpy.matmul's shapes.\n\n"
           "a, b: " GK_OPERANDS_DOC ";\n"
           "    both float32, float64, float16 or bfloat16.\n" GK_OPTIONS_DOC
           "float16 and bfloat16 are accumulated in float32 and rounded once; float32 never uses\n"
           "tf32. An inner length of 0 gives zeros.\n" GK_RAISES_DOC,
    .operand_count = 2,
    .operands = names,
    .parameters = parameters,
    .infer = infer_matmul,
    .run = run_matmul,
    .flow = flow_matmul,
    .flow_bytes = FLOW_BYTES,
};
const gk_operation *const gk_op_matmul = &operation_matmul;
