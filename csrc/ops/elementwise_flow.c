/* Elementwise operations of host arrays: a call cut into chunks, each of which runs as a call of
   its own while others travel. Operands that all chunks need travel once. */
#include "engine/transfer.h"
#include "ops/elementwise.h"

enum {
    LONGEST_ROW = 1 << 19, /* bytes of an operand: several make a chunk of the widest result */
};

typedef enum travel {
    AS_NUMBER, /* with each launch */
    AT_ONCE, /* before the first chunk: a row for all rows of the result, or an element for each */
    IN_CHUNKS,
} travel;

/* A host call cut into chunks; where something travels at once, of whole rows. */
typedef struct chunked {
    const gk_call *call;
    gk_op op;
    const gk_array *operands;
    int count;
    size_t row; /* elements of a row; 0: nothing travels at once */
    travel travels[GK_MAX_OPERANDS];
    gk_array there[GK_MAX_OPERANDS]; /* what does, with the strides that it has in rows */
} chunked;

/* Elements of a row of the result where the operand is that, or one for each; 0: it is something
   else. */
static size_t row_of(const gk_array *operand, const gk_array *result, bool *is_row) {
    gk_array view;
    size_t behind = 1;
    int changes = 0;
    bool repeats = false, before = false;
    gk_broadcast_view(operand, result, &view);
    for (int i = view.ndim - 1; i >= 0; i--) {
        if (view.shape[i] == 1)
            continue;
        repeats =
            operand->ndim + i < view.ndim || operand->shape[operand->ndim + i - view.ndim] == 1;
        if (behind == 1)
            *is_row = !repeats;
        else if (repeats != before)
            changes++;
        if (changes == 0)
            behind *= (size_t)view.shape[i];
        before = repeats;
    }
    return changes == 1 && behind <= LONGEST_ROW / gk_dtype_size(operand->dtype) ? behind : 0;
}

/* On the device as a whole, if it is worth a row that all of them agree on. */
static gk_status bring_once(gk_call *call, chunked *whole, int number, const gk_array *result) {
    const gk_array *operand = &whole->operands[number];
    gk_array *there = &whole->there[number];
    int64_t size = (int64_t)gk_dtype_size(operand->dtype);
    bool is_row = false;
    if (gk_count(operand) > gk_count(result) / 2)
        return GK_OK;
    size_t row = row_of(operand, result, &is_row);
    if (row == 0 || (whole->row > 0 && row != whole->row))
        return GK_OK;
    whole->row = row;
    whole->travels[number] = AT_ONCE;
    gk_status status = gk_stage_view(call, operand, there);
    there->ndim = 2;
    there->strides[0] = is_row ? 0 : size;
    there->strides[1] = is_row ? size : 0;
    return status;
}

static void shape_rows(const chunked *whole, size_t count, gk_array *array) {
    array->ndim = 2;
    array->shape[0] = (int64_t)(count / whole->row);
    array->shape[1] = (int64_t)whole->row;
}

/* A chunk's part of what is all there. */
static void take_rows(const chunked *whole, int number, size_t first, size_t count,
                      gk_array *rows) {
    gk_copy_view(rows, &whole->there[number]);
    rows->data = (char *)rows->data + (int64_t)(first / whole->row) * rows->strides[0];
    shape_rows(whole, count, rows);
}

/* What came in by itself, or goes out so: elements side by side. */
static void view_chunk(const chunked *whole, const gk_array *chunk, gk_array *view) {
    gk_copy_view(view, chunk);
    if (whole->row == 0)
        return;
    shape_rows(whole, gk_count(chunk), view);
    gk_make_contiguous(view);
}

/* A chunk runs as a call of its own on its lane's stream. */
static gk_status elementwise_chunk(void *context, gk_stream stream, const gk_array *operands,
                                   gk_array *result, size_t first, gk_error *error) {
    const chunked *whole = context;
    gk_call chunk = gk_call_part(whole->call, stream);
    gk_array all[GK_MAX_OPERANDS], out;
    chunk.phases = NULL;
    for (int k = 0; k < whole->count; k++)
        if (whole->travels[k] == AS_NUMBER)
            gk_copy_view(&all[k], &whole->operands[k]);
        else if (whole->travels[k] == AT_ONCE)
            take_rows(whole, k, first, gk_count(result), &all[k]);
        else
            view_chunk(whole, operands++, &all[k]);
    view_chunk(whole, result, &out);
    gk_status status = gk_run_elementwise(&chunk, whole->op, all, whole->count, &out);
    gk_call_end(&chunk);
    if (status != GK_OK)
        *error = chunk.error;
    return status;
}

gk_status gk_flow_elementwise(gk_call *call, gk_op op, const gk_array *operands, int count,
                              const gk_array *result) {
    chunked whole = {.call = call, .op = op, .operands = operands, .count = count};
    gk_flow flow = {.count = gk_count(result),
                    .work = elementwise_chunk,
                    .context = &whole,
                    .has_result = true,
                    .result = *result};
    for (int k = 0; k < count; k++) {
        if (gk_count(&operands[k]) == 1)
            continue; /* a number */
        whole.travels[k] = IN_CHUNKS;
        gk_status status = bring_once(call, &whole, k, result);
        if (status != GK_OK)
            return status;
        if (whole.travels[k] == IN_CHUNKS)
            gk_broadcast_view(&operands[k], result, &flow.operands[flow.operand_count++]);
    }
    flow.multiple = whole.row;
    return gk_call_flow(call, &flow);
}
