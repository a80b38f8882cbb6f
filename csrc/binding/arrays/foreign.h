/* Arrays of other libraries in device memory: by DLPack's table of C functions, by
   __cuda_array_interface__ or by __dlpack__, whichever the object has first. Nothing is copied. */
#ifndef GK_FOREIGN_H
#define GK_FOREIGN_H

#include "binding/state.h"
#include "engine/call.h"

bool gk_is_foreign(gk_state *state, PyObject *object);

/* The number of the device that its memory is on; -1: on none, or nobody knows; -2: raised, blaming
   argument `name`. */
int gk_foreign_place(gk_state *state, const char *operation, const char *name, PyObject *object);

/* -1: raised, blaming argument `name`. The keeper (owned) keeps the memory alive. */
int gk_take_foreign(gk_state *state, gk_call *call, const char *name, PyObject *object,
                    gk_array *array, PyObject **keeper);

/* By either way of DLPack alone; the keeper may outlive the object. */
int gk_take_dlpack(gk_state *state, gk_call *call, const char *name, PyObject *object,
                   gk_array *array, PyObject **keeper);

#endif
