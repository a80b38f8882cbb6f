#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/sim/simulator.h"

enum { MOST_HIDDEN = 1 << 20 }; /* bytes of an array: larger ones take too long to turn over */

struct gk_hidden {
    pthread_mutex_t lock; /* of `shown` while they are turned */
    atomic_bool shown;
    size_t count;
    gk_sim_span spans[];
};

static void turn_over(const gk_hidden *hidden) {
    for (size_t i = 0; i < hidden->count; i++) {
        unsigned char *at = (unsigned char *)hidden->spans[i].low;
        for (size_t byte = 0; byte < hidden->spans[i].high - hidden->spans[i].low; byte++)
            at[byte] = (unsigned char)~at[byte];
    }
}

static bool is_pointed_to(gk_sim_span span, const unsigned char *arguments, size_t bytes) {
    uintptr_t word;
    for (size_t at = 0; at + sizeof word <= bytes; at += sizeof word) {
        memcpy(&word, arguments + at, sizeof word);
        if (word >= span.low && word < span.high)
            return true;
    }
    return false;
}

gk_hidden *gk_hide(gk_simulated *sim, const unsigned char *arguments, size_t bytes) {
    size_t count;
    gk_sim_span *spans = gk_simulated_spans(sim, &count);
    gk_hidden *hidden = spans ? malloc(sizeof *hidden + count * sizeof *spans) : NULL;
    if (hidden) {
        hidden->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        atomic_init(&hidden->shown, false);
        hidden->count = 0;
        for (size_t i = 0; i < count; i++)
            if (spans[i].high - spans[i].low <= MOST_HIDDEN &&
                is_pointed_to(spans[i], arguments, bytes))
                hidden->spans[hidden->count++] = spans[i];
        turn_over(hidden);
    }
    free(spans);
    return hidden;
}

void gk_show(void *context) {
    gk_hidden *hidden = context;
    if (atomic_load_explicit(&hidden->shown, memory_order_acquire))
        return;
    pthread_mutex_lock(&hidden->lock);
    if (!atomic_load_explicit(&hidden->shown, memory_order_relaxed)) {
        turn_over(hidden);
        atomic_store_explicit(&hidden->shown, true, memory_order_release);
    }
    pthread_mutex_unlock(&hidden->lock);
}

void gk_hidden_free(gk_hidden *hidden) {
    gk_show(hidden);
    pthread_mutex_destroy(&hidden->lock);
    free(hidden);
}
