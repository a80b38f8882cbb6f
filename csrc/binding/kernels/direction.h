/* In, Out and InOut: which way a host array goes that a kernel of the user's is given. */
#ifndef GK_DIRECTION_H
#define GK_DIRECTION_H

#include <Python.h>
#include <stdbool.h>

#include "binding/state.h"

extern PyType_Spec gk_in_spec, gk_out_spec, gk_inout_spec;

/* The array that one of them holds (borrowed), or the object itself. */
typedef struct gk_directed {
    PyObject *object;
    bool is_said; /* the user has said which way */
    bool is_in, is_out;
} gk_directed;
gk_directed gk_direction_of(const gk_state *state, PyObject *object);

#endif
