// Boxes of elements between two arrays, through shared memory: what the kernels of boxes have in common.
#ifndef GK_BOXES_CUH
#define GK_BOXES_CUH
#ifndef GK_ROWS_ONLY

#include "device.cuh"
#include "strided.cuh"
#include "transpose/copies.h"

enum { GK_TO, GK_FROM };

// Where a box begins, in bytes.
struct gk_box {
    int64_t offset[2];
};

__device__ static inline gk_box gk_find_box(const gk_box_grid &grid, uint32_t number) {
    gk_box box = {{0, 0}};
    for (int axis = grid.ndim - 1; axis >= 0; axis--) {
        const auto &of = grid.axis[axis];
        const uint32_t rest = gk_divide(number, of.length), index = number - rest * of.length.value;
        const bool is_last = index + 1 == of.length.value;
        box.offset[GK_TO] += is_last ? of.last[GK_TO] : index * of.step[GK_TO];
        box.offset[GK_FROM] += is_last ? of.last[GK_FROM] : index * of.step[GK_FROM];
        number = rest;
    }
    return box;
}

// What the compiler may not know any more: it would keep what follows from it in registers that are not there.
template <typename T, int N> __device__ static inline void gk_forget(T (&numbers)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+r"(numbers[i]));
}

#endif
#endif
