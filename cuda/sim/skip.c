/* Skipping ahead in XORWOW, for curand_init: its state moves on by a linear map of 160 bits, and so
   do 2^k of its steps at once. */
#include <stdlib.h>
#include <string.h>

#include "block.h"

enum { WORDS = 5, BITS = 32 * WORDS, STEPS_OF_A_SEQUENCE = 67, POWERS = 64 + STEPS_OF_A_SEQUENCE };

/* By k: what 2^k steps make of a state of which one bit is set. */
struct gk_sim_skips {
    uint32_t image[POWERS][BITS][WORDS];
};

static void step(uint32_t v[WORDS]) {
    uint32_t t = v[0] ^ (v[0] >> 2);
    memmove(v, v + 1, (WORDS - 1) * sizeof *v);
    v[4] = (v[3] ^ (v[3] << 4)) ^ (t ^ (t << 1));
}

static void apply(const uint32_t image[BITS][WORDS], uint32_t v[WORDS]) {
    uint32_t made[WORDS] = {0};
    for (unsigned bit = 0; bit < BITS; bit++)
        if (v[bit / 32] >> bit % 32 & 1)
            for (unsigned word = 0; word < WORDS; word++)
                made[word] ^= image[bit][word];
    memcpy(v, made, sizeof made);
}

static struct gk_sim_skips *make_skips(void) {
    struct gk_sim_skips *skips = calloc(1, sizeof *skips);
    for (unsigned bit = 0; bit < BITS && skips; bit++) {
        skips->image[0][bit][bit / 32] = 1u << bit % 32;
        step(skips->image[0][bit]);
    }
    for (unsigned k = 1; k < POWERS && skips; k++)
        for (unsigned bit = 0; bit < BITS; bit++) {
            memcpy(skips->image[k][bit], skips->image[k - 1][bit], sizeof skips->image[k][bit]);
            apply((const uint32_t(*)[WORDS])skips->image[k - 1], skips->image[k][bit]);
        }
    return skips;
}

/* So many steps on, or so many sequences, which are 2^67 steps each. */
GK_SIM_SHARED void gk_sim_xorwow_skip(uint32_t v[5], uint64_t count, int are_sequences);
void gk_sim_xorwow_skip(uint32_t v[5], uint64_t count, int are_sequences) {
    gk_sim_worker *worker = gk_sim_now.worker;
    unsigned k = are_sequences ? STEPS_OF_A_SEQUENCE : 0;
    if (count && !worker->skips && !(worker->skips = make_skips()))
        gk_sim_fault(NULL, 0, "out of memory for random numbers");
    for (; count; count >>= 1, k++)
        if (count & 1)
            apply((const uint32_t(*)[WORDS])worker->skips->image[k], v);
}
