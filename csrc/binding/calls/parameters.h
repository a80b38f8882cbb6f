/* What an operation takes beside its operands, read from Python. */
#ifndef GK_PARAMETERS_H
#define GK_PARAMETERS_H

#include "binding/state.h"
#include "ops/operation.h"

/* Read `values`, in the order of the operation's parameters, each NULL where it was not given, into
   the operation's structure; NULL in place of all: none was given. -1: raised. */
int gk_take_parameters(gk_state *state, gk_call *call, const gk_operation *operation,
                       PyObject *const *values, const gk_array *operands, void *into);

#endif
