#include "engine/staging.h"

#include <string.h>

/* The knobs, and their steps. */
enum { WORKERS, CHUNK, STORES };
static const int workers_steps[] = {1, 2, 4, 6, 8, 12, 16};
enum { WORKER_STEPS = sizeof workers_steps / sizeof workers_steps[0] };
enum { CHUNK_STEPS = 6 }; /* from 256 KiB on, each twice the one before */
enum { STORE_STEPS = 2 };
static const size_t least_chunk = GK_STAGING_CHUNK >> (CHUNK_STEPS - 1);

enum {
    USUAL_WORKERS = 8,
    MANY_WORKERS = 12,             /* cores that were idle are slow for their first 2 ms */
    MANY_WORKERS_BYTES = 16 << 20, /* flows as long as this and longer begin with them */
    USUAL_CHUNKS = 16,             /* of a flow */
    USUAL_CHUNK = 1 << 20,         /* the least of them */
    PAST_CACHES_BYTES = 48 << 20,  /* longer flows than this write through the caches */
    DIRECTIONS = 2,                /* up and down the steps of a knob */
    TRIES = GK_STAGING_KNOBS * DIRECTIONS,
    MOST_DUELS = 24, /* where times are chance, gains are too, and would go round for long */
};

static int class_of(size_t bytes) {
    int class = 0;
    while (class < GK_STAGING_CLASSES - 1 && bytes >> class >= 2 * (size_t)GK_STAGING_LEAST_BYTES)
        class ++;
    return class;
}

static int steps_of(const gk_tuner *tuner, int knob) {
    int workers = 1;
    while (workers < WORKER_STEPS && workers_steps[workers] <= tuner->cores)
        workers++;
    const int steps[GK_STAGING_KNOBS] = {workers, CHUNK_STEPS, STORE_STEPS};
    return steps[knob];
}

/* What was best on the host that this was written on: chunks of which some are under way while
   others are packed, and past the caches where these would not be read again before they are
   written. */
static void begin(const gk_tuner *tuner, gk_search *search, size_t bytes) {
    signed char *best = search->best;
    const bool many = bytes >= MANY_WORKERS_BYTES && tuner->cores > MANY_WORKERS;
    const int workers = many ? MANY_WORKERS : USUAL_WORKERS;
    search->begun = true;
    while (best[WORKERS] + 1 < steps_of(tuner, WORKERS) && workers_steps[best[WORKERS]] < workers)
        best[WORKERS]++;
    while (best[CHUNK] + 1 < CHUNK_STEPS && (least_chunk << best[CHUNK] < USUAL_CHUNK ||
                                             least_chunk << best[CHUNK] < bytes / USUAL_CHUNKS))
        best[CHUNK]++;
    best[STORES] = bytes < PAST_CACHES_BYTES;
}

/* The best so far, one knob a step up or down: false where there is no such step. */
static bool challenge(const gk_tuner *tuner, const gk_search *search, signed char *at) {
    const int knob = search->step / DIRECTIONS, change = search->step % DIRECTIONS ? -1 : 1;
    memcpy(at, search->best, sizeof search->best);
    at[knob] = (signed char)(at[knob] + change);
    return at[knob] >= 0 && at[knob] < steps_of(tuner, knob);
}

static bool is_settled(const gk_search *search) {
    return search->in_vain >= TRIES || search->duels >= MOST_DUELS;
}

static void give_up(gk_search *search) {
    search->step = (signed char)((search->step + 1) % TRIES);
    search->in_vain++;
}

static gk_staging setting_at(const signed char *at) {
    return (gk_staging){.workers = workers_steps[at[WORKERS]],
                        .chunk = least_chunk << at[CHUNK],
                        .past_caches = at[STORES] != 0};
}

gk_staging gk_tuner_choose(gk_tuner *tuner, gk_direction direction, size_t bytes, bool *counts) {
    gk_search *search = &tuner->searches[direction][class_of(bytes)];
    signed char at[GK_STAGING_KNOBS];
    if (!search->begun)
        begin(tuner, search, bytes);
    while (!is_settled(search) && !challenge(tuner, search, at))
        give_up(search);
    int turn = is_settled(search) ? -1 : gk_duel_turn(&search->duel, bytes);
    *counts = turn >= 0;
    return setting_at(turn == 1 ? at : search->best);
}

bool gk_tuner_tell(const gk_tuner *tuner, gk_direction direction, int number, size_t *bytes,
                   gk_staging *staging, bool *settled) {
    const gk_search *search = &tuner->searches[direction][number];
    *bytes = number > 0 ? (size_t)GK_STAGING_LEAST_BYTES << number : 0;
    *staging = setting_at(search->best);
    *settled = is_settled(search);
    return search->begun;
}

void gk_tuner_note(gk_tuner *tuner, gk_direction direction, size_t bytes, double seconds) {
    gk_search *search = &tuner->searches[direction][class_of(bytes)];
    signed char at[GK_STAGING_KNOBS];
    gk_verdict verdict = gk_duel_note(&search->duel, seconds);
    if (verdict == GK_UNDECIDED)
        return;
    search->duels++;
    if (verdict == GK_FIRST) {
        give_up(search);
        return;
    }
    (void)challenge(tuner, search, at); /* that it is a step was seen when it was chosen */
    memcpy(search->best, at, sizeof search->best);
    search->in_vain = 0; /* and the next step goes on in the same direction */
}
