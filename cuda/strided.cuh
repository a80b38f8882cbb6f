// Where the elements of strided arrays lie.
#ifndef GK_STRIDED_CUH
#define GK_STRIDED_CUH
#ifndef GK_ROWS_ONLY

#include "device.cuh"

__device__ static inline uint32_t gk_divide(uint32_t n, gk_divisor by) {
    return (__umulhi(n, by.multiplier) + n) >> by.shift;
}

// The offset in bytes of element i, in C order, of each array of a layout. 32-bit numbers and no
// division: a 64-bit one costs as much as the loads do.
template <int ARRAYS>
__device__ static inline void gk_offsets(const gk_layout &layout, uint32_t i, int64_t (&offset)[ARRAYS]) {
#pragma unroll
    for (int k = 0; k < ARRAYS; k++)
        offset[k] = 0;
#pragma unroll 1
    for (int axis = layout.ndim - 1; axis >= 0; axis--) {
        uint32_t rest = axis > 0 ? gk_divide(i, layout.length[axis]) : 0;
        int64_t index = i - rest * layout.length[axis].value;
        i = rest;
#pragma unroll
        for (int k = 0; k < ARRAYS; k++)
            offset[k] += index * layout.stride[k][axis];
    }
}

#endif
#endif
