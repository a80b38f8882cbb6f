// Long rows whose elements lie evenly apart, such as a column of a table: neighbouring lanes load neighbours, which lie in
// as few sectors as they can, and then hand them on through shared memory, so that each has the vector that is its own.
#ifndef GK_REDUCE_LINE_CUH
#define GK_REDUCE_LINE_CUH

#include "reduce/elements.cuh"

template <typename T> struct gk_line {
    typedef T Element;
    enum { WIDTH = gk_vector<T>::WIDTH, AT_ONCE = sizeof(T) == 1 ? GK_REDUCE_GATHERED_LOADS / 2 : GK_REDUCE_GATHERED_LOADS, LEAST = AT_ONCE };
    static constexpr bool IS_RUN = false;
    static constexpr gk_lies RAGGED = GK_BESIDE;
    const gk_gathered<T> *all;
    const char *first;
    int64_t step; // bytes

    __device__ gk_line operator+(size_t i) const { return {all, first + (int64_t)i * step, step}; }
    __device__ gk_line row(const gk_reduction &how, size_t i) const { return {all, all->row(how, i).base, how.apart}; }
    __device__ static constexpr bool is_aligned() { return false; }
    __device__ static constexpr bool reaches(size_t) { return true; }
    template <gk_lies LIES, int COUNT> __device__ static void load(gk_vector<T> (&loaded)[COUNT], const gk_line (&at)[COUNT], int wanted, int some = COUNT) {
        if constexpr (LIES == GK_BESIDE) {
            load_beside(loaded, at, some);
        } else {
            const int64_t step = at[0].step;
            const char *place[COUNT];
#pragma unroll
            for (int j = 0; j < COUNT; j++)
                place[j] = at[j].first;
            gk_load_apart(loaded, place, wanted, [&](int, int) { return step; });
        }
    }
    template <int COUNT> __device__ static void load_beside(gk_vector<T> (&loaded)[COUNT], const gk_line (&at)[COUNT], int some) {
        GK_DYNAMIC_SHARED(uint4, memory);
        const int lane = threadIdx.x % GK_WARP;
        const int64_t step = at[0].step;
        uint4 *const vectors = memory + (threadIdx.x - lane); // a warp's
        T *const elements = (T *)vectors;
        T x[COUNT][WIDTH];
#pragma unroll
        for (int j = 0; j < COUNT; j++)
            if (j < some) {
                const char *from = at[j].first + (lane - lane * WIDTH) * step; // a lane's first of the warp's elements
#pragma unroll
                for (int e = 0; e < WIDTH; e++, from += GK_WARP * step)
                    x[j][e] = gk_read<T>(from);
            }
#pragma unroll
        for (int j = 0; j < COUNT; j++)
            if (j < some) {
#pragma unroll
                for (int e = 0; e < WIDTH; e++)
                    elements[e * GK_WARP + lane] = x[j][e];
                __syncwarp();
                loaded[j] = *(const gk_vector<T> *)(vectors + lane);
                __syncwarp();
            }
    }
};

#endif
