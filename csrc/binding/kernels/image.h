/* Image: machine code or PTX, loaded on each device when a kernel of it is first wanted there. */
#ifndef GK_IMAGE_H
#define GK_IMAGE_H

#include <Python.h>

#include "binding/state.h"
#include "engine/call.h"

extern PyType_Spec gk_image_spec;

/* The kernel of that symbol on the call's device. -1: raised. */
int gk_image_kernel(gk_state *state, gk_call *call, PyObject *image, const char *symbol,
                    gk_kernel *kernel);
/* What a graph has is not given back while the process lives. */
void gk_image_keep(PyObject *image);

#endif
