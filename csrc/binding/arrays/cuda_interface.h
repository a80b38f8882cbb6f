/* __cuda_array_interface__, version 3: the dict that describes an array in device memory. */
#ifndef GK_CUDA_INTERFACE_H
#define GK_CUDA_INTERFACE_H

#include "binding/state.h"
#include "engine/call.h"

/* Read another library's dict. The pointer in it is not checked. -1: raised, blaming argument
   `name`. */
int gk_read_cuda_interface(gk_state *state, const gk_call *call, const char *name,
                           PyObject *interface, gk_array *array);

/* The pointer alone; NULL where the dict has none. */
const void *gk_cuda_interface_data(const gk_state *state, PyObject *interface);

/* Our own dict. */
PyObject *gk_cuda_interface(const gk_array *array, gk_stream stream);

#endif
