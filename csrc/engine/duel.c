#include "engine/duel.h"

enum {
    ROUNDS = 3,
    PATIENCE = 8, /* calls of another size before theirs becomes the one that counts */
};

/* What is less than that may be chance, and what is more needs no second look. */
static const double gain = 0.97, hopeless = 1.25;

int gk_duel_turn(gk_duel *duel, size_t bytes) {
    if (bytes != duel->bytes && duel->bytes != 0 && ++duel->others < PATIENCE)
        return -1;
    if (bytes != duel->bytes)
        *duel = (gk_duel){.bytes = bytes};
    duel->others = 0;
    return duel->turns > 0 ? (duel->turns + 1) % 2 : 0; /* the first one once more */
}

static gk_verdict end(gk_duel *duel, gk_verdict verdict) {
    *duel = (gk_duel){.bytes = duel->bytes, .turns = 1};
    return verdict;
}

gk_verdict gk_duel_note(gk_duel *duel, double seconds) {
    int turn = duel->turns++, way = (turn + 1) % 2;
    if (turn == 0)
        return GK_UNDECIDED;
    if (turn <= 2 || seconds < duel->least[way])
        duel->least[way] = seconds;
    if (way == 0)
        return GK_UNDECIDED;
    if (duel->least[1] > hopeless * duel->least[0])
        return end(duel, GK_FIRST);
    if (turn < 2 * ROUNDS)
        return GK_UNDECIDED;
    return end(duel, duel->least[1] < gain * duel->least[0] ? GK_SECOND : GK_FIRST);
}
