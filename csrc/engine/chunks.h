/* How a flow is cut into chunks, and a chunk into pieces that a worker packs or unpacks at a time.
 */
#ifndef GK_CHUNKS_H
#define GK_CHUNKS_H

#include "engine/flow.h"
#include "engine/pool.h"

typedef struct gk_chunks {
    const gk_flow *flow;
    size_t elements; /* of a chunk, where the flow is not in parts */
    size_t count;
    size_t packs, unpacks; /* pieces of a chunk, but the last one may have fewer */
    size_t outward;        /* where a result is in a chunk's pinned memory, behind the operands */
    size_t most;           /* bytes of a chunk in any of its buffers */
    bool is_long;          /* the result, for any cache: its lines are written past them */
    bool stages;           /* any operand, through pinned memory */
    bool direct[GK_FLOW_OPERANDS], is_result_direct; /* pinned memory itself: no staging */
    int twin[GK_FLOW_OPERANDS]; /* the operand that travels for this one: most for themselves */
} gk_chunks;

/* A stretch of a host array, and where it stays in its half. */
typedef struct gk_stretch {
    gk_array array;
    size_t first, count; /* elements, in C order */
    size_t offset, bytes;
} gk_stretch;

typedef struct gk_chunk {
    size_t number;
    gk_stretch operands[GK_FLOW_OPERANDS], result;
    size_t bundle; /* bytes from the beginning of its half that go in one copy */
} gk_chunk;

/* Chunks of no more than so many bytes each way, but of gk_flow_least elements at any rate. Without
   a pool nothing is pinned. */
void gk_chunks_plan(gk_chunks *chunks, const gk_flow *flow, gk_pool *pool, size_t bytes);

/* Whether a chunk's result goes straight to where it belongs: it is pinned, and if it is in lines,
   they are worth a copy each. */
bool gk_is_sent_directly(const gk_flow *flow, gk_pool *pool);

void gk_chunk_view(const gk_chunks *chunks, size_t number, gk_chunk *chunk);

/* As `work` of the flow is told of it. */
size_t gk_chunk_first(const gk_chunks *chunks, const gk_chunk *chunk);

/* Where it begins in the host's array, in bytes of elements side by side; and the same elements on
   the device, at that address. */
size_t gk_stretch_offset(const gk_stretch *stretch);
gk_array gk_stretch_on_device(const gk_flow *flow, const gk_stretch *stretch, char *data);

/* Whether the operand is of those that go in one copy, from the same place of the one half to the
   other's. */
bool gk_goes_bundled(const gk_chunks *chunks, int operand);

/* A piece to a chunk's pinned memory, and from there. */
void gk_pack_piece(const gk_chunks *chunks, const gk_chunk *chunk, size_t piece, char *pinned,
                   bool past_caches);
void gk_unpack_piece(const gk_chunks *chunks, const gk_chunk *chunk, size_t piece,
                     const char *pinned);

#endif
