#include "engine/flow.h"

bool gk_interrupted(gk_interruption *interruption, gk_error *error) {
    if (!interruption || !interruption->wanted(interruption))
        return false;
    gk_fail(error, GK_INTERRUPTED, "interrupted");
    return true;
}

size_t gk_flow_least(const gk_flow *flow) {
    const size_t whole_blocks = 32768; /* a multiple of what a block of any ladder takes */
    size_t multiple = flow->multiple > 0 ? flow->multiple : whole_blocks;
    return (whole_blocks + multiple - 1) / multiple * multiple;
}

int gk_flow_twin(const gk_flow *flow, int number) {
    int twin = 0;
    while (twin < number && (flow->landing[twin] || flow->landing[number] ||
                             !gk_is_same_view(&flow->operands[twin], &flow->operands[number])))
        twin++;
    return twin;
}

/* Bytes that an element of each operand takes that travels, and one of the result. */
static size_t size_in(const gk_flow *flow) {
    size_t size = 0;
    for (int i = 0; i < flow->operand_count; i++)
        size += gk_flow_twin(flow, i) == i ? gk_dtype_size(flow->operands[i].dtype) : 0;
    return size;
}
static size_t size_out(const gk_flow *flow) {
    return flow->has_result ? gk_dtype_size(flow->result.dtype) : 0;
}

size_t gk_flow_bytes(const gk_flow *flow, gk_direction *direction) {
    size_t in = 0, out = flow->has_result ? gk_bytes(&flow->result) : 0;
    for (int i = 0; i < flow->operand_count; i++)
        in += gk_flow_twin(flow, i) == i ? gk_bytes(&flow->operands[i]) : 0;
    *direction = in == 0           ? GK_GOING_OUT
                 : out == 0        ? GK_GOING_IN
                 : flow->parts > 0 ? GK_GOING_IN_PARTS
                 : flow->unpacks   ? GK_GOING_UNPACKED
                                   : GK_GOING_BOTH;
    return in > out ? in : out;
}

size_t gk_flow_elements(const gk_flow *flow, size_t bytes) {
    size_t in = size_in(flow), out = size_out(flow), size = in > out ? in : out;
    size_t least = gk_flow_least(flow), most = bytes / size / least * least;
    return most < least ? least : most;
}
