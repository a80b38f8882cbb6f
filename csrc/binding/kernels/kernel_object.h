/* What a kernel of a user's module is made of: for kernel.c, which makes it, and launching.c. */
#ifndef GK_KERNEL_OBJECT_H
#define GK_KERNEL_OBJECT_H

#include <Python.h>

#include "binding/kernels/arguments.h"

typedef struct gk_kernel_object {
    PyObject ob_base;
    gk_state *state;
    PyObject *module; /* keeps the state: a collection at exit may clear the type first */
    PyObject *image;
    PyObject *name;  /* as the user asked for it: "add<float>" */
    PyObject *texts; /* of the parameters: what their fields point into */
    PyObject *symbol;
    const char *name_text, *symbol_text;
    int count;
    gk_kernel_parameter *parameters;
    const char **names;
    gk_kernel loaded[GK_MOST_DEVICES]; /* without a function until first wanted */
} gk_kernel_object;

/* The kernel on the call's device. NULL: raised. */
const gk_kernel *gk_kernel_here(gk_kernel_object *self, gk_call *call);

/* The same, for a launch whose grid, block and shared memory it and the device take. -1: raised. */
int gk_kernel_for(gk_kernel_object *self, gk_call *call, gk_launch *launch);

#endif
