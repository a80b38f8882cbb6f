/* One operation on Python objects, from arguments to the object that is returned. */
#ifndef GK_INVOKE_H
#define GK_INVOKE_H

#include "binding/state.h"
#include "ops/operation.h"

typedef struct gk_options {
    PyObject *out; /* each may be NULL or None */
    PyObject *variant;
    PyObject *stream;
    PyObject *dtype; /* of the result */
    PyObject *axis;  /* of a reduction */
    PyObject *axes;  /* of a transpose: their new order */
    bool matrices;   /* of a transpose: the last two axes change places */
    bool keepdims;
} gk_options;

PyObject *gk_invoke(gk_state *state, const gk_operation *operation, PyObject *const *operands,
                    const gk_options *options);

#endif
