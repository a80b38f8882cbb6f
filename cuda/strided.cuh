// Where the elements of strided arrays lie.
#ifndef GK_STRIDED_CUH
#define GK_STRIDED_CUH
#ifndef GK_ROWS_ONLY

#include "device.cuh"

#define GK_USUAL_DIMENSIONS 4 // of a layout, or fewer

__device__ static inline uint32_t gk_divide(uint32_t n, gk_divisor by) {
    return (__umulhi(n, by.multiplier) + n) >> by.shift;
}

// sum + x * y in one instruction: of a y that stays the same in a loop the compiler would make 64 bits
// before it, and four instructions in it.
__device__ static inline int64_t gk_add_product(int64_t sum, int32_t x, int32_t y) {
#ifdef __CUDA_ARCH__
    int64_t result;
    asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(result) : "r"(x), "r"(y), "l"(sum));
    return result;
#else
    return sum + (int64_t)x * y;
#endif
}

// An address in the device's memory that has been computed as a number: the compiler would look up in which memory it is.
template <typename T> __device__ static inline const T *gk_of_device(int64_t address) {
#ifdef __CUDA_ARCH__
    return (const T *)__cvta_global_to_generic((size_t)address);
#else
    return (const T *)address;
#endif
}

// One axis further out: returns the index along it, after what that adds to the offsets.
template <int ARRAYS>
__device__ static inline uint32_t gk_step_out(const gk_layout &layout, int axis, uint32_t &i, int64_t (&offset)[ARRAYS]) {
    uint32_t rest = gk_divide(i, layout.axis[axis].length), index = i - rest * layout.axis[axis].length.value;
#pragma unroll
    for (int k = 0; k < ARRAYS; k++)
        offset[k] += index * layout.axis[axis].stride[k];
    i = rest;
    return index;
}

// The offsets in bytes of element i, in C order, of each array of a layout; returns the index along the
// last axis. 32-bit numbers and no division: a 64-bit one costs as much as the loads do. A parameter whose
// place is known to the compiler is an operand of an instruction, and needs no load: most axes are not in a loop.
template <int ARRAYS>
__device__ static inline uint32_t gk_offsets(const gk_layout &layout, uint32_t i, int64_t (&offset)[ARRAYS]) {
    uint32_t last = 0;
#pragma unroll
    for (int k = 0; k < ARRAYS; k++)
        offset[k] = 0;
#pragma unroll
    for (int axis = 0; axis < GK_USUAL_DIMENSIONS; axis++) {
        if (axis < layout.ndim) {
            uint32_t index = gk_step_out(layout, axis, i, offset);
            last = axis == 0 ? index : last;
        }
    }
#pragma unroll 1
    for (int axis = GK_USUAL_DIMENSIONS; axis < layout.ndim; axis++)
        gk_step_out(layout, axis, i, offset);
    return last;
}

// The same of the axes [first, end) alone, added to the offsets; i is below what these have.
template <int ARRAYS>
__device__ static inline void gk_offsets_along(const gk_layout &layout, int first, int end, uint32_t i, int64_t (&offset)[ARRAYS]) {
#pragma unroll 1
    for (int axis = first; axis < end; axis++)
        gk_step_out(layout, axis, i, offset);
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

// The place of an element of an array, in elements from its address on; how many there are from it on to the end of
// its last axis, and how many indices to the end of the axis before that.
struct gk_own_place {
    int32_t at;
    uint32_t room, rows;
};

__device__ static inline uint32_t gk_step_out(const gk_own_axes &axes, int axis, uint32_t &i, int32_t &at) {
    const uint32_t rest = axis + 1 < axes.ndim ? gk_divide(i, axes.axis[axis].length) : 0;
    const uint32_t index = i - rest * axes.axis[axis].length.value;
    at += (int32_t)index * axes.axis[axis].stride;
    i = rest;
    return axes.axis[axis].length.value - index;
}

// Of element i in C order.
__device__ static inline gk_own_place gk_find_own(const gk_own_axes &axes, uint32_t i) {
    gk_own_place place = {0, 1, 1};
    place.room = gk_step_out(axes, 0, i, place.at);
    if (axes.ndim > 1)
        place.rows = gk_step_out(axes, 1, i, place.at);
#pragma unroll 1
    for (int axis = 2; axis < axes.ndim; axis++)
        gk_step_out(axes, axis, i, place.at);
    return place;
}

// Where the first element behind the row of that place is, of which i is the number.
__device__ static inline int32_t gk_find_next(const gk_own_axes &axes, uint32_t i, const gk_own_place &place) {
    if (axes.ndim == 1 || place.rows == 1)
        return gk_find_own(axes, i + place.room).at;
    return place.at + axes.axis[1].stride - (int32_t)(axes.axis[0].length.value - place.room) * axes.axis[0].stride;
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

// The same as elements, each with its own place.
template <int EACH, int ARRAYS>
__device__ static inline int gk_shared_elements(const gk_units &units, int64_t (&offset)[EACH][ARRAYS]) {
    gk_share<ARRAYS> share = gk_share_of<EACH, ARRAYS>(units);
#pragma unroll
    for (int j = 0; j < EACH; j++)
#pragma unroll
        for (int k = 0; k < ARRAYS; k++)
            offset[j][k] = share.offset[k] + j * units.apart[k];
    return share.count;
}

// elements one by one ----------------------------------------------------------------------------------

// Two words of a gk_compact: the address of array k, or the number that stands in its place.
__device__ static inline uint64_t gk_words(const gk_compact &compact, int k) {
    return compact.word[2 * k] | (uint64_t)compact.word[2 * k + 1] << 32;
}

// The index along an axis, whose length is packed with its shift; i becomes the index of what is further out.
__device__ static inline uint32_t gk_take_axis(uint32_t &i, uint32_t packed, uint32_t multiplier) {
    uint32_t rest = (__umulhi(i, multiplier) + i) >> (packed / GK_COMPACT_LENGTHS);
    uint32_t index = i - rest * (packed % GK_COMPACT_LENGTHS);
    i = rest;
    return index;
}

__device__ static inline void gk_advance(int64_t &offset, int32_t index, int32_t stride) {
    offset = gk_add_product(offset, index, stride);
}
__device__ static inline void gk_advance(int32_t &offset, int32_t index, int32_t stride) {
    offset += index * stride;
}

// Where elements i of each array lie, from its address on, as far as `count` axes from AXIS on tell.
// What is computed for one element fills the time that another's takes. Offsets of 32 bits take half of
// the instructions and registers.
template <int AXIS, int EACH, int ARRAYS, typename Offset>
__device__ static inline void gk_find(const gk_compact &compact, int count, uint32_t (&i)[EACH], Offset (&offset)[EACH][ARRAYS]) {
    if constexpr (AXIS < GK_COMPACT_AXES(ARRAYS)) {
        enum { AT = 2 * ARRAYS + AXIS * (ARRAYS + 2) };
        if (count <= 0)
            return;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            uint32_t index = i[j];
            if constexpr (AXIS + 1 < GK_COMPACT_AXES(ARRAYS))
                index = gk_take_axis(i[j], compact.word[AT + ARRAYS], compact.word[AT + ARRAYS + 1]);
#pragma unroll
            for (int k = 0; k < ARRAYS; k++)
                gk_advance(offset[j][k], (int32_t)index, (int32_t)compact.word[AT + k]);
        }
        gk_find<AXIS + 1>(compact, count - 1, i, offset);
    }
}

// Up to EACH elements of a thread, a block's width apart. Returns how many there are.
template <int EACH, int ARRAYS, typename Offset>
__device__ static inline int gk_lone_elements(const gk_compact &compact, Offset (&offset)[EACH][ARRAYS]) {
    uint32_t number[EACH], first = blockIdx.x * (EACH * blockDim.x) + threadIdx.x;
    int count = 0;
#pragma unroll
    for (int j = 0; j < EACH; j++) {
        number[j] = first + j * blockDim.x;
        count += number[j] < compact.count;
#pragma unroll
        for (int k = 0; k < ARRAYS; k++)
            offset[j][k] = 0;
    }
    if (count > 0)
        gk_find<0>(compact, compact.ndim, number, offset);
    return count;
}

// From an element of array k to the next along the last axis.
template <int ARRAYS> __device__ static inline int32_t gk_last_stride(const gk_compact &compact, int k) {
    return (int32_t)compact.word[2 * ARRAYS + k];
}

// Whether every thread has a single element.
__device__ static inline bool gk_are_single(const gk_compact &compact) {
    return compact.count <= gridDim.x * blockDim.x;
}

#endif
#endif
