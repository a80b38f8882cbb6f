// Sums as tensor cores leave them in a warp's registers, on their way to memory.
#ifndef GK_FRAGMENTS_CUH
#define GK_FRAGMENTS_CUH

#include "device.cuh"

#ifndef GK_ROWS_ONLY
#ifndef GK_SIM

__device__ static inline uint32_t gk_pack_pair(float x, float y, float16) {
    __half2 pair = __floats2half2_rn(x, y);
    return *(const uint32_t *)&pair;
}
__device__ static inline uint32_t gk_pack_pair(float x, float y, bfloat16) {
    __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
    return *(const uint32_t *)&pair;
}

// Word i of lane j of each four lanes to word j of lane i.
__device__ static inline void gk_transpose_quad(uint32_t (&word)[4]) {
#pragma unroll
    for (int apart = 1; apart <= 2; apart *= 2) {
        bool is_upper = threadIdx.x & apart;
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (!(i & apart)) {
                uint32_t got = __shfl_xor_sync(GK_ALL_LANES, is_upper ? word[i] : word[i + apart], apart);
                word[i] = is_upper ? got : word[i];
                word[i + apart] = is_upper ? word[i + apart] : got;
            }
    }
}

// Four pairs of sums of one row of C, each of another 8 columns, of which four lanes hold the four pairs: a
// lane stores 8 columns, 16 bytes. All lanes have to come here; `columns` is a multiple of 8.
template <typename T>
__device__ static inline void gk_store_row(T *line, bool is_inside, size_t column, size_t columns, const float2 (&pair)[4]) {
    uint32_t word[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        word[i] = gk_pack_pair(pair[i].x, pair[i].y, T());
    gk_transpose_quad(word);
    column += threadIdx.x % 4 * 8;
    if (is_inside && column < columns)
        *(uint4 *)(line + column) = make_uint4(word[0], word[1], word[2], word[3]);
}

// The same of elements `at` and `at` + 1 of the sums of four times 8 columns; where these are no wider than
// C, a lane stores its own pairs, and `columns` is even.
template <typename T, typename W>
__device__ static inline void gk_store_sums(T *line, bool is_inside, size_t column, size_t columns, const W (&sum)[8][4], int first, int at) {
    if constexpr (sizeof(T) < sizeof(W)) {
        float2 pair[4];
#pragma unroll
        for (int p = 0; p < 4; p++)
            pair[p] = make_float2(sum[first + p][at], sum[first + p][at + 1]);
        gk_store_row(line, is_inside, column, columns, pair);
        return;
    }
    column += threadIdx.x % 4 * 2;
#pragma unroll
    for (int p = 0; p < 4; p++, column += 8) {
        gk_vector<T, 2> pair;
        const T both[2] = {gk_as<T>(sum[first + p][at]), gk_as<T>(sum[first + p][at + 1])};
        pair.pack(both);
        if (is_inside && column < columns)
            *(gk_vector<T, 2> *)(line + column) = pair;
    }
}

#endif
#endif
#endif
