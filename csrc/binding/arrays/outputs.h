/* Where results go. */
#ifndef GK_OUTPUTS_H
#define GK_OUTPUTS_H

#include "base/array.h"
#include "binding/state.h"

/* Where a result goes: `object` is what the user gets, `array` what the engine writes. Before a
   host array of the user's stands a `bridge`, so that no failure leaves it half written, but before
   pinned memory, which is there to be written without a second pass. */
typedef struct gk_output {
    gk_array array;
    gk_array target;  /* the user's host array, where a bridge stands before it */
    PyObject *object; /* owned */
    PyObject *bridge; /* owned, or NULL */
    PyObject *keeper; /* of device memory; owned, or NULL */
} gk_output;

/* Check the user's `out` against the result that was inferred; `operands` are what the call reads,
   NULL where that is not known. -1: raised, blaming `name`. */
int gk_take_output(gk_state *state, gk_call *call, const char *name, PyObject *out,
                   const gk_array *expected, const gk_array *operands, int count,
                   gk_output *output);
/* That what the user gave is no device array, which the host would write. -1: raised. */
int gk_check_on_host(const gk_call *call, const gk_output *output);
/* A new host array for the result. */
int gk_new_output(gk_state *state, gk_call *call, const gk_array *expected, gk_output *output);
/* What has to be done after the engine has written: -1 raised. */
int gk_finish_output(const gk_call *call, gk_output *output);
void gk_drop_output(gk_output *output);

#endif
