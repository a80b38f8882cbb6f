/* What Python gives a kernel of the user's, as the launch takes it. */
#ifndef GK_KERNEL_ARGUMENTS_H
#define GK_KERNEL_ARGUMENTS_H

#include <Python.h>

#include "binding/state.h"
#include "ops/user_kernel.h"

/* What keeps the memory of an argument alive. */
typedef struct gk_holding {
    PyObject *keeper; /* owned, or NULL */
    Py_buffer buffer;
    bool has_buffer;
} gk_holding;

/* -1: raised, blaming the parameter as it is written; what is held has to be let go either way. */
int gk_take_kernel_argument(gk_state *state, gk_call *call, const gk_kernel_parameter *parameter,
                            PyObject *object, gk_kernel_argument *argument, gk_holding *holding);
/* An array of any strides and byte order for a pointer. */
int gk_take_plain_array(gk_state *state, gk_call *call, const gk_kernel_parameter *parameter,
                        PyObject *object, gk_array *array, gk_holding *holding);
void gk_let_go(gk_holding *holdings, int count);

#endif
