/* Which of two ways is faster, found out by calls that are made anyway: each way in turn, three
   times, in calls of the same size. */
#ifndef GK_DUEL_H
#define GK_DUEL_H

#include <stddef.h>

typedef struct gk_duel {
    size_t bytes; /* of the calls that count; 0: none has come */
    int turns;    /* taken so far, the first of which does not count */
    int others;   /* calls of another size since one counted */
    double least[2];
} gk_duel;

typedef enum gk_verdict { GK_UNDECIDED, GK_FIRST, GK_SECOND } gk_verdict;

/* The way whose turn it is, 0 or 1, for a call of so many bytes; -1: the call does not count. */
int gk_duel_turn(gk_duel *duel, size_t bytes);

/* What the call took. After a verdict the duel begins anew, for two other ways. */
gk_verdict gk_duel_note(gk_duel *duel, double seconds);

#endif
