// Copies from global to shared memory that no thread waits for, of compute capability 8.0 and up. What is older takes elements
// through registers; no PTX of 8.0 is built for these copies alone (build_tools/targets.py looks for ">= 800").
#ifndef GK_AHEAD_CUH
#define GK_AHEAD_CUH

#include "device.cuh"

#ifndef GK_ROWS_ONLY

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 10 >= 80

// 16 bytes on their way to shared memory, of which the first `bytes` are fetched and the others zeros.
__device__ static inline void gk_copy_16(unsigned to, const void *from, unsigned bytes) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// The same of 4 bytes.
__device__ static inline void gk_copy_4(unsigned to, const void *from, unsigned bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// An element of 4 or 8 bytes, or a vector of 16.
template <int BYTES> constexpr bool gk_copies_ahead = BYTES == 4 || BYTES == 8;
template <int BYTES> __device__ static inline void gk_copy_element(void *to, const void *from) {
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "n"(BYTES) : "memory");
}

// What this thread has sent on its way since the last call is one group; there may be nothing in it.
__device__ static inline void gk_copies_end(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Wait until no more than so many of this thread's groups, the latest ones, are on their way.
template <int GROUPS> __device__ static inline void gk_copies_wait(void) {
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}

#else // what is older has copied by now, and so has the simulator
template <int BYTES> constexpr bool gk_copies_ahead = false;
template <int BYTES> __device__ static inline void gk_copy_element(void *to, const void *from) { memcpy(__builtin_assume_aligned(to, BYTES), __builtin_assume_aligned(from, BYTES), BYTES); }
template <int GROUPS> __device__ static inline void gk_copies_wait(void) {}
__device__ static inline void gk_copies_end(void) {}
#endif

#endif
#endif
