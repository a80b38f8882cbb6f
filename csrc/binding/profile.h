/* A call's entry in the open profile. */
#ifndef GK_PROFILE_H
#define GK_PROFILE_H

#include "binding/state.h"
#include "engine/call.h"

/* Starts the clock if there is a profile, and writes the entry. */
typedef struct gk_profiled {
    gk_phases phases;
    double start;
} gk_profiled;
void gk_profile_begin(const gk_state *state, gk_call *call, gk_profiled *profiled);
int gk_profile_end(gk_state *state, gk_call *call, const gk_profiled *profiled,
                   const gk_array *operands, int operand_count);

#endif
