// out[i] = a[i] held between two bounds, which come with the launch: the kernels are elementwise.cuh's,
// with the bounds as its second and third operand.
#include "elementwise/elementwise.cuh"

GK_ROWS_OF_numbers(clip)

#ifndef GK_ROWS_ONLY

// NaN is neither below nor above, and stays; where the bounds have crossed, the upper one holds.
struct clip_of {
    enum { OPERANDS = 3 };
    template <typename T> struct Result { typedef T type; };
    template <typename T, typename W> __device__ static inline W at(W x, W low, W high) {
        W raised = x < low || low != low ? low : x;
        return raised > high || high != high ? high : raised;
    }
};
GK_KERNELS_OF_numbers(clip)

#endif
