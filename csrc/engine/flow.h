/* A flow: what of the host goes through the device in chunks, and what is done with each. */
#ifndef GK_FLOW_H
#define GK_FLOW_H

#include "base/array.h"
#include "device/backend.h"
#include "engine/staging.h"
#include "engine/trace.h"

enum {
    GK_FLOW_OPERANDS = 3,
    GK_FLOW_CHUNK = GK_STAGING_CHUNK, /* bytes of each direction a chunk, at most, */
    GK_FLOW_HALF = GK_FLOW_CHUNK / 2, /* or so many, where both are staged */
};

/* Work on one chunk: contiguous arrays in device memory, elements [first, first + length) of the
   host's in one dimension, or, of a flow in parts, those of part number `first`. It may be asked
   for a chunk again where memory ran out. */
typedef gk_status (*gk_chunk_work)(void *context, gk_stream stream, const gk_array *operands,
                                   gk_array *result, size_t first, gk_error *error);

/* How a long flow asks, now and then, whether the user wants it to end. The thread that began the
   flow asks. */
typedef struct gk_interruption {
    bool (*wanted)(struct gk_interruption *);
} gk_interruption;
bool gk_interrupted(gk_interruption *interruption, gk_error *error); /* NULL: never */

/* The views of the host's arrays that make part `number` of a flow; their elements go in C order.
 */
typedef void (*gk_flow_part)(const void *context, size_t number, gk_array *operands,
                             gk_array *result);

/* One passage through the pipeline. Host arrays have `count` elements in C order, any strides; or
   they come in parts, whose operands together and whose results have no more than `chunk` bytes
   each, the first of them the most. */
typedef struct gk_flow {
    size_t count;
    bool unpacks;    /* the result is staged, as operands are: see gk_is_sent_directly */
    size_t chunk;    /* bytes of each direction a chunk at most: as gk_call_limit says */
    size_t multiple; /* elements that no chunk may break, 0: any will do */
    size_t parts;    /* 0: chunks are stretches of elements */
    gk_flow_part part;
    int operand_count;
    gk_array operands[GK_FLOW_OPERANDS]; /* on the host */
    void *landing[GK_FLOW_OPERANDS];     /* device memory for all of an operand, or NULL */
    gk_chunk_work work;                  /* or NULL */
    void *context;
    bool has_result;
    gk_array result;    /* on the host, contiguous */
    const void *source; /* device memory that holds all of it, or NULL where `work` makes it */
    gk_stream after;    /* the stream whose work the device memory above waits for */
    gk_interruption *interruption; /* or NULL */
    gk_busy *busy; /* filled where it is not NULL, at the cost of two events a step */
} gk_flow;

/* Bytes of all that a flow brings in, or takes out if that is more; and which way. */
size_t gk_flow_bytes(const gk_flow *flow, gk_direction *direction);

/* Elements of a chunk of no more than so many bytes each way, but of the least at any rate, which
   is the smallest chunk but for the last one. */
size_t gk_flow_elements(const gk_flow *flow, size_t bytes);
size_t gk_flow_least(const gk_flow *flow);

/* The first operand that is the same elements in the same order, on the way to the same place, as
   this one: that is the one which travels. */
int gk_flow_twin(const gk_flow *flow, int number);

#endif
