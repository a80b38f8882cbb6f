#include "engine/chunks.h"

#include "base/pack.h"

enum {
    PIECE = 128 << 10,      /* bytes that a worker packs at a time */
    ALIGNMENT = 256,        /* of each operand in a half */
    LEAST_ROW = 1024,       /* bytes that are worth a copy of rows: two thirds of the bus's rate */
    MOST_APART = INT32_MAX, /* bytes from row to row, which a copy may have */
    LONG = 48 << 20,        /* bytes of a result that are in no cache by the time it is read */
};

/* chunks --------------------------------------------------------------------------------------- */

/* It passes through pinned memory of the pipeline's. */
static bool is_staged(const gk_chunks *chunks, int operand) {
    return chunks->twin[operand] == operand && !chunks->direct[operand];
}

bool gk_goes_bundled(const gk_chunks *chunks, int operand) {
    return is_staged(chunks, operand) && !chunks->flow->landing[operand];
}

static void take_stretch(const gk_chunks *chunks, size_t number, const gk_array *of,
                         gk_stretch *found) {
    size_t first = number * chunks->elements, left = chunks->flow->count - first;
    gk_copy_view(&found->array, of);
    found->first = first;
    found->count = left < chunks->elements ? left : chunks->elements;
    found->bytes = found->count * gk_dtype_size(of->dtype);
}

static void take_part(const gk_array *of, gk_stretch *found) {
    gk_copy_view(&found->array, of);
    found->first = 0;
    found->count = gk_count(of);
    found->bytes = gk_bytes(of);
}

static void view_part(const gk_flow *flow, gk_chunk *chunk) {
    gk_array operands[GK_FLOW_OPERANDS], result;
    flow->part(flow->context, chunk->number, operands, &result);
    for (int i = 0; i < flow->operand_count; i++)
        take_part(&operands[i], &chunk->operands[i]);
    if (flow->has_result)
        take_part(&result, &chunk->result);
}

static size_t aligned(size_t offset) {
    return (offset + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Side by side in their half, those that are bundled first. */
static void place_operands(const gk_chunks *chunks, gk_chunk *chunk) {
    size_t offset = 0;
    chunk->bundle = 0;
    for (int bundled = 1; bundled >= 0; bundled--)
        for (int i = 0; i < chunks->flow->operand_count; i++) {
            gk_stretch *operand = &chunk->operands[i];
            if (chunks->twin[i] < i || gk_goes_bundled(chunks, i) != (bundled == 1))
                continue;
            operand->offset = offset;
            offset += operand->bytes;
            if (bundled)
                chunk->bundle = offset;
            offset = aligned(offset);
        }
}

void gk_chunk_view(const gk_chunks *chunks, size_t number, gk_chunk *chunk) {
    const gk_flow *flow = chunks->flow;
    chunk->number = number;
    if (flow->parts > 0) {
        view_part(flow, chunk);
    } else {
        for (int i = 0; i < flow->operand_count; i++)
            take_stretch(chunks, number, &flow->operands[i], &chunk->operands[i]);
        if (flow->has_result)
            take_stretch(chunks, number, &flow->result, &chunk->result);
    }
    chunk->result.offset = 0;
    place_operands(chunks, chunk);
}

size_t gk_chunk_first(const gk_chunks *chunks, const gk_chunk *chunk) {
    return chunks->flow->parts > 0 ? chunk->number : chunk->number * chunks->elements;
}

size_t gk_stretch_offset(const gk_stretch *stretch) {
    return stretch->first * gk_dtype_size(stretch->array.dtype);
}

gk_array gk_stretch_on_device(const gk_flow *flow, const gk_stretch *stretch, char *data) {
    gk_array there = {.dtype = stretch->array.dtype, .ndim = 1};
    there.shape[0] = (int64_t)stretch->count;
    if (flow->parts > 0)
        gk_copy_view(&there, &stretch->array);
    there.data = data;
    there.place = GK_DEVICE;
    there.readonly = there.swapped = false;
    gk_make_contiguous(&there);
    return there;
}

/* what goes which way -------------------------------------------------------------------------- */

/* Pinned already, and in one piece as far as a chunk goes. */
static bool is_direct(gk_pool *pool, const gk_array *whole, const gk_array *first) {
    return pool && !whole->swapped && gk_is_contiguous(whole) && gk_is_contiguous(first) &&
           gk_pool_holds(pool, whole->data, gk_bytes(whole));
}

bool gk_is_sent_directly(const gk_flow *flow, gk_pool *pool) {
    gk_array operands[GK_FLOW_OPERANDS], first;
    gk_lines lines;
    if (!pool || !flow->has_result || !gk_is_contiguous(&flow->result) ||
        !gk_pool_holds(pool, flow->result.data, gk_bytes(&flow->result)))
        return false;
    if (flow->parts == 0)
        return true;
    flow->part(flow->context, 0, operands, &first);
    return gk_as_lines(&first, &lines) &&
           (lines.count == 1 || (lines.bytes >= LEAST_ROW && lines.apart <= MOST_APART));
}

static size_t pieces_of(size_t bytes) {
    return (bytes + PIECE - 1) / PIECE;
}

/* The first chunk is as large as any. */
static void count_pieces(gk_chunks *chunks) {
    gk_chunk first;
    size_t staged = 0;
    gk_chunk_view(chunks, 0, &first);
    for (int i = 0; i < chunks->flow->operand_count; i++)
        if (is_staged(chunks, i))
            staged = first.operands[i].offset + first.operands[i].bytes;
    chunks->packs = staged > 0 ? pieces_of(staged) : 1;
    chunks->outward = aligned(staged);
    const size_t results = chunks->flow->has_result ? first.result.bytes : 0;
    chunks->unpacks = chunks->is_result_direct ? 0 : pieces_of(results);
    chunks->most = chunks->is_result_direct ? chunks->outward : chunks->outward + results;
    if (!chunks->flow->source && results > chunks->most)
        chunks->most = results; /* as they leave the device */
}

void gk_chunks_plan(gk_chunks *chunks, const gk_flow *flow, gk_pool *pool, size_t bytes) {
    gk_chunk first;
    *chunks = (gk_chunks){.flow = flow, .count = flow->parts};
    if (flow->parts == 0) {
        chunks->elements = gk_flow_elements(flow, bytes);
        chunks->count = (flow->count + chunks->elements - 1) / chunks->elements;
    }
    for (int i = 0; i < flow->operand_count; i++)
        chunks->twin[i] = gk_flow_twin(flow, i);
    gk_chunk_view(chunks, 0, &first);
    for (int i = 0; i < flow->operand_count; i++) {
        chunks->direct[i] = is_direct(pool, &flow->operands[i], &first.operands[i].array);
        chunks->stages |= is_staged(chunks, i);
    }
    chunks->is_result_direct = pool && flow->has_result && !flow->unpacks;
    chunks->is_long = flow->has_result && gk_bytes(&flow->result) >= LONG;
    count_pieces(chunks);
}

/* pieces --------------------------------------------------------------------------------------- */

/* Elements of a stretch in a piece of its half, which breaks no element. */
static bool cut(const gk_stretch *of, size_t piece, size_t *first, size_t *count) {
    size_t begin = piece * PIECE, end = begin + PIECE, size = gk_dtype_size(of->array.dtype);
    size_t from = of->offset, to = from + of->bytes;
    from = begin > from ? begin : from;
    to = end < to ? end : to;
    if (from >= to)
        return false;
    *first = (from - of->offset) / size;
    *count = (to - from) / size;
    return true;
}

void gk_pack_piece(const gk_chunks *chunks, const gk_chunk *chunk, size_t piece, char *pinned,
                   bool past_caches) {
    size_t first, count;
    for (int i = 0; i < chunks->flow->operand_count; i++) {
        const gk_stretch *operand = &chunk->operands[i];
        if (!is_staged(chunks, i) || !cut(operand, piece, &first, &count))
            continue;
        char *to = pinned + operand->offset + first * gk_dtype_size(operand->array.dtype);
        if (past_caches)
            gk_pack_past_caches(to, &operand->array, operand->first + first, count);
        else
            gk_pack(to, &operand->array, operand->first + first, count);
    }
}

void gk_unpack_piece(const gk_chunks *chunks, const gk_chunk *chunk, size_t piece,
                     const char *pinned) {
    const gk_stretch *result = &chunk->result;
    size_t first, count;
    if (!cut(result, piece, &first, &count))
        return;
    pinned += chunks->outward + first * gk_dtype_size(result->array.dtype);
    if (chunks->is_long)
        gk_unpack_past_caches(&result->array, pinned, result->first + first, count);
    else
        gk_unpack(&result->array, pinned, result->first + first, count);
}
