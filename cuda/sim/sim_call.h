// A kernel as a function of pointers to its arguments, by its own parameter types.
#ifndef GK_SIM_CALL_H
#define GK_SIM_CALL_H

#ifdef GK_SIM_USER // what reads the arguments is not the kernel, and not watched
#define GK_SIM_UNWATCHED __attribute__((no_sanitize("thread"), noinline))
#else
#define GK_SIM_UNWATCHED
#endif

template <auto kernel> struct gk_sim_call;
template <typename... P, void (*kernel)(P...)> struct gk_sim_call<kernel> {
    template <size_t... i>
    GK_SIM_UNWATCHED static void spread(void **arguments, std::index_sequence<i...>) {
        (void)arguments;
#ifdef GK_SIM_USER
        void (*called)(P...) = kernel;
        __asm__("" : "+r"(called)); /* not inlined here, where nothing is watched */
        called(*static_cast<std::remove_reference_t<P> *>(arguments[i])...);
#else
        kernel(*static_cast<std::remove_reference_t<P> *>(arguments[i])...);
#endif
    }
    static constexpr unsigned sizes[] = {sizeof(std::remove_reference_t<P>)..., 0};
    static void run(void **arguments) {
        spread(arguments, std::index_sequence_for<P...>());
    }
};

#endif
