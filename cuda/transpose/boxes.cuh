// Boxes of elements between two arrays, through shared memory: what the kernels of boxes have in common.
#ifndef GK_BOXES_CUH
#define GK_BOXES_CUH
#ifndef GK_ROWS_ONLY

#include "device.cuh"
#include "strided.cuh"
#include "transpose/copies.h"

enum { GK_TO, GK_FROM };

// Calls `step` for each axis of so many, most of which are in no loop: what belongs to them is part of instructions.
template <typename STEP> __device__ static inline void gk_each_axis(int axes, const STEP &step) {
#pragma unroll
    for (int axis = 0; axis < GK_USUAL_DIMENSIONS; axis++)
        if (axis < axes)
            step(axis);
#pragma unroll 1
    for (int axis = GK_USUAL_DIMENSIONS; axis < axes; axis++)
        step(axis);
}

// The index along an axis of so many elements; `i` counts those of all further ones from then on.
__device__ static inline uint32_t gk_take_index(uint32_t &i, const gk_divisor &side) {
    const uint32_t further = gk_divide(i, side), index = i - further * side.value;
    i = further;
    return index;
}

// Where a box begins, in bytes.
struct gk_box {
    int64_t offset[2];
};

__device__ static inline gk_box gk_find_box(const gk_box_grid &grid, uint32_t number) {
    gk_box box = {{0, 0}};
    for (int axis = grid.ndim - 1; axis >= 0; axis--) {
        const auto &of = grid.axis[axis];
        const uint32_t index = gk_take_index(number, of.length);
        const bool is_last = index + 1 == of.length.value;
        box.offset[GK_TO] += is_last ? of.last[GK_TO] : index * of.step[GK_TO];
        box.offset[GK_FROM] += is_last ? of.last[GK_FROM] : index * of.step[GK_FROM];
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
