// Copies from memory to shared memory that no thread waits for (cuda_pipeline_primitives.h). They
// are done at once, which is one of the times at which a GPU may do them.
#ifndef GK_SIM_PIPELINE_H
#define GK_SIM_PIPELINE_H

static inline void __pipeline_memcpy_async(void *to, const void *from, size_t size,
                                           size_t zeros = 0) {
    memcpy(to, from, size - zeros);
    memset((char *)to + (size - zeros), 0, zeros);
}
static inline void __pipeline_commit(void) {
}
static inline void __pipeline_wait_prior(size_t) {
}

#endif
