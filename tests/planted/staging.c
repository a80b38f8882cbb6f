/* What calls find out of the host, on a clock that is made up: prints "right", or what is not so. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/staging.h"
#include "engine/ways.h"

static int failed;

static void need(int condition, const char *what) {
    if (!condition)
        printf("not so: %s\n", what);
    failed |= !condition;
}

/* Seconds on a host that is best with so many threads, chunks of so many bytes, and plain stores or
   others: each doubling or halving away from that takes so many times as long, and each call by
   chance up to so much more. */
typedef struct host {
    int workers;
    size_t chunk;
    bool past_caches;
    double slower, chance;
} host;

static double takes(const host *on, gk_staging how, size_t bytes) {
    double away = fabs(log2((double)how.workers / on->workers)) +
                  fabs(log2((double)how.chunk / (double)on->chunk)) +
                  (how.past_caches != on->past_caches);
    return (double)bytes * 1e-10 * pow(on->slower, away) * (1.0 + on->chance * rand() / RAND_MAX);
}

/* Calls until nothing is measured any more; the setting that stays. */
static int settle(gk_tuner *tuner, const host *on, size_t bytes, gk_staging *found) {
    for (int calls = 0; calls < 1000; calls++) {
        bool counts;
        *found = gk_tuner_choose(tuner, GK_GOING_BOTH, bytes, &counts);
        if (!counts)
            return calls;
        gk_tuner_note(tuner, GK_GOING_BOTH, bytes, takes(on, *found, bytes));
    }
    return -1;
}

static void find_settings(void) {
    const host hosts[] = {{8, 8 << 20, false, .slower = 1.1},
                          {2, 1 << 20, true, .slower = 1.1},
                          {12, 4 << 20, true, .slower = 1.1},
                          {1, 256 << 10, false, .slower = 1.1}};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        for (size_t bytes = 1 << 20; bytes <= (size_t)1 << 29; bytes *= 8) {
            gk_tuner tuner = {.cores = 16};
            gk_staging found, again;
            int calls = settle(&tuner, &hosts[i], bytes, &found);
            need(calls > 0 && calls < 150, "the search comes to an end");
            need(found.workers == hosts[i].workers && found.chunk == hosts[i].chunk &&
                     found.past_caches == hosts[i].past_caches,
                 "at what is best there");
            need(settle(&tuner, &hosts[i], bytes + 4, &again) == 0 && again.chunk == found.chunk,
                 "which serves all flows of about that size");
        }
    gk_tuner few = {.cores = 4};
    gk_staging found;
    (void)settle(&few, &hosts[0], 1 << 24, &found);
    need(found.workers == 4, "with no more threads than there are cores");
}

/* Where nothing makes a difference, the usual setting stays, and little is spent on it. */
static void find_nothing(void) {
    const host alike = {8, 1 << 20, true, .slower = 1.0, .chance = 0.02};
    gk_tuner tuner = {.cores = 16};
    bool counts;
    gk_staging usual = gk_tuner_choose(&tuner, GK_GOING_BOTH, 1 << 26, &counts), found;
    srand(1);
    int calls = settle(&tuner, &alike, 1 << 26, &found);
    need(calls >= 0 && calls <= 50, "no more than 50 calls");
    need(usual.workers == found.workers && usual.chunk == found.chunk &&
             usual.past_caches == found.past_caches,
         "chance changes nothing");
}

/* Where other programs have the host's cores now and then, what a call takes says little, and one
   setting after the other seems to gain: the search comes to an end all the same. */
static void find_chance(void) {
    const host busy = {8, 1 << 20, true, .slower = 1.0, .chance = 1000.0};
    for (unsigned seed = 1; seed <= 1000; seed++) {
        gk_tuner tuner = {.cores = 16};
        gk_staging found;
        srand(seed);
        int calls = settle(&tuner, &busy, 1 << 19, &found);
        need(calls >= 0 && calls <= 150, "no more than 150 calls on a busy host");
    }
}

/* Sizes that come in turn do not mix: the one that is measured stays the one, unless it does not come
   any more. */
static void take_one_size(void) {
    gk_duel duel = {0};
    need(gk_duel_turn(&duel, 100) == 0, "the first way has the first turn");
    need(gk_duel_note(&duel, 1.0) == GK_UNDECIDED, "which does not count");
    for (int i = 0; i < 7; i++)
        need(gk_duel_turn(&duel, 200) == -1, "another size does not count");
    need(gk_duel_turn(&duel, 100) == 0, "and changes nothing");
    need(gk_duel_note(&duel, 1.0) == GK_UNDECIDED, "of one way nothing is known");
    need(gk_duel_turn(&duel, 100) == 1, "now the other one");
    need(gk_duel_note(&duel, 1.3) == GK_FIRST, "what is much slower need not be tried again");
    for (int i = 0; i < 8; i++)
        (void)gk_duel_turn(&duel, 200);
    need(gk_duel_turn(&duel, 200) == 0 && duel.bytes == 200, "another size comes to count");
    double close[] = {9, 1.0, 0.9, 1.2, 0.99, 0.95, 1.5};
    gk_verdict verdict = GK_UNDECIDED;
    for (int i = 0; i < 7; i++)
        need(verdict == GK_UNDECIDED && gk_duel_turn(&duel, 200) == (i > 0 ? (i + 1) % 2 : 0), "turns"),
            verdict = gk_duel_note(&duel, close[i]);
    need(verdict == GK_SECOND, "the least of three decides");
}

static void find_ways(void) {
    gk_ways ways = {0};
    bool counts;
    need(gk_lock_init(&ways.lock), "there is a lock");
    for (size_t bytes = 64 << 10; bytes < 1 << 20; bytes *= 2) {
        double mapped = 1e-5 + (double)bytes * 2e-10, piped = 5e-5 + (double)bytes * 4e-11;
        for (int kind = 0; kind < GK_WAYS_KINDS; kind++) {
            bool usual = gk_ways_choose(&ways, kind, bytes, 192 << 10, &counts);
            need(counts && !usual, "the first turn is the small way's");
            bool other;
            (void)gk_ways_choose(&ways, kind, bytes, 192 << 10, &other);
            need(!other, "one call at a time counts");
            gk_ways_note(&ways, kind, bytes, mapped);
            (void)gk_ways_choose(&ways, kind, bytes, 192 << 10, &counts);
            gk_ways_note(&ways, kind, bytes, -1.0); /* it failed, which is no time */
            int calls = 0;
            bool flows = false;
            for (; calls < 20; calls++) {
                flows = gk_ways_choose(&ways, kind, bytes, 192 << 10, &counts);
                if (!counts)
                    break;
                gk_ways_note(&ways, kind, bytes, flows ? piped : mapped);
            }
            need(calls < 10, "it is soon known");
            need(flows == (piped < 0.97 * mapped), "which is faster");
        }
    }
    gk_lock_free(&ways.lock);
}

int main(void) {
    find_settings();
    find_nothing();
    find_chance();
    take_one_size();
    find_ways();
    if (!failed)
        puts("right");
    return failed;
}
