/* What one instance of the Python module owns. */
#ifndef GK_STATE_H
#define GK_STATE_H

#include <Python.h>

#include "call.h"
#include "engine.h"

typedef struct gk_state {
    PyObject *module; /* this module; not owned, and owned by every object that uses the state */
    gk_engine engine;
    PyObject *cuda_error;
    PyObject *device_lost_error;
    PyObject *simulator_warning;
    PyTypeObject *device_array_type;
    PyTypeObject *event_type;
    PyObject *bfloat16;   /* ml_dtypes' dtype, once one has been seen or asked for; else NULL */
    PyObject *profile;    /* the list that a gpukern.profile() fills; else NULL */
    bool simulator_shown; /* whether the line that says so has been given */
} gk_state;

/* Raise the Python exception that fits the error; always returns NULL. */
PyObject *gk_raise(const gk_state *state, const gk_error *error);

/* Open the device for a call, with the GIL, and say once that it is the simulator. -1: raised; then
   there is nothing to end. */
int gk_begin(gk_state *state, gk_call *call, const char *operation);
/* Run the call on the stream that the user names; after gk_profile_begin. -1: raised. */
int gk_take_stream(gk_state *state, gk_call *call, PyObject *object);
/* Release what the call holds, with the GIL. */
void gk_end(gk_call *call);

/* A call's entry in the open profile: starts the clock if there is one, and writes the entry. */
typedef struct gk_profiled {
    gk_phases phases;
    double start;
} gk_profiled;
void gk_profile_begin(const gk_state *state, gk_call *call, gk_profiled *profiled);
int gk_profile_end(gk_state *state, gk_call *call, const gk_profiled *profiled,
                   const gk_array *operands, int operand_count);

#endif
