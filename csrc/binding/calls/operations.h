/* The operations as functions of the module. */
#ifndef GK_CALLS_OPERATIONS_H
#define GK_CALLS_OPERATIONS_H

#include "binding/state.h"

/* Add them to the module; the state keeps what Python knows of them. -1: raised. */
int gk_add_operations(PyObject *module, gk_state *state);

#endif
