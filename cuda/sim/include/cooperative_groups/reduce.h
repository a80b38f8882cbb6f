// Reductions over a tile.
#ifndef GK_SIM_COOPERATIVE_GROUPS_REDUCE_H
#define GK_SIM_COOPERATIVE_GROUPS_REDUCE_H
#include <cooperative_groups.h>

namespace cooperative_groups {

#define GK_SIM_OPERATION(name, expression)                                                         \
    template <typename T> struct name {                                                            \
        T operator()(T x, T y) const {                                                             \
            return expression;                                                                     \
        }                                                                                          \
    };
GK_SIM_OPERATION(plus, x + y)
GK_SIM_OPERATION(less, x < y ? x : y)
GK_SIM_OPERATION(greater, x > y ? x : y)
GK_SIM_OPERATION(bit_and, x &y)
GK_SIM_OPERATION(bit_or, x | y)
GK_SIM_OPERATION(bit_xor, x ^ y)
#undef GK_SIM_OPERATION

template <unsigned N, typename Parent, typename T, typename F>
static inline T reduce(const thread_block_tile<N, Parent> &tile, T value, F operation,
                       GK_SIM_PLACE) {
    for (unsigned by = N / 2; by; by /= 2)
        value = operation(value, tile.shfl_xor(value, by, file, line));
    return value;
}

} // namespace cooperative_groups

#endif
