// A small matrix of elements in a thread's registers, turned.
#ifndef GK_TURN_CUH
#define GK_TURN_CUH
#ifndef GK_ROWS_ONLY

#include "device.cuh"

// Of DOWN rows of ACROSS elements, which fill `words`: what was a column is a row then.
template <typename T, int DOWN, int ACROSS, typename WORD, int WORDS> __device__ static inline void gk_turn(WORD (&words)[WORDS]) {
    T from[DOWN][ACROSS], to[ACROSS][DOWN];
    static_assert(sizeof from == sizeof words, "the matrix is all that is there");
    memcpy(from, words, sizeof from);
#pragma unroll
    for (int i = 0; i < DOWN; i++)
#pragma unroll
        for (int j = 0; j < ACROSS; j++)
            to[j][i] = from[i][j];
    memcpy(words, to, sizeof to);
}

#endif
#endif
