/* NumPy's arrays as a gk_array, and new ones. */
#ifndef GK_HOST_ARRAYS_H
#define GK_HOST_ARRAYS_H

#include "binding/state.h"
#include "engine/call.h"

/* As it is, whatever its layout: it is packed as it goes to the device. The keeper (owned) keeps
   its memory alive. -1: raised, blaming argument `name`. */
int gk_take_host(gk_call *call, const char *name, PyObject *object, gk_array *array,
                 PyObject **keeper);
/* The same of an array whose dtype is known. */
void gk_view_host(PyObject *object, gk_dtype dtype, gk_array *array);
/* To take a masked array as its data would give what its mask hides. -1: raised. */
int gk_refuse_masked(const gk_call *call, const char *name, PyObject *object);

PyObject *gk_new_host_array(gk_state *state, gk_call *call, const gk_array *like);
/* One in pinned memory; MemoryError where there is none to be had. */
PyObject *gk_new_pinned_array(gk_state *state, gk_call *call, const gk_array *like);
/* -1: raised, where a test wants the next allocation to fail. */
int gk_planted_host_fault(gk_state *state, const gk_call *call);

void *gk_host_data(PyObject *array);
/* A 0-d host array as the scalar that NumPy would give; steals and returns a reference. */
PyObject *gk_as_scalar(PyObject *array);

#endif
