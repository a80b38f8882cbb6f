// Barriers, shuffles and votes. The place of a call comes in as a default argument, so that the
// calls stay plain CUDA.
#ifndef GK_SIM_WARP_H
#define GK_SIM_WARP_H

#define GK_SIM_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

static inline void __syncthreads(GK_SIM_PLACE) {
    gk_sim_meet_block(GK_SIM_SYNCTHREADS, 0, file, line);
}
static inline int __syncthreads_count(int predicate, GK_SIM_PLACE) {
    return gk_sim_meet_block(GK_SIM_SYNCTHREADS_COUNT, predicate, file, line);
}
static inline int __syncthreads_and(int predicate, GK_SIM_PLACE) {
    return gk_sim_meet_block(GK_SIM_SYNCTHREADS_AND, predicate, file, line);
}
static inline int __syncthreads_or(int predicate, GK_SIM_PLACE) {
    return gk_sim_meet_block(GK_SIM_SYNCTHREADS_OR, predicate, file, line);
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, GK_SIM_PLACE) {
    gk_sim_meet_warp(GK_SIM_SYNCWARP, mask, 0, 0, file, line);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, GK_SIM_PLACE) {
    return (unsigned)gk_sim_meet_warp(GK_SIM_BALLOT, mask, predicate != 0, 0, file, line);
}
static inline int __any_sync(unsigned mask, int predicate, GK_SIM_PLACE) {
    return gk_sim_meet_warp(GK_SIM_ANY, mask, predicate != 0, 0, file, line) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, GK_SIM_PLACE) {
    return gk_sim_meet_warp(GK_SIM_ALL, mask, predicate != 0, 0, file, line) == mask;
}
// Threads run one at a time here, so a thread's own lane is all that is active for certain; code
// that takes this for the lanes of a branch is wrong on a GPU too.
static inline unsigned __activemask(void) {
    return 1u << (gk_sim_now.number % GK_SIM_WARP_SIZE);
}

// Integers of less than 32 bits travel as int; anything else keeps its type.
template <typename T>
using gk_sim_moved = std::conditional_t<std::is_integral<T>::value && (sizeof(T) < 4), int, T>;

template <typename T> static inline uint64_t gk_sim_bits(T value) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8,
                  "shuffles and matches take values of 2, 4 or 8 bytes");
    uint64_t bits = 0;
    __builtin_memcpy(&bits, static_cast<const void *>(&value), sizeof value);
    return bits;
}

template <typename T>
static inline T gk_sim_shuffle(gk_sim_meeting meeting, unsigned mask, T value, int by, int width,
                               const char *file, int line) {
    if (width < 1 || width > GK_SIM_WARP_SIZE || (width & (width - 1)))
        gk_sim_fault(file, line, "a shuffle of width %d, which is not a power of two up to 32",
                     width);
    int lane = (int)(gk_sim_now.number % GK_SIM_WARP_SIZE), first = lane & ~(width - 1),
        source = lane;
    if (meeting == GK_SIM_SHFL)
        source = first | (by & (width - 1));
    else if (meeting == GK_SIM_SHFL_UP)
        source = (unsigned)(lane - first) < (unsigned)by ? lane : lane - by;
    else if (meeting == GK_SIM_SHFL_DOWN)
        source = (unsigned)by >= (unsigned)(first + width - lane) ? lane : lane + by;
    else if ((lane ^ by) >= 0 && (lane ^ by) < first + width)
        source = lane ^ by;
    uint64_t bits =
        gk_sim_meet_warp(meeting, mask, gk_sim_bits(value), (unsigned)source, file, line);
    __builtin_memcpy(static_cast<void *>(&value), &bits, sizeof value);
    return value;
}

#define GK_SIM_SHUFFLE(name, meeting, type)                                                        \
    template <typename T>                                                                          \
    static inline gk_sim_moved<T> name(unsigned mask, T value, type by,                            \
                                       int width = GK_SIM_WARP_SIZE, GK_SIM_PLACE) {               \
        return gk_sim_shuffle<gk_sim_moved<T>>(meeting, mask, value, (int)by, width, file, line);  \
    }
GK_SIM_SHUFFLE(__shfl_sync, GK_SIM_SHFL, int)
GK_SIM_SHUFFLE(__shfl_up_sync, GK_SIM_SHFL_UP, unsigned)
GK_SIM_SHUFFLE(__shfl_down_sync, GK_SIM_SHFL_DOWN, unsigned)
GK_SIM_SHUFFLE(__shfl_xor_sync, GK_SIM_SHFL_XOR, int)
#undef GK_SIM_SHUFFLE

template <typename T>
static inline unsigned __match_any_sync(unsigned mask, T value, GK_SIM_PLACE) {
    return (unsigned)gk_sim_meet_warp(GK_SIM_MATCH_ANY, mask, gk_sim_bits(value), 0, file, line);
}
template <typename T>
static inline unsigned __match_all_sync(unsigned mask, T value, int *predicate, GK_SIM_PLACE) {
    uint64_t same = gk_sim_meet_warp(GK_SIM_MATCH_ANY, mask, gk_sim_bits(value), 0, file, line);
    *predicate = same == mask;
    return same == mask ? mask : 0;
}

#endif
