/* One operation on Python objects, from arguments to the object that is returned. */
#ifndef GK_INVOKE_H
#define GK_INVOKE_H

#include "binding/state.h"
#include "ops/operation.h"

typedef struct gk_options {
    PyObject *out;        /* each object may be NULL or None */
    const char *out_name; /* what an error calls it; NULL: "out" */
    PyObject *variant;
    PyObject *stream;
    PyObject *const *parameters; /* in the operation's order; NULL: none was given */
} gk_options;

PyObject *gk_invoke(gk_state *state, const gk_operation *operation, PyObject *const *operands,
                    const gk_options *options);

#endif
