// Where the elements of strided arrays lie.
#ifndef GK_STRIDED_CUH
#define GK_STRIDED_CUH
#ifndef GK_ROWS_ONLY

#include "device.cuh"

#define GK_USUAL_DIMENSIONS 4 // of a layout, or fewer

__device__ static inline uint32_t gk_divide(uint32_t n, gk_divisor by) {
    return (__umulhi(n, by.multiplier) + n) >> by.shift;
}

// One axis further out: indices along it, and what they add to the offsets. 32-bit numbers and no division:
// a 64-bit one costs as much as the loads do. STRIDE: what a stride is known to fit into.
template <typename STRIDE, int EACH, int ARRAYS>
__device__ static inline void gk_step_out(const gk_layout &layout, int axis, uint32_t (&i)[EACH], uint32_t (&index)[EACH], int64_t (&offset)[EACH][ARRAYS]) {
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        uint32_t rest = gk_divide(i[j], layout.axis[axis].length);
        index[j] = i[j] - rest * layout.axis[axis].length.value;
        i[j] = rest;
#pragma unroll
        for (int k = 0; k < ARRAYS; k++)
            offset[j][k] += (int64_t)(STRIDE)index[j] * (STRIDE)layout.axis[axis].stride[k];
    }
}

// The offsets in bytes of elements i, in C order, of each array of a layout; i becomes the index along the
// last axis. What is computed for one element fills the time that another's takes. A parameter whose place is
// known to the compiler is an operand of an instruction, and needs no load: most axes are not in a loop.
template <typename STRIDE, int EACH, int ARRAYS>
__device__ static inline void gk_find(const gk_layout &layout, uint32_t (&i)[EACH], int64_t (&offset)[EACH][ARRAYS]) {
    uint32_t last[EACH], index[EACH];
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        last[j] = 0;
#pragma unroll
        for (int k = 0; k < ARRAYS; k++)
            offset[j][k] = 0;
    }
#pragma unroll
    for (int axis = 0; axis < GK_USUAL_DIMENSIONS; axis++) {
        if (axis < layout.ndim)
            gk_step_out<STRIDE>(layout, axis, i, axis == 0 ? last : index, offset);
    }
#pragma unroll 1
    for (int axis = GK_USUAL_DIMENSIONS; axis < layout.ndim; axis++)
        gk_step_out<STRIDE>(layout, axis, i, index, offset);
#pragma unroll
    for (int j = 0; j < EACH; j++)
        i[j] = last[j];
}

// The same of one element.
template <int ARRAYS>
__device__ static inline uint32_t gk_offsets(const gk_layout &layout, uint32_t i, int64_t (&offset)[ARRAYS]) {
    uint32_t one[1] = {i};
    int64_t its[1][ARRAYS];
    gk_find<int64_t>(layout, one, its);
#pragma unroll
    for (int k = 0; k < ARRAYS; k++)
        offset[k] = its[0][k];
    return one[0];
}

// The offset in bytes of element i, in C order, of the axes [first, end) of an array. By a loop
// of its own: one that tells the index along the last axis too is peeled, and doubles a kernel of
// reductions.
__device__ static inline int64_t gk_offset_along(const gk_axes &axes, int first, int end, uint32_t i) {
    int64_t offset = 0;
#pragma unroll 1
    for (int axis = end - 1; axis >= first; axis--) {
        uint32_t rest = axis > first ? gk_divide(i, axes.axis[axis].length) : 0;
        offset += (int64_t)(i - rest * axes.axis[axis].length.value) * axes.axis[axis].stride;
        i = rest;
    }
    return offset;
}

// The elements that a thread takes of a row: `count` of them, `units.apart` bytes from one to the next.
template <int ARRAYS> struct gk_share {
    int64_t offset[ARRAYS];
    int count;
};

// EACH elements of a unit at most, and between them one of every other thread that shares the unit:
// what a warp accesses at a time lies side by side. Where an element is costs more than the element
// itself, so it is found once for all of them.
template <int EACH, int ARRAYS> __device__ static inline gk_share<ARRAYS> gk_share_of(const gk_units &units) {
    uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t unit = thread >> units.lanes, lane = thread - (unit << units.lanes);
    gk_share<ARRAYS> share;
    share.count = 0;
    if (unit >= units.count)
        return share;
    uint32_t first = gk_offsets(units.layout, unit, share.offset) * (EACH << units.lanes) + lane;
    if (first < units.length)
        share.count = (int)((units.length - first - 1) >> units.lanes) + 1;
#pragma unroll
    for (int k = 0; k < ARRAYS; k++)
        share.offset[k] += lane * units.step[k];
    return share;
}

// Where rows are too short for that, and strides not too long: up to EACH elements of any rows, a block's
// width apart. Returns how many there are.
template <int EACH, int ARRAYS>
__device__ static inline int gk_lone_elements(const gk_units &units, int64_t (&offset)[EACH][ARRAYS]) {
    uint32_t number[EACH], first = blockIdx.x * (EACH * blockDim.x) + threadIdx.x;
    int count = 0;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        number[j] = first + j * blockDim.x;
        count += number[j] < units.count;
    }
    if (count > 0)
        gk_find<int32_t>(units.layout, number, offset);
    return count;
}

// The elements of a thread either way.
template <int ARRAYS>
__device__ static inline int gk_elements_of(const gk_units &units, int64_t (&offset)[GK_LONE_ELEMENTS][ARRAYS]) {
    if (units.length == 0)
        return gk_lone_elements(units, offset);
    gk_share<ARRAYS> share = gk_share_of<GK_LONE_ELEMENTS, ARRAYS>(units);
#pragma unroll
    for (int j = 0; j < GK_LONE_ELEMENTS; j++)
#pragma unroll
        for (int k = 0; k < ARRAYS; k++)
            offset[j][k] = share.offset[k] + j * units.apart[k];
    return share.count;
}

#endif
#endif
