/* The operations as functions of the module. */
#ifndef GK_CALLS_OPERATIONS_H
#define GK_CALLS_OPERATIONS_H

#include "binding/state.h"
#include "ops/operation.h"

/* An operation on the arguments of a fast call, before which stands `self` where it is not NULL. */
PyObject *gk_call_operation(gk_state *state, const gk_operation *operation, PyObject *self,
                            PyObject *const *arguments, Py_ssize_t count, PyObject *keywords);

/* Add them to the module; the state keeps what Python knows of them. -1: raised. */
int gk_add_operations(PyObject *module, gk_state *state);

#endif
