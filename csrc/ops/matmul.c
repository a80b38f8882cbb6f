/* matmul: on the device as a whole, stacks of products in one launch where their matrices lie
   evenly, from host arrays by panels of rows. */
#include "engine/nest.h"
#include "engine/pipeline.h"
#include "engine/pool.h"
#include "engine/transfer.h"
#include "ops/docs.h"
#include "ops/operation.h"

/* The sizes of a product; a 1-D operand is a row on the left and a column on the right. */
static gk_gemm product_sizes(const gk_array *a, const gk_array *b) {
    return (gk_gemm){
        .m = a->ndim >= 2 ? a->shape[a->ndim - 2] : 1,
        .k = a->shape[a->ndim - 1],
        .n = b->ndim >= 2 ? b->shape[b->ndim - 1] : 1,
        .products = 1,
    };
}

/* An operand is a stack along all axes but its last two. */
static int stack_axes(const gk_array *operand) {
    return operand->ndim > 2 ? operand->ndim - 2 : 0;
}

/* Of the result of two. */
static int stack_axes_of(const gk_array *operands) {
    int of_a = stack_axes(&operands[0]), of_b = stack_axes(&operands[1]);
    return of_a > of_b ? of_a : of_b;
}

/* Which of an operand's axes is the one that is `axis` of the result's `axes`; below 0: none. */
static int own_axis(const gk_array *operand, int axes, int axis) {
    return axis - (axes - stack_axes(operand));
}

static int64_t stack_length(const gk_array *operand, int axes, int axis) {
    int own = own_axis(operand, axes, axis);
    return own < 0 ? 1 : operand->shape[own];
}

/* The axes of the result before those of a product, by NumPy's broadcasting. */
static gk_status infer_stack(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0], *b = &operands[1];
    int axes = stack_axes_of(operands);
    for (int i = 0; i < axes; i++) {
        int64_t of_a = stack_length(a, axes, i), of_b = stack_length(b, axes, i);
        if (of_a != of_b && of_a != 1 && of_b != 1)
            return gk_fail(&call->error, GK_VALUE_ERROR,
                           "matmul: the stacks of a, of shape %s, and of b, of shape %s, do not "
                           "broadcast: all axes but the last two have to be of one length, or 1",
                           gk_shape_text(a).text, gk_shape_text(b).text);
        result->shape[result->ndim++] = of_a == 1 ? of_b : of_a;
    }
    return GK_OK;
}

static gk_status infer_matmul(const gk_operation *operation, gk_call *call,
                              const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0], *b = &operands[1];
    for (int i = 0; i < 2; i++)
        if (operands[i].ndim == 0)
            return gk_fail(&call->error, GK_VALUE_ERROR,
                           "matmul: Input operand %d does not have enough dimensions (has 0, "
                           "gufunc core with signature (n?,k),(k,m?)->(n?,m?) requires 1): %s is "
                           "0-d; multiply takes numbers",
                           i, operation->operands[i]);
    int64_t inner = b->shape[b->ndim >= 2 ? b->ndim - 2 : 0];
    gk_gemm sizes = product_sizes(a, b);
    if (inner != sizes.k)
        return gk_fail(
            &call->error, GK_VALUE_ERROR,
            "matmul: Input operand 1 has a mismatch in its core dimension 0, with "
            "gufunc signature (n?,k),(k,m?)->(n?,m?) (size %lld is different from %lld): "
            "a has shape %s and b has shape %s",
            (long long)inner, (long long)sizes.k, gk_shape_text(a).text, gk_shape_text(b).text);
    result->dtype = a->dtype;
    gk_status status = infer_stack(call, operands, result);
    if (status != GK_OK)
        return status;
    if (a->ndim >= 2)
        result->shape[result->ndim++] = sizes.m;
    if (b->ndim >= 2)
        result->shape[result->ndim++] = sizes.n;
    return GK_OK;
}

/* What a row's alignment is asked of: the addresses, and the steps from row to row. */
static uintptr_t product_bits(const gk_gemm *gemm) {
    size_t size = gk_dtype_size((gk_dtype)gemm->dtype);
    return (uintptr_t)gemm->a | (uintptr_t)gemm->b | (uintptr_t)gemm->c |
           (uintptr_t)gemm->k * size | (uintptr_t)gemm->n * size |
           (uintptr_t)(gemm->a_step | gemm->b_step | gemm->c_step) * size;
}

/* The product that is so many behind the first one. */
static gk_gemm product_at(const gk_gemm *first, int64_t index) {
    int64_t size = (int64_t)gk_dtype_size((gk_dtype)first->dtype);
    gk_gemm one = *first;
    one.a = (const char *)first->a + index * first->a_step * size;
    one.b = (const char *)first->b + index * first->b_step * size;
    one.c = (char *)first->c + index * first->c_step * size;
    return one;
}

/* As many products at a time as a grid has blocks for. */
static gk_status launch_products(gk_call *call, const gk_row *row, const gk_gemm *all) {
    size_t m = (size_t)all->m, n = (size_t)all->n, k = (size_t)all->k;
    size_t a_step = (size_t)all->a_step, b_step = (size_t)all->b_step, c_step = (size_t)all->c_step;
    size_t tiles = gk_blocks(m, row->tile_rows) * gk_blocks(n, row->tile_columns);
    unsigned each = (unsigned)tiles; /* more than that the launch refuses */
    int64_t most = tiles < INT32_MAX ? (int64_t)(INT32_MAX / tiles) : 1;
    gk_status status = GK_OK;
    for (int64_t done = 0; done < all->products && status == GK_OK; done += most) {
        gk_gemm now = product_at(all, done);
        int64_t left = all->products - done;
        void *arguments[] = {&now.c, &now.a, &now.b, &m, &n, &k, &each, &a_step, &b_step, &c_step};
        status = gk_call_launch(call, row, tiles * (size_t)(left < most ? left : most), arguments);
    }
    return status;
}

static gk_status prepare_products(gk_call *call, const gk_row *row, const gk_gemm *all) {
    gk_status status = GK_OK;
    for (int64_t i = 0; i < all->products && status == GK_OK; i++) {
        gk_gemm one = product_at(all, i);
        status = gk_call_prepared(call, row, &one);
    }
    return status;
}

/* The loops over a stack: its matrices are the elements of the nest's arrays, C first. */
static gk_nest stack_of(const gk_array *operands, const gk_array *result) {
    const gk_array *a = &operands[0], *b = &operands[1];
    int axes = stack_axes_of(operands);
    gk_array views[3] = {{.data = result->data, .dtype = result->dtype, .ndim = axes},
                         {.data = a->data, .dtype = a->dtype, .ndim = axes},
                         {.data = b->data, .dtype = b->dtype, .ndim = axes}};
    for (int i = 0; i < axes; i++)
        for (int v = 0; v < 3; v++) {
            const gk_array *whole = v == 0 ? result : &operands[v - 1];
            int own = v == 0 ? i : own_axis(whole, axes, i);
            views[v].shape[i] = result->shape[i];
            views[v].strides[i] = own < 0 || whole->shape[own] == 1 ? 0 : whole->strides[own];
        }
    gk_nest nest;
    gk_nest_make(&nest, (const gk_array *const[]){&views[0], &views[1], &views[2]}, 3);
    return nest;
}

/* The innermost axis becomes part of the product: of its rows, where B is one for all, or else its
   number. */
static void take_axis(gk_nest *nest, gk_gemm *gemm) {
    int64_t size = (int64_t)gk_dtype_size((gk_dtype)gemm->dtype);
    int last = nest->ndim - 1;
    if (last >= 0 && nest->stride[2][last] == 0 &&
        nest->stride[1][last] == gemm->m * gemm->k * size) {
        gemm->m *= nest->shape[last];
        nest->ndim = last--;
    }
    if (last < 0)
        return;
    gemm->products = nest->shape[last];
    gemm->c_step = nest->stride[0][last] / size;
    gemm->a_step = nest->stride[1][last] / size;
    gemm->b_step = nest->stride[2][last] / size;
    nest->ndim = last;
}

static gk_status run_products(gk_call *call, const gk_row *row, const gk_gemm *all) {
    if (!row->symbol)
        return gk_call_gemm(call, row, *all);
    return row->prepare ? prepare_products(call, row, all) : launch_products(call, row, all);
}

/* The innermost axis in one launch, at all places of the others. */
static gk_status run_stack(const gk_operation *operation, gk_call *call, const gk_array *operands,
                           const gk_array *result, gk_gemm first) {
    gk_nest nest = stack_of(operands, result);
    const gk_row *row;
    take_axis(&nest, &first);
    uintptr_t bits = product_bits(&first) | gk_nest_bits(&nest);
    gk_status status = gk_call_choose(call, operation->op, result->dtype, bits, &row);
    size_t count = gk_nest_count(&nest);
    for (size_t i = 0; i < count && status == GK_OK; i++) {
        gk_gemm now = first;
        size_t rest = i;
        for (int axis = nest.ndim - 1; axis >= 0; axis--) {
            int64_t at = (int64_t)(rest % (size_t)nest.shape[axis]);
            rest /= (size_t)nest.shape[axis];
            now.c = (char *)now.c + at * nest.stride[0][axis];
            now.a = (const char *)now.a + at * nest.stride[1][axis];
            now.b = (const char *)now.b + at * nest.stride[2][axis];
        }
        status = run_products(call, row, &now);
    }
    return status;
}

static gk_status run_matmul(const gk_operation *operation, gk_call *call, const gk_array *operands,
                            gk_array *result) {
    gk_gemm gemm = product_sizes(&operands[0], &operands[1]);
    if (gemm.k == 0)
        return gk_call_zero(call, result->data, gk_bytes(result));
    gemm.dtype = (int)result->dtype;
    gemm.a = operands[0].data;
    gemm.b = operands[1].data;
    gemm.c = result->data;
    if (stack_axes_of(operands) > 0 && gk_count(result) > 0)
        return run_stack(operation, call, operands, result, gemm);
    const gk_row *row;
    gk_status status =
        gk_call_choose(call, operation->op, result->dtype, product_bits(&gemm), &row);
    return status != GK_OK || gk_count(result) == 0 ? status : run_products(call, row, &gemm);
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
    if (stack_axes_of(operands) > 0 || of.a.shape[1] == 0)
        return GK_MEMORY_ERROR; /* a stack, or zeros: the plain way has them */
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
    .doc =
        "matmul($module, a, b, /, out=None, *, variant=None, stream=None)\n--\n\n"
        "The matrix product, with numpy.matmul's shapes: of arrays of more than 2 axes the last\n"
        "two are the matrices, and the others broadcast.\n\n"
        "a, b: " GK_OPERANDS_DOC ";\n"
        "    both of one dtype.\n" GK_OPTIONS_DOC
        "float16 and bfloat16 are accumulated in float32 and rounded once; float32 never uses\n"
        "tf32; integers wrap around, and of bools it is whether both are true anywhere. An inner\n"
        "length of 0 gives zeros.\n" GK_RAISES_DOC,
    .operand_count = 2,
    .operands = names,
    .parameters = parameters,
    .infer = infer_matmul,
    .run = run_matmul,
    .flow = flow_matmul,
    .flow_bytes = FLOW_BYTES,
};
const gk_operation *const gk_op_matmul = &operation_matmul;
