/* Why no thread of a block can go on: the sentence for a barrier or a mask that is not met. */
#include "block.h"

#include <stdio.h>
#include <string.h>

static const char *meeting_name(unsigned meeting) {
    static const char *const names[] = {
#define GK_NAME(name, text) [GK_SIM_##name] = text,
        GK_SIM_MEETINGS(GK_NAME)
#undef GK_NAME
    };
    return names[meeting];
}

typedef struct gk_sim_words {
    char text[176];
} gk_sim_words;

static gk_sim_words thread_name(const gk_sim_worker *worker, unsigned number) {
    gk_sim_words words;
    gk_sim_index at = worker->threads[number].index;
    snprintf(words.text, sizeof words.text, "thread (%u, %u, %u)", at.x, at.y, at.z);
    return words;
}

/* "has returned", "waits at __syncthreads() in sum.cu:31". */
static gk_sim_words doing(const gk_sim_worker *worker, unsigned number) {
    gk_sim_words words;
    const gk_sim_thread *thread = worker->threads + number;
    if (worker->doing[number] == GK_SIM_RETURNED) {
        snprintf(words.text, sizeof words.text, "has returned");
        return words;
    }
    const char *slash = strrchr(thread->file, '/');
    const char *file = slash ? slash + 1 : thread->file;
    int used = snprintf(words.text, sizeof words.text, "waits at %s() in %.80s:%d",
                        meeting_name(thread->meeting), file, thread->line);
    if (worker->doing[number] == GK_SIM_WAITS_FOR_WARP)
        snprintf(words.text + used, sizeof words.text - (size_t)used, " with mask 0x%08x",
                 thread->mask);
    return words;
}

/* The thread waits for the lanes of its mask: the first one that is not coming. */
static void explain_warp(gk_sim_worker *worker, unsigned number) {
    const gk_sim_thread *thread = worker->threads + number;
    unsigned first = number / GK_SIM_WARP * GK_SIM_WARP, lane = 0;
    for (; lane < GK_SIM_WARP; lane++) {
        if (!(thread->mask >> lane & 1))
            continue;
        const gk_sim_thread *other = worker->threads + first + lane;
        if (first + lane >= worker->count || worker->doing[first + lane] != GK_SIM_WAITS_FOR_WARP ||
            other->mask != thread->mask || other->meeting != thread->meeting)
            break;
    }
    gk_sim_words name = thread_name(worker, number), waits = doing(worker, number);
    if (first + lane >= worker->count) {
        snprintf(worker->problem, sizeof worker->problem,
                 "%s %s, but a block of %u threads has no lane %u in its warp %u", name.text,
                 waits.text, worker->count, lane, number / GK_SIM_WARP);
        return;
    }
    gk_sim_words other = thread_name(worker, first + lane), does = doing(worker, first + lane);
    snprintf(worker->problem, sizeof worker->problem, "%s %s, which names lane %u, but %s %s",
             name.text, waits.text, lane, other.text, does.text);
}

static bool same_place(const gk_sim_thread *a, const gk_sim_thread *b) {
    return a->meeting == b->meeting && a->line == b->line && strcmp(a->file, b->file) == 0;
}

/* The thread waits for the block: the first thread that is elsewhere, and how many are. */
static void explain_block(gk_sim_worker *worker, unsigned number) {
    unsigned elsewhere = 0, other = number;
    for (unsigned i = 0; i < worker->count; i++)
        if (worker->doing[i] != GK_SIM_WAITS_FOR_BLOCK ||
            !same_place(worker->threads + i, worker->threads + number)) {
            if (!elsewhere++)
                other = i;
        }
    gk_sim_words name = thread_name(worker, number), waits = doing(worker, number);
    gk_sim_words missing = thread_name(worker, other), does = doing(worker, other);
    snprintf(worker->problem, sizeof worker->problem,
             "%s %s, which %u of the block's %u threads do not reach: %s %s", name.text, waits.text,
             elsewhere, worker->count, missing.text, does.text);
}

void gk_sim_explain(gk_sim_worker *worker) {
    unsigned at_block = worker->count;
    for (unsigned i = 0; i < worker->count; i++) {
        if (worker->doing[i] == GK_SIM_WAITS_FOR_WARP) {
            explain_warp(worker, i);
            return;
        }
        if (worker->doing[i] == GK_SIM_WAITS_FOR_BLOCK && at_block == worker->count)
            at_block = i;
    }
    explain_block(worker, at_block);
}
