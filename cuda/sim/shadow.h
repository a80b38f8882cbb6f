/* Who touched each word of global memory in a launch, for races between its threads. */
#ifndef GK_SIM_SHADOW_H
#define GK_SIM_SHADOW_H

#include "block.h"

typedef struct gk_sim_shadow gk_sim_shadow;

/* One touch. Threads of a block are ordered by epochs, which barriers part, and those of a warp by
   clocks too, see watch.c; blocks are not, but by means of the kernel's own. */
typedef struct gk_sim_mark {
    uint32_t block, epoch;
    uint16_t thread, clock;
    uint32_t
        place; /* in the module: behind the call, or of the file's name where there is a line */
    unsigned line : 23;
    unsigned bytes : 4; /* of the word, a mask; 0: nobody */
    unsigned is_write : 1;
    unsigned is_atomic : 1;  /* and has changed it */
    unsigned is_soft : 1;    /* atomic or volatile: such touches are no race with each other */
    unsigned is_settled : 1; /* of a write: it has been done, */
    unsigned is_silent : 1;  /* and has changed nothing */
} gk_sim_mark;

enum { GK_SIM_MOST_COMPARED = 64 }; /* bytes of a write of which values are compared */

/* What a touch meets that may come before or after it. Of a write the values decide. */
typedef struct gk_sim_met {
    struct gk_sim_page *recent; /* the page that was found last; NULL at the start of a launch */
    gk_sim_mark race;           /* bytes 0: none at once */
    gk_sim_mark written, read;  /* by others, before a write that is to be done; bytes 0: none */
    uint64_t compared;          /* bytes of which their value is known, a mask */
    unsigned char theirs[GK_SIM_MOST_COMPARED];
} gk_sim_met;

typedef enum gk_sim_touching { GK_SIM_READS, GK_SIM_WRITES, GK_SIM_CHANGES } gk_sim_touching;

GK_SIM_HIDDEN gk_sim_shadow *gk_sim_shadow_new(void); /* NULL: out of memory */
GK_SIM_HIDDEN void gk_sim_shadow_free(gk_sim_shadow *shadow);

/* Note a touch of `bytes` from there on; `mine` says all but which bytes. */
GK_SIM_HIDDEN void gk_sim_shadow_touch(gk_sim_worker *worker, uintptr_t at, size_t bytes,
                                       gk_sim_touching what, gk_sim_mark mine, gk_sim_met *met);
/* Such a write has been done, where `was` was. */
GK_SIM_HIDDEN void gk_sim_shadow_settle(gk_sim_worker *worker, uintptr_t at, size_t bytes,
                                        gk_sim_mark mine, const unsigned char *was,
                                        gk_sim_met *met);
/* From here on threads order one another by means of their own, over all blocks. */
GK_SIM_HIDDEN void gk_sim_shadow_order(gk_sim_shadow *shadow);

#endif
