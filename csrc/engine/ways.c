#include "engine/ways.h"

static gk_way *way_of(gk_ways *ways, int kind, size_t bytes) {
    int class = 0;
    while (class < GK_WAYS_CLASSES - 1 && bytes >> class >= 2 * (size_t)GK_WAYS_LEAST)
        class ++;
    return &ways->ways[kind][class];
}

/* A call whose thread is not here in the child of a fork is never noted. */
static void lock(gk_ways *ways) {
    if (gk_lock_take(&ways->lock) == GK_TAKEN)
        return;
    for (int kind = 0; kind < GK_WAYS_KINDS; kind++)
        for (int class = 0; class < GK_WAYS_CLASSES; class ++)
            ways->ways[kind][class].counts = false;
}

bool gk_ways_choose(gk_ways *ways, int kind, size_t bytes, size_t usual, bool *counts) {
    gk_way *way = way_of(ways, kind, bytes);
    lock(ways);
    bool flows = way->is_settled ? way->flows : bytes > usual;
    int turn = way->is_settled || way->counts ? -1 : gk_duel_turn(&way->duel, bytes);
    way->counts |= turn >= 0;
    gk_lock_give(&ways->lock);
    *counts = turn >= 0;
    return turn >= 0 ? turn == 1 : flows;
}

void gk_ways_note(gk_ways *ways, int kind, size_t bytes, double seconds) {
    gk_way *way = way_of(ways, kind, bytes);
    lock(ways);
    way->counts = false;
    gk_verdict verdict = seconds < 0.0 ? GK_UNDECIDED : gk_duel_note(&way->duel, seconds);
    if (verdict != GK_UNDECIDED) {
        way->is_settled = true;
        way->flows = verdict == GK_SECOND;
    }
    gk_lock_give(&ways->lock);
}
