// Atomics and fences. Blocks run on several OS threads, so they are real ones. Overloads are the
// ones that nvcc has, no more: what compiles here compiles there.
#ifndef GK_SIM_ATOMIC_H
#define GK_SIM_ATOMIC_H

// A GPU's atomics order nothing without a fence. ThreadSanitizer has no notion of fences, so for it
// the atomics order what the fences round them would.
#ifdef GK_SIM_USER // whose races watch.c looks for
#define GK_SIM_ORDER              __ATOMIC_RELAXED
#define GK_SIM_LOAD_ORDER         __ATOMIC_RELAXED
#define GK_SIM_FENCE(is_of_block) gk_sim_fence(is_of_block)
#elif defined(__SANITIZE_THREAD__)
#define GK_SIM_ORDER              __ATOMIC_ACQ_REL
#define GK_SIM_LOAD_ORDER         __ATOMIC_ACQUIRE
#define GK_SIM_FENCE(is_of_block) ((void)0)
#else
#define GK_SIM_ORDER              __ATOMIC_RELAXED
#define GK_SIM_LOAD_ORDER         __ATOMIC_RELAXED
#define GK_SIM_FENCE(is_of_block) __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

// A thread that spins on an atomic waits for a thread that has to get its turn. The count is the
// scheduler's, no business of ThreadSanitizer's.
#ifdef GK_SIM_USER
#define GK_SIM_INLINE static inline __attribute__((always_inline)) // the place is the caller's
GK_SIM_INLINE void gk_sim_atomic(const char *file, int line) {
    gk_sim_count_atomic(file, line);
}
#else
#define GK_SIM_INLINE static inline
__attribute__((no_sanitize("thread"))) static inline void gk_sim_atomic(const char *, int) {
    if (--gk_sim_now.atomics_left == 0)
        gk_sim_yield();
}
#endif

// old = *at; *at = change(old); returns old. B is the unsigned integer of T's size.
template <typename B, typename T, typename F>
GK_SIM_INLINE T gk_sim_update(T *at, F change, const char *file, int line) {
    static_assert(sizeof(B) == sizeof(T), "");
    gk_sim_atomic(file, line);
    B *cell = reinterpret_cast<B *>(at), before = __atomic_load_n(cell, GK_SIM_LOAD_ORDER), after;
    T old;
    do {
        __builtin_memcpy(static_cast<void *>(&old), &before, sizeof old);
        T next = change(old);
        __builtin_memcpy(&after, static_cast<const void *>(&next), sizeof after);
    } while (
        !__atomic_compare_exchange_n(cell, &before, after, true, GK_SIM_ORDER, GK_SIM_LOAD_ORDER));
    return old;
}

#define GK_SIM_ATOMIC(name, T, B, expression)                                                      \
    GK_SIM_INLINE T name(T *at, T value, GK_SIM_PLACE) {                                           \
        return gk_sim_update<B>(                                                                   \
            at, [value](T old) -> T { return expression; }, file, line);                           \
    }                                                                                              \
    GK_SIM_INLINE T name##_block(T *at, T value, GK_SIM_PLACE) {                                   \
        return name(at, value, file, line);                                                        \
    }                                                                                              \
    GK_SIM_INLINE T name##_system(T *at, T value, GK_SIM_PLACE) {                                  \
        return name(at, value, file, line);                                                        \
    }
#define GK_SIM_FETCH(name, T, operation)                                                           \
    GK_SIM_INLINE T name(T *at, T value, GK_SIM_PLACE) {                                           \
        gk_sim_atomic(file, line);                                                                 \
        return __atomic_##operation(at, value, GK_SIM_ORDER);                                      \
    }                                                                                              \
    GK_SIM_INLINE T name##_block(T *at, T value, GK_SIM_PLACE) {                                   \
        return name(at, value, file, line);                                                        \
    }                                                                                              \
    GK_SIM_INLINE T name##_system(T *at, T value, GK_SIM_PLACE) {                                  \
        return name(at, value, file, line);                                                        \
    }

GK_SIM_FETCH(atomicAdd, int, fetch_add)
GK_SIM_FETCH(atomicAdd, unsigned, fetch_add)
GK_SIM_FETCH(atomicAdd, unsigned long long, fetch_add)
GK_SIM_ATOMIC(atomicAdd, float, uint32_t, old + value)
GK_SIM_ATOMIC(atomicAdd, double, uint64_t, old + value)
#ifndef GK_SIM_USER // whose headers of these types have them
GK_SIM_ATOMIC(atomicAdd, __half, uint16_t, __hadd(old, value))
GK_SIM_ATOMIC(atomicAdd, __half2, uint32_t, __hadd2(old, value))
GK_SIM_ATOMIC(atomicAdd, __nv_bfloat16, uint16_t, __hadd(old, value))
GK_SIM_ATOMIC(atomicAdd, __nv_bfloat162, uint32_t, __hadd2(old, value))
#endif
GK_SIM_FETCH(atomicSub, int, fetch_sub)
GK_SIM_FETCH(atomicSub, unsigned, fetch_sub)

GK_SIM_ATOMIC(atomicMin, int, uint32_t, old < value ? old : value)
GK_SIM_ATOMIC(atomicMin, unsigned, uint32_t, old < value ? old : value)
GK_SIM_ATOMIC(atomicMin, long long, uint64_t, old < value ? old : value)
GK_SIM_ATOMIC(atomicMin, unsigned long long, uint64_t, old < value ? old : value)
GK_SIM_ATOMIC(atomicMax, int, uint32_t, old > value ? old : value)
GK_SIM_ATOMIC(atomicMax, unsigned, uint32_t, old > value ? old : value)
GK_SIM_ATOMIC(atomicMax, long long, uint64_t, old > value ? old : value)
GK_SIM_ATOMIC(atomicMax, unsigned long long, uint64_t, old > value ? old : value)
GK_SIM_ATOMIC(atomicInc, unsigned, uint32_t, old >= value ? 0 : old + 1)
GK_SIM_ATOMIC(atomicDec, unsigned, uint32_t, old == 0 || old > value ? value : old - 1)

#define GK_SIM_BITWISE(T)                                                                          \
    GK_SIM_FETCH(atomicAnd, T, fetch_and)                                                          \
    GK_SIM_FETCH(atomicOr, T, fetch_or)                                                            \
    GK_SIM_FETCH(atomicXor, T, fetch_xor)
GK_SIM_BITWISE(int)
GK_SIM_BITWISE(unsigned)
GK_SIM_BITWISE(unsigned long long)

GK_SIM_FETCH(atomicExch, int, exchange_n)
GK_SIM_FETCH(atomicExch, unsigned, exchange_n)
GK_SIM_FETCH(atomicExch, unsigned long long, exchange_n)
GK_SIM_ATOMIC(atomicExch, float, uint32_t, ((void)old, value))

#define GK_SIM_CAS(T)                                                                              \
    GK_SIM_INLINE T atomicCAS(T *at, T compare, T value, GK_SIM_PLACE) {                           \
        gk_sim_atomic(file, line);                                                                 \
        __atomic_compare_exchange_n(at, &compare, value, false, GK_SIM_ORDER, GK_SIM_LOAD_ORDER);  \
        return compare;                                                                            \
    }
GK_SIM_CAS(int)
GK_SIM_CAS(unsigned)
GK_SIM_CAS(unsigned long long)
GK_SIM_CAS(unsigned short)

#ifndef GK_SIM_USER // cuda_fp16.h may follow
#undef GK_SIM_ATOMIC
#endif
#undef GK_SIM_FETCH
#undef GK_SIM_BITWISE
#undef GK_SIM_CAS

GK_SIM_INLINE void __threadfence(void) {
    GK_SIM_FENCE(false);
}
GK_SIM_INLINE void __threadfence_block(void) {
    GK_SIM_FENCE(true);
}
GK_SIM_INLINE void __threadfence_system(void) {
    GK_SIM_FENCE(false);
}
GK_SIM_INLINE void __nanosleep(unsigned) {
    gk_sim_yield();
}
GK_SIM_INLINE void __trap(const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    gk_sim_fault(file, line, "__trap() was called");
}

#endif
