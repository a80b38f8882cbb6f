// What compute capability 9.0 has beyond CUDA C++, and later ones too: what the copy engine (TMA) does beside fetching runs (ahead.cuh,
// where the barriers are that it arrives at). Code that uses it stands under GK_HOPPER; the line that defines it has the build compile
// the file for 9.0 as well.
#ifndef GK_HOPPER_CUH
#define GK_HOPPER_CUH

#include "ahead.cuh"

#ifndef GK_ROWS_ONLY

// A matrix as the copy engine knows it; made on the host (csrc/device/cuda/tensor_map.c).
struct alignas(64) gk_tensor_map {
    unsigned char bytes[128];
};

#if __CUDA_ARCH__ >= 900
#define GK_HOPPER

__device__ static inline void gk_barrier_init(gk_barrier *barrier, unsigned arrivals) { gk_barrier_init(gk_shared_address(barrier), arrivals); }
__device__ static inline void gk_barrier_expect(gk_barrier *barrier, unsigned bytes) { gk_barrier_expect(gk_shared_address(barrier), bytes); }
__device__ static inline void gk_barrier_wait(gk_barrier *barrier, unsigned phase) { gk_barrier_wait(gk_shared_address(barrier), phase); }

__device__ static inline void gk_barrier_arrive(gk_barrier *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(gk_shared_address(barrier)) : "memory");
}

// Fetch the box whose first element is at that column and row; what lies beyond the matrix is zeros.
__device__ static inline void gk_fetch_box(void *to, const gk_tensor_map &map, unsigned column, unsigned row, gk_barrier *barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(gk_shared_address(to)),
                 "l"(&map), "r"(column), "r"(row), "r"(gk_shared_address(barrier))
                 : "memory");
}

// The same of one matrix of a stack, to this block, or to the same place in each of the BLOCKS blocks of its
// cluster, where it arrives at the same barrier of each.
template <int BLOCKS>
__device__ static inline void gk_fetch_box(void *to, const gk_tensor_map &map, unsigned column, unsigned row, unsigned plane, gk_barrier *barrier) {
    if (BLOCKS == 1)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
                         gk_shared_address(to)),
                     "l"(&map), "r"(column), "r"(row), "r"(plane), "r"(gk_shared_address(barrier))
                     : "memory");
    else
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(
                         gk_shared_address(to)),
                     "l"(&map), "r"(column), "r"(row), "r"(plane), "r"(gk_shared_address(barrier)), "h"((uint16_t)((1 << BLOCKS) - 1))
                     : "memory");
}

// What threads wrote to shared memory, before the copy engine reads it.
__device__ static inline void gk_show_to_copy_engine(void) { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Store the box from shared memory, but for what lies beyond the matrix. What a thread has told the copy
// engine to store since the last call of gk_stores_end() is one group.
__device__ static inline void gk_store_box(const gk_tensor_map &map, unsigned column, unsigned row, unsigned plane, const void *from) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map), "r"(column), "r"(row), "r"(plane),
                 "r"(gk_shared_address(from))
                 : "memory");
}
__device__ static inline void gk_stores_end(void) { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Wait until all but so many of this thread's groups, the latest ones, have been read from shared memory.
template <int GROUPS> __device__ static inline void gk_stores_wait(void) {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(GROUPS) : "memory");
}

// Four 8 x 8 matrices of 2-byte elements to shared memory: the other way of gk_load_matrices().
__device__ static inline void gk_store_matrices(const uint32_t (&from)[4], unsigned row) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
}

// Arrive at the barrier that another block of the cluster, or this one, has in the same place.
__device__ static inline void gk_barrier_arrive_at(gk_barrier *barrier, unsigned block) {
    asm volatile("{\n"
                 ".reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
                 "}" ::"r"(gk_shared_address(barrier)), "r"(block) : "memory");
}

// Wait for all threads of the cluster.
__device__ static inline void gk_cluster_meet(void) {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

#endif
#endif
#endif
