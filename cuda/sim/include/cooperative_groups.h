// Cooperative groups as far as they are simulated: the block, the grid's ranks, and tiles of a
// warp.
#ifndef GK_SIM_COOPERATIVE_GROUPS_H
#define GK_SIM_COOPERATIVE_GROUPS_H

namespace cooperative_groups {

class thread_block {
  public:
    void sync(GK_SIM_PLACE) const {
        __syncthreads(file, line);
    }
    static unsigned thread_rank() {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    static unsigned size() {
        return blockDim.x * blockDim.y * blockDim.z;
    }
    static unsigned num_threads() {
        return size();
    }
    static dim3 group_index() {
        return dim3(blockIdx);
    }
    static dim3 thread_index() {
        return dim3(threadIdx);
    }
    static dim3 group_dim() {
        return blockDim;
    }
    static dim3 dim_threads() {
        return blockDim;
    }
};
static inline thread_block this_thread_block() {
    return thread_block();
}

class grid_group {
  public:
    static unsigned long long thread_rank() {
        return block_rank() * thread_block::size() + thread_block::thread_rank();
    }
    static unsigned long long block_rank() {
        return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    }
    static unsigned long long num_blocks() {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    static unsigned long long size() {
        return num_blocks() * thread_block::size();
    }
    static dim3 group_dim() {
        return gridDim;
    }
    GK_SIM_NEVER("barriers of a whole grid") void sync() const;
};
static inline grid_group this_grid() {
    return grid_group();
}

template <unsigned N, typename Parent = thread_block> class thread_block_tile {
    static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0,
                  "a tile has 1, 2, 4, 8, 16 or 32 threads");

    static unsigned mask() {
        unsigned first = gk_sim_now.number % GK_SIM_WARP_SIZE / N * N;
        return (unsigned)(((1ull << N) - 1) << first);
    }

    static unsigned mine(unsigned mask_of_warp) {
        return (mask_of_warp & mask()) >> (gk_sim_now.number % GK_SIM_WARP_SIZE / N * N);
    }

  public:
    void sync(GK_SIM_PLACE) const {
        __syncwarp(mask(), file, line);
    }
    static unsigned thread_rank() {
        return gk_sim_now.number % N;
    }
    static constexpr unsigned size() {
        return N;
    }
    static constexpr unsigned num_threads() {
        return N;
    }
    static unsigned meta_group_rank() {
        return gk_sim_now.number / N;
    }
    static unsigned meta_group_size() {
        return (thread_block::size() + N - 1) / N;
    }
    template <typename T> T shfl(T value, int source, GK_SIM_PLACE) const {
        return (T)__shfl_sync(mask(), value, source, N, file, line);
    }
    template <typename T> T shfl_up(T value, unsigned by, GK_SIM_PLACE) const {
        return (T)__shfl_up_sync(mask(), value, by, N, file, line);
    }
    template <typename T> T shfl_down(T value, unsigned by, GK_SIM_PLACE) const {
        return (T)__shfl_down_sync(mask(), value, by, N, file, line);
    }
    template <typename T> T shfl_xor(T value, unsigned by, GK_SIM_PLACE) const {
        return (T)__shfl_xor_sync(mask(), value, (int)by, N, file, line);
    }
    int any(int predicate, GK_SIM_PLACE) const {
        return __any_sync(mask(), predicate, file, line);
    }
    int all(int predicate, GK_SIM_PLACE) const {
        return __all_sync(mask(), predicate, file, line);
    }
    unsigned ballot(int predicate, GK_SIM_PLACE) const {
        return mine(__ballot_sync(mask(), predicate, file, line));
    }
    template <typename T> unsigned match_any(T value, GK_SIM_PLACE) const {
        return mine(__match_any_sync(mask(), value, file, line));
    }
};

template <unsigned N, typename Group>
static inline thread_block_tile<N, Group> tiled_partition(const Group &) {
    return thread_block_tile<N, Group>();
}
template <typename Group> static inline void sync(const Group &group, GK_SIM_PLACE) {
    group.sync(file, line);
}
template <typename Group> static inline unsigned thread_rank(const Group &) {
    return (unsigned)Group::thread_rank();
}
template <typename Group> static inline unsigned group_size(const Group &) {
    return (unsigned)Group::size();
}

} // namespace cooperative_groups

#endif
