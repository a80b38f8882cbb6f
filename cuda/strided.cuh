// Where the elements of strided arrays lie.
#ifndef GK_STRIDED_CUH
#define GK_STRIDED_CUH
#ifndef GK_ROWS_ONLY

#include "device.cuh"

__device__ static inline uint32_t gk_divide(uint32_t n, gk_divisor by) {
    return (__umulhi(n, by.multiplier) + n) >> by.shift;
}

// The offset in bytes of element i, in C order, of each array of a layout, and its index along the last
// axis. 32-bit numbers and no division: a 64-bit one costs as much as the loads do.
template <int ARRAYS>
__device__ static inline uint32_t gk_offsets(const gk_layout &layout, uint32_t i, int64_t (&offset)[ARRAYS]) {
#pragma unroll
    for (int k = 0; k < ARRAYS; k++)
        offset[k] = 0;
    uint32_t last = 0;
#pragma unroll 1
    for (int axis = layout.ndim - 1; axis >= 0; axis--) {
        uint32_t rest = axis > 0 ? gk_divide(i, layout.length[axis]) : 0;
        uint32_t index = i - rest * layout.length[axis].value;
        i = rest;
        if (axis == layout.ndim - 1)
            last = index;
#pragma unroll
        for (int k = 0; k < ARRAYS; k++)
            offset[k] += (int64_t)index * layout.stride[k][axis];
    }
    return last;
}

// The offset in bytes of element i, in C order, of the axes [first, end) of a layout's array 0. By a loop
// of its own: one that tells the index along the last axis too is peeled, and doubles a kernel of
// reductions.
__device__ static inline int64_t gk_offset_along(const gk_layout &layout, int first, int end, uint32_t i) {
    int64_t offset = 0;
#pragma unroll 1
    for (int axis = end - 1; axis >= first; axis--) {
        uint32_t rest = axis > first ? gk_divide(i, layout.length[axis]) : 0;
        offset += (int64_t)(i - rest * layout.length[axis].value) * layout.stride[0][axis];
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

#endif
#endif
