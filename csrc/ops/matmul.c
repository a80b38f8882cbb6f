/* matmul on the device: operands that lie by rows or by columns as they are, stacks of products in
   one launch where their matrices lie evenly. */
#include "ops/matmul.h"

#include <stddef.h>

#include "device/tuned.h"
#include "engine/nest.h"
#include "engine/transfer.h"
#include "matmul/product.h"
#include "matmul/small.h"
#include "ops/docs.h"

/* What a caller asks for. */
typedef struct request {
    gk_wanted_dtype dtype;
    bool by_rule; /* whatever was measured */
} request;

/* The sizes of a product; a 1-D operand is a row on the left and a column on the right. */
static gk_gemm product_sizes(const gk_array *a, const gk_array *b) {
    return (gk_gemm){
        .m = a->ndim >= 2 ? a->shape[a->ndim - 2] : 1,
        .k = a->shape[a->ndim - 1],
        .n = b->ndim >= 2 ? b->shape[b->ndim - 1] : 1,
        .products = 1,
    };
}

static int stack_axes(const gk_array *operand) {
    return operand->ndim > 2 ? operand->ndim - 2 : 0;
}

int gk_stack_axes(const gk_array *operands) {
    int of_a = stack_axes(&operands[0]), of_b = stack_axes(&operands[1]);
    return of_a > of_b ? of_a : of_b;
}

int gk_own_axis(const gk_array *operand, int axes, int axis) {
    return axis - (axes - stack_axes(operand));
}

static int64_t stack_length(const gk_array *operand, int axes, int axis) {
    int own = gk_own_axis(operand, axes, axis);
    return own < 0 ? 1 : operand->shape[own];
}

/* The axes of the result before those of a product, by NumPy's broadcasting. */
static gk_status infer_stack(gk_call *call, const gk_array *operands, gk_array *result) {
    const gk_array *a = &operands[0], *b = &operands[1];
    int axes = gk_stack_axes(operands);
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

/* Whether there is a kernel that makes a result of `dtype`, as numpy.matmul(..., dtype=dtype) does.
 */
static bool is_offered(gk_dtype of, gk_dtype dtype) {
    bool narrow = gk_dtype_kind(of) == GK_SIGNED || gk_dtype_kind(of) == GK_UNSIGNED;
    return dtype == of || (dtype == GK_int32 && narrow && gk_dtype_size(of) < sizeof(int32_t));
}

static gk_status infer_dtype(gk_call *call, gk_dtype of, gk_dtype *result) {
    const request *asked = call->parameters;
    gk_list offered = {.text = ""};
    *result = asked->dtype.given ? asked->dtype.dtype : of;
    if (is_offered(of, *result))
        return GK_OK;
    for (int i = 0; i < GK_DTYPE_COUNT; i++)
        if (is_offered(of, (gk_dtype)i))
            gk_list_add(&offered, gk_dtype_name((gk_dtype)i));
    return gk_fail(
        &call->error, GK_TYPE_ERROR,
        "matmul: dtype %s is not offered for arrays of %s, but %s; convert the arrays with "
        ".astype(...)",
        gk_dtype_name(*result), gk_dtype_name(of), offered.text);
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
    gk_status status = infer_dtype(call, a->dtype, &result->dtype);
    if (status == GK_OK)
        status = infer_stack(call, operands, result);
    if (status != GK_OK)
        return status;
    if (a->ndim >= 2)
        result->shape[result->ndim++] = sizes.m;
    if (b->ndim >= 2)
        result->shape[result->ndim++] = sizes.n;
    return GK_OK;
}

/* How the matrices of an operand lie: row after row, `leading` elements apart, or column after
   column where they are transposed. */
typedef struct lie {
    int64_t leading;
    bool transposed;
} lie;

/* Whether the lines of a matrix are runs of `length` elements side by side, `count` of them, that
   do not overlap; a step that is not taken may be any. */
static bool are_runs(int64_t length, int64_t step, int64_t count, int64_t pitch, int64_t size,
                     int64_t *leading) {
    *leading = count > 1 ? pitch / size : length;
    return (length <= 1 || step == size) && (count <= 1 || pitch >= length * size);
}

static bool lies_evenly(const gk_array *operand, bool on_the_left, lie *how) {
    int last = operand->ndim - 1;
    int64_t size = (int64_t)gk_dtype_size(operand->dtype);
    bool is_row = last == 0 && on_the_left, is_column = last == 0 && !on_the_left;
    int64_t rows = is_row ? 1 : operand->shape[is_column ? 0 : last - 1];
    int64_t columns = is_column ? 1 : operand->shape[last];
    int64_t down = is_row ? 0 : operand->strides[is_column ? 0 : last - 1];
    int64_t across = is_column ? 0 : operand->strides[last];
    for (int i = 0; i < last - 1; i++)
        if (operand->shape[i] > 1 && operand->strides[i] < 0)
            return false;
    how->transposed = !are_runs(columns, across, rows, down, size, &how->leading);
    return !how->transposed || are_runs(rows, down, columns, across, size, &how->leading);
}

static bool takes_view(const gk_array *operand, int number) {
    lie how;
    return lies_evenly(operand, number == 0, &how);
}

/* What a row's alignment is asked of: the addresses, and the steps from row to row. */
static uintptr_t product_bits(const gk_gemm *gemm) {
    size_t size = gk_dtype_size((gk_dtype)gemm->dtype);
    size_t result_size = gk_dtype_size((gk_dtype)gemm->result);
    return (uintptr_t)gemm->a | (uintptr_t)gemm->b | (uintptr_t)gemm->c |
           (uintptr_t)(gemm->a_leading | gemm->b_leading | gemm->a_step | gemm->b_step) * size |
           (uintptr_t)(gemm->n | gemm->c_step) * result_size;
}

/* Whether it fills a GPU alone. */
static bool is_large(const gk_gemm *gemm) {
    enum { LARGE = 512 * 512 };
    return gemm->m * gemm->n >= LARGE;
}

enum { MOST_VECTORS = 16, FEW_VECTORS = 4 }; /* as cuda/matmul/13_vectors.cu has it */

/* Whether few vectors and a matrix of so many lines are faster than in cuBLAS, as it was measured
   on an H200, 3,000 times: one where both are as fast as memory; several where the lines are runs,
   or lie side by side in a matrix that is not little. */
static bool are_vectors_faster(const gk_gemm *gemm, bool on_the_left, int64_t count) {
    enum { LARGE_OF_ONE = 1 << 24, LARGE = 1 << 20, SHORT = 64, FEW_LINES = 16 };
    int64_t lines = on_the_left ? gemm->m : gemm->n;
    bool runs = on_the_left ? !gemm->a_transposed : gemm->b_transposed;
    if (gemm->dtype != GK_float32 || count > FEW_VECTORS)
        return false;
    if (count == 1)
        return lines * gemm->k >= LARGE_OF_ONE;
    return runs ? gemm->k >= SHORT || lines >= FEW_LINES : lines * gemm->k >= LARGE;
}

/* The row for a matrix and few vectors, of which one is there for the float dtypes and a matrix
   that is aligned; NULL where there is none, or `instead` is cuBLAS and faster. */
static const gk_row *choose_vectors(gk_call *call, const gk_gemm *gemm, const gk_row *instead) {
    bool on_the_left = gemm->n <= gemm->m; /* the matrix */
    int64_t count = on_the_left ? gemm->n : gemm->m;
    int64_t leading = on_the_left ? gemm->a_leading : gemm->b_leading;
    if (count > MOST_VECTORS || gemm->products > 1 || gemm->result != gemm->dtype ||
        (!instead->symbol && !are_vectors_faster(gemm, on_the_left, count)))
        return NULL;
    gk_wish wish = {.op = count == 1             ? GK_OP_matmul_vector
                          : count <= FEW_VECTORS ? GK_OP_matmul_few_vectors
                                                 : GK_OP_matmul_vectors,
                    .dtype = (gk_dtype)gemm->dtype,
                    .address_bits = (uintptr_t)(on_the_left ? gemm->a : gemm->b) |
                                    (uintptr_t)leading * gk_dtype_size((gk_dtype)gemm->dtype)};
    return gk_row_suiting(&wish, call->backend);
}

/* Whether a stack of such products waits for memory more than for multiplications, and a product
   alone for its launch: matrices in shared memory are faster then, as it was measured on an H200.
 */
static bool is_small(const gk_gemm *gemm) {
    enum { MOST_ROWS = 128, MOST_ALONE = 64 * 64 * 64, MOST_USES = 16 /* of an element */ };
    int64_t m = gemm->m, n = gemm->n, k = gemm->k;
    if (gemm->dtype != GK_float32 || gemm->result != gemm->dtype || m > MOST_ROWS ||
        gemm->products > INT32_MAX / MOST_ROWS || !gk_small_fits((uint64_t)n, (uint64_t)k))
        return false;
    return gemm->products > 1 ? m * n * k <= MOST_USES * (m * k + k * n + m * n)
                              : m * n * k <= MOST_ALONE;
}

/* Whether cuBLAS is sooner through, as it was measured on an H200: a thread goes along all of K by
   itself, four by four elements of the result, of which thin matrices have few. */
static bool is_long(const gk_gemm *gemm) {
    enum { LONGEST_ALONE = 192, LONGEST = 32, THINNEST = 4 /* of a stack */ };
    if (gemm->products == 1)
        return gemm->k > LONGEST_ALONE;
    return gemm->k > LONGEST || gemm->m < THINNEST || gemm->n < THINNEST;
}

/* The row for small matrices; NULL where there is none, or `instead` is cuBLAS and faster, or a
   stack's B is transposed, for which the two were not measured. */
static const gk_row *choose_small(gk_call *call, const gk_gemm *gemm, const gk_row *instead) {
    const gk_wish wish = {.op = GK_OP_matmul_small, .dtype = (gk_dtype)gemm->dtype};
    bool unknown = gemm->products > 1 && gemm->b_transposed, of_library = !instead->symbol;
    if (!is_small(gemm) || (of_library && (unknown || is_long(gemm))))
        return NULL;
    return gk_row_suiting(&wish, call->backend);
}

/* The last row in the table that takes the product as it lies; by default a plain one, whose tiles
   are large, for no stack of small products. */
static gk_status choose_matrices(gk_call *call, const gk_gemm *gemm, uintptr_t bits,
                                 const gk_row **row) {
    bool many_small = !call->wanted && gemm->products > 1 && !is_large(gemm);
    bool wide = gemm->result != gemm->dtype;
    gk_wish wish = {.op = wide ? GK_OP_matmul_wide : GK_OP_matmul,
                    .dtype = (gk_dtype)gemm->dtype,
                    .not_plain = gemm->a_transposed || gemm->b_transposed || many_small,
                    .address_bits = bits,
                    .limit = call->wanted};
    gk_status status = GK_OK;
    if (wide && call->variant)
        status = gk_row_named(wish.op, call->variant, wish.dtype, call->backend, &wish.limit,
                              &call->error);
    return status == GK_OK ? gk_row_chosen(&wish, call->backend, row, &call->error) : status;
}

/* Whether the row takes the product as it lies or, where operands may be packed for it, so. */
static bool is_for(const gk_row *row, const gk_gemm *gemm, uintptr_t bits, bool packs) {
    bool turned = gemm->a_transposed || gemm->b_transposed;
    return (packs || !row->plain || !turned) && bits % (uintptr_t)row->alignment == 0;
}

/* By a rule that is sound anywhere. */
static gk_status choose_by_rule(gk_call *call, const gk_gemm *gemm, uintptr_t bits,
                                const gk_row **row) {
    gk_status status = choose_matrices(call, gemm, bits, row);
    const gk_row *better = NULL;
    if (status == GK_OK && !call->variant)
        better = choose_vectors(call, gemm, *row);
    if (status == GK_OK && !call->variant && !better)
        better = choose_small(call, gemm, *row);
    if (better)
        *row = better;
    return gk_call_blame(call, status);
}

/* Whether the rows of operands and result, packed as they lie or along K, are whole 16 bytes: what
   was measured of aligned operands are such products. */
static bool is_even(const gk_gemm *gemm) {
    int64_t runs = gemm->k | gemm->n | (gemm->a_transposed ? gemm->m : 0);
    return (size_t)runs * gk_dtype_size((gk_dtype)gemm->dtype) % 16 == 0;
}

/* The row that is faster than the rule's as it was measured on such a device; NULL: none is known
   to be, or it does not run here. */
static const gk_row *measured(gk_call *call, const gk_gemm *gemm, uintptr_t bits, bool packs) {
    const request *asked = call->parameters;
    bool aligned = bits % 16 == 0;
    if (call->variant || asked->by_rule || gemm->products > 1 || gemm->result != gemm->dtype ||
        (aligned && !is_even(gemm)))
        return NULL;
    gk_faster faster = gk_tuned_faster(call->backend->choices->tuned, gemm, aligned);
    const gk_row *usual;
    bool is_better = faster.row && is_for(faster.row, gemm, bits, packs) &&
                     gk_row_is_ready(faster.row, call->backend) &&
                     choose_by_rule(call, gemm, bits, &usual) == GK_OK && usual == faster.than;
    return is_better ? faster.row : NULL;
}

/* `fastest`: what the operands were packed for, or NULL. */
static gk_status choose(gk_call *call, const gk_gemm *gemm, uintptr_t bits, const gk_row *fastest,
                        const gk_row **row) {
    gk_status status = GK_OK;
    *row =
        fastest && is_for(fastest, gemm, bits, false) ? fastest : measured(call, gemm, bits, false);
    if (!*row)
        status = choose_by_rule(call, gemm, bits, row);
    if (status == GK_OK)
        call->ran = *row;
    return status;
}

/* The product that is so many behind the first one. */
static gk_gemm product_at(const gk_gemm *first, int64_t index) {
    int64_t size = (int64_t)gk_dtype_size((gk_dtype)first->dtype);
    int64_t result_size = (int64_t)gk_dtype_size((gk_dtype)first->result);
    gk_gemm one = *first;
    one.a = (const char *)first->a + index * first->a_step * size;
    one.b = (const char *)first->b + index * first->b_step * size;
    one.c = (char *)first->c + index * first->c_step * result_size;
    return one;
}

static gk_product product_of(const gk_gemm *gemm) {
    uint64_t a_leading = (uint64_t)gemm->a_leading, b_leading = (uint64_t)gemm->b_leading;
    return (gk_product){
        .m = (uint64_t)gemm->m,
        .n = (uint64_t)gemm->n,
        .k = (uint64_t)gemm->k,
        .a_row = gemm->a_transposed ? 1 : a_leading,
        .a_column = gemm->a_transposed ? a_leading : 1,
        .b_row = gemm->b_transposed ? 1 : b_leading,
        .b_column = gemm->b_transposed ? b_leading : 1,
        .a_step = (uint64_t)gemm->a_step,
        .b_step = (uint64_t)gemm->b_step,
        .c_step = (uint64_t)gemm->c_step,
    };
}

/* As many products at a time as a grid has blocks for. */
static gk_status launch_products(gk_call *call, const gk_row *row, const gk_gemm *all) {
    size_t tiles =
        gk_blocks((size_t)all->m, row->tile_rows) * gk_blocks((size_t)all->n, row->tile_columns);
    gk_product of = product_of(all);
    of.tiles = (uint32_t)tiles; /* more than that the launch refuses */
    int64_t most = tiles < INT32_MAX ? (int64_t)(INT32_MAX / tiles) : 1;
    gk_status status = GK_OK;
    for (int64_t done = 0; done < all->products && status == GK_OK; done += most) {
        gk_gemm now = product_at(all, done);
        int64_t left = all->products - done;
        void *arguments[] = {&now.c, &now.a, &now.b, &of};
        status = gk_call_launch(call, row, tiles * (size_t)(left < most ? left : most), arguments);
    }
    return status;
}

static gk_status prepare_products(gk_call *call, const gk_row *row, const gk_gemm *all) {
    gk_status status = GK_OK;
    if (row->stacks)
        return gk_call_prepared(call, row, all);
    for (int64_t i = 0; i < all->products && status == GK_OK; i++) {
        gk_gemm one = product_at(all, i);
        status = gk_call_prepared(call, row, &one);
    }
    return status;
}

/* The loops over a stack: its matrices are the elements of the nest's arrays, C first. */
static gk_nest stack_of(const gk_array *operands, const gk_array *result) {
    const gk_array *a = &operands[0], *b = &operands[1];
    int axes = gk_stack_axes(operands);
    gk_array views[3] = {{.data = result->data, .dtype = result->dtype, .ndim = axes},
                         {.data = a->data, .dtype = a->dtype, .ndim = axes},
                         {.data = b->data, .dtype = b->dtype, .ndim = axes}};
    for (int i = 0; i < axes; i++)
        for (int v = 0; v < 3; v++) {
            const gk_array *whole = v == 0 ? result : &operands[v - 1];
            int own = v == 0 ? i : gk_own_axis(whole, axes, i);
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
    if (last >= 0 && gemm->m == 1 && !gemm->a_transposed && nest->stride[1][last] >= gemm->k * size)
        gemm->a_leading = nest->stride[1][last] / size; /* the next row is the next matrix */
    int64_t a_row = (gemm->a_transposed ? 1 : gemm->a_leading) * size;
    const bool has_room = /* windows that overlap leave none for more rows, side by side */
        last < 0 || !gemm->a_transposed || gemm->a_leading >= gemm->m * nest->shape[last];
    if (last >= 0 && nest->stride[2][last] == 0 && nest->stride[1][last] == gemm->m * a_row &&
        has_room) {
        gemm->m *= nest->shape[last];
        nest->ndim = last--;
    }
    if (last < 0)
        return;
    gemm->products = nest->shape[last];
    gemm->c_step = nest->stride[0][last] / (int64_t)gk_dtype_size((gk_dtype)gemm->result);
    gemm->a_step = nest->stride[1][last] / size;
    gemm->b_step = nest->stride[2][last] / size;
    nest->ndim = last;
}

static gk_status run_products(gk_call *call, const gk_row *row, const gk_gemm *all) {
    if (!row->symbol)
        return gk_call_gemm(call, row, *all);
    return row->prepare ? prepare_products(call, row, all) : launch_products(call, row, all);
}

/* The innermost axis in one launch, at all places of the others; or only the choice of a row. */
static gk_status run_stack(gk_call *call, const gk_array *operands, const gk_array *result,
                           gk_gemm first, bool launches) {
    gk_nest nest = stack_of(operands, result);
    const gk_row *row;
    take_axis(&nest, &first);
    uintptr_t bits = product_bits(&first) | gk_nest_bits(&nest);
    gk_status status = choose(call, &first, bits, NULL, &row);
    size_t count = launches ? gk_nest_count(&nest) : 0;
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

/* Whether a row finds the operand's rows where it can fetch them. */
static bool is_by_rows(const gk_array *operand, const lie *how, int alignment) {
    uintptr_t bits = (uintptr_t)operand->data;
    for (int i = 0; i < operand->ndim - 1; i++)
        bits |= operand->shape[i] > 1 ? (uintptr_t)operand->strides[i] : 0;
    return !how->transposed && bits % (uintptr_t)alignment == 0;
}

/* The product of operands that lie evenly. */
static gk_gemm describe(const gk_array *operands, const gk_array *result) {
    gk_gemm gemm = product_sizes(&operands[0], &operands[1]);
    lie of_a, of_b;
    (void)lies_evenly(&operands[0], true, &of_a);
    (void)lies_evenly(&operands[1], false, &of_b);
    gemm.dtype = (int)operands[0].dtype;
    gemm.result = (int)result->dtype;
    gemm.a = operands[0].data;
    gemm.b = operands[1].data;
    gemm.c = result->data;
    gemm.a_leading = of_a.leading;
    gemm.b_leading = of_b.leading;
    gemm.a_transposed = of_a.transposed;
    gemm.b_transposed = of_b.transposed;
    return gemm;
}

/* A plain row that was asked for, or that would be the default, is worth a copy of what it cannot
   fetch; the latter where it was measured so, or the product is large. */
static bool is_worth_packing(const gk_call *call, const gk_row *fastest, const gk_array *operand,
                             int number, const gk_gemm *gemm) {
    const gk_row *meant = call->wanted ? call->wanted : fastest ? fastest : call->ran;
    lie how;
    (void)lies_evenly(operand, number == 0, &how);
    return meant->plain && (call->wanted || fastest || is_large(gemm)) &&
           !gk_is_contiguous(operand) && !is_by_rows(operand, &how, meant->alignment);
}

/* As it would lie on the device: packed, at an address that is a multiple of all alignments. */
static void see_packed(const gk_array *operand, gk_array *packed) {
    gk_copy_view(packed, operand);
    packed->data = NULL;
    packed->place = GK_DEVICE;
    packed->swapped = false;
    gk_make_contiguous(packed);
}

/* The whole product, or only the choice of a row for it. */
static gk_status multiply(gk_call *call, const gk_array *operands, const gk_array *result,
                          bool launches) {
    gk_gemm gemm = describe(operands, result);
    gk_array taken[2];
    gk_status status = GK_OK;
    bool stacked = gk_stack_axes(operands) > 0;
    const gk_row *fastest = stacked ? NULL : measured(call, &gemm, product_bits(&gemm), true);
    for (int i = 0; i < 2 && status == GK_OK; i++) {
        if (!is_worth_packing(call, fastest, &operands[i], i, &gemm))
            gk_copy_view(&taken[i], &operands[i]);
        else if (launches)
            status = gk_stage_packed(call, &operands[i], &taken[i]);
        else
            see_packed(&operands[i], &taken[i]);
    }
    if (status != GK_OK)
        return status;
    gemm = describe(taken, result);
    if (stacked)
        return run_stack(call, taken, result, gemm, launches);
    const gk_row *row;
    status = choose(call, &gemm, product_bits(&gemm), fastest, &row);
    return status == GK_OK && launches ? run_products(call, row, &gemm) : status;
}

gk_status gk_run_matmul(const gk_operation *operation, gk_call *call, const gk_array *operands,
                        gk_array *result) {
    (void)operation;
    if (operands[0].shape[operands[0].ndim - 1] == 0)
        return gk_call_zero(call, result->data, gk_bytes(result));
    return gk_count(result) == 0 ? GK_OK : multiply(call, operands, result, true);
}

gk_status gk_matmul_row(gk_call *call, const gk_array *operands, bool by_rule, const gk_row **row) {
    const request usual = {.dtype = {.given = false}, .by_rule = by_rule};
    gk_array lying[2], result;
    *row = NULL;
    call->parameters = &usual;
    gk_status status = gk_operation_infer(call, gk_op_matmul, operands, &result);
    if (status != GK_OK || gk_count(&result) == 0 || gk_count(&operands[0]) == 0)
        return status;
    result.data = NULL;
    for (int i = 0; i < 2; i++) {
        gk_array seen = operands[i];
        bool by_columns = seen.place == GK_HOST && gk_lies_by_columns(&seen);
        if (by_columns)
            gk_exchange_last(&seen);
        if (seen.place == GK_HOST || !takes_view(&seen, i))
            see_packed(&seen, &lying[i]);
        else
            gk_copy_view(&lying[i], &seen);
        if (by_columns)
            gk_exchange_last(&lying[i]);
    }
    status = multiply(call, lying, &result, false);
    *row = call->ran;
    return status;
}

static const char *const names[] = {"a", "b"};
static const gk_parameter parameters[] = {
    {"out", GK_OUT, 0}, {"dtype", GK_DTYPE, offsetof(request, dtype)}, {0}};

static const gk_operation operation_matmul = {
    .name = "matmul",
    .op = GK_OP_matmul,
    .doc =
        "matmul($module, a, b, /, out=None, dtype=None, *, variant=None, stream=None)\n--\n\n"
        "The matrix product, with numpy.matmul's shapes: of arrays of more than 2 axes the last\n"
        "two are the matrices, and the others broadcast.\n\n"
        "a, b: " GK_OPERANDS_DOC ";\n"
        "    both of one dtype. On the device matrices are taken as they lie where their rows or\n"
        "    columns are runs of elements side by side, as in a.T and a[:, :n]; others are "
        "copied.\n"
        "dtype: of the result. None: that of a and b. Also int32 for int8, uint8, int16 and\n"
        "    uint16, whose products are then made and added up in int32.\n" GK_OPTIONS_DOC
        "float16 and bfloat16 are accumulated in float32 and rounded once; float32 never uses\n"
        "tf32; integers wrap around, and of bools it is whether both are true anywhere. An inner\n"
        "length of 0 gives zeros.\n" GK_RAISES_DOC,
    .operand_count = 2,
    .operands = names,
    .parameters = parameters,
    .parameter_bytes = sizeof(request),
    .infer = infer_matmul,
    .takes = takes_view,
    .run = gk_run_matmul,
    .flow = gk_flow_matmul,
    .flow_bytes = GK_MATMUL_FLOW_BYTES,
};
const gk_operation *const gk_op_matmul = &operation_matmul;
