// Copies from global to shared memory that no thread waits for, of compute capability 8.0 and up, and of 9.0 and up those of whole runs.
// What is older takes elements through registers; no PTX of 8.0 is built for these copies alone (build_tools/targets.py looks for ">= 800").
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

// Runs of whole vectors that a warp's lanes have fetched to shared memory, one each, by the copy engine of 9.0 and up, which arrives at
// a barrier there: whole lines of memory, and no lane spends instructions on them. Older devices have none, and the simulator
// copies at once. No PTX of 9.0 is built for this alone (build_tools/targets.py looks for ">= 900").
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 10 >= 90
typedef uint64_t gk_barrier; // in shared memory

__device__ static inline unsigned gk_shared_address(const void *at) {
    return (unsigned)__cvta_generic_to_shared(at);
}

// So many arrivals end a phase, when the bytes that they announced have come as well. Here and below by a barrier's address, which
// is best found once.
__device__ static inline void gk_barrier_init(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// The copy engine sees barriers only behind this.
__device__ static inline void gk_barriers_ready(void) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrive, and announce so many bytes.
__device__ static inline void gk_barrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Wait for the end of a phase; phases are 0, 1, 0, ...
__device__ static inline void gk_barrier_wait(unsigned barrier, unsigned phase) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier), "r"(phase) : "memory");
}

constexpr bool gk_fetches_runs = true;
struct gk_fetching {
    unsigned barrier, phase = 0; // of the warp

    __device__ gk_fetching(gk_barrier *place) : barrier(gk_shared_address(place)) {
        if (threadIdx.x % GK_WARP == 0) {
            gk_barrier_init(barrier, GK_WARP);
            gk_barriers_ready();
        }
        __syncwarp();
    }
    // A lane's run, or nothing; it begins on a vector on either side.
    __device__ void fetch(void *to, const void *from, unsigned bytes) const {
        gk_barrier_expect(barrier, bytes);
        if (bytes > 0)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(gk_shared_address(to)), "l"(from), "r"(bytes), "r"(barrier) : "memory");
    }
    // For the runs of all lanes, each of which has called fetch() once.
    __device__ void wait() {
        gk_barrier_wait(barrier, phase);
        phase ^= 1;
    }
};
#else
#ifdef GK_SIM
constexpr bool gk_fetches_runs = true;
#else
constexpr bool gk_fetches_runs = false;
#endif
struct gk_fetching {
    __device__ gk_fetching(uint64_t *) {}
    __device__ void fetch(void *to, const void *from, unsigned bytes) const { memcpy(to, from, bytes); }
    __device__ void wait() { __syncwarp(); }
};
#endif

#endif
#endif
