// Element by element from one strided layout into another, on the device: how a strided operand of
// another library becomes contiguous, how a small operand is broadcast, and how a result reaches a
// strided `out`.
#include "device.cuh"

GK_ROW(copy, strided, bits8, gk_copy_8, 1, 256, 1, 75, "any strides; also for elements that are not aligned to their size")
GK_ROW(copy, strided, bits16, gk_copy_16, 1, 256, 2, 75, "any strides")
GK_ROW(copy, strided, bits32, gk_copy_32, 1, 256, 4, 75, "any strides")
GK_ROW(copy, strided, bits64, gk_copy_64, 1, 256, 8, 75, "any strides")

#ifndef GK_ROWS_ONLY

template <typename T>
__device__ static inline void copy_strided(char *to, const char *from, gk_layout layout, size_t n) {
    size_t rest = gk_thread();
    if (rest >= n)
        return;
    for (int axis = layout.ndim - 1; axis >= 0; axis--) {
        int64_t index = (int64_t)(rest % (size_t)layout.shape[axis]);
        rest /= (size_t)layout.shape[axis];
        to += index * layout.to[axis];
        from += index * layout.from[axis];
    }
    *(T *)to = *(const T *)from;
}

#define GK_COPY(bits)                                                                              \
    extern "C" __global__ void gk_copy_##bits(char *to, const char *from, gk_layout layout, size_t n) { \
        copy_strided<uint##bits##_t>(to, from, layout, n);                                         \
    }

GK_COPY(8)
GK_COPY(16)
GK_COPY(32)
GK_COPY(64)

#endif
