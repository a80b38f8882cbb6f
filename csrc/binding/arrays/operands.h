/* What a call works on, from Python objects: arrays, numbers and flags. */
#ifndef GK_OPERANDS_H
#define GK_OPERANDS_H

#include "base/array.h"
#include "binding/state.h"

/* Take every operand of a call: arrays as they are, Python scalars in the dtype of the array beside
   them. The keepers (owned) keep their memory alive. -1: raised, and nothing is held. `order` is
   for comparisons, else NULL: an integer that the dtype does not hold is raised of where it is
   NULL; else the array stands in for it, and `order` becomes 1 where the left side is the greater
   one, or -1. */
int gk_take_operands(gk_state *state, gk_call *call, const char *const *names,
                     PyObject *const *objects, int count, gk_array *arrays, PyObject **keepers,
                     int *order);
void gk_drop_operands(PyObject **keepers, int count);
/* Whether NumPy arrays are still where they were taken: what the caller's objects do as further
   arguments are read may resize them. -1: raised. */
int gk_check_operands(const gk_call *call, const char *const *names, PyObject *const *keepers,
                      int count, const gk_array *arrays);

/* One of them that is no Python scalar, and what is raised of something else. */
int gk_take_array(gk_state *state, gk_call *call, const char *name, PyObject *object,
                  gk_array *array, PyObject **keeper);
int gk_refuse_operand(const gk_call *call, const char *name, PyObject *object);

/* One value that goes into an array of `dtype`: an array, or a Python scalar in that dtype. -1:
   raised, blaming argument `name`. */
int gk_take_value(gk_state *state, gk_call *call, const char *name, PyObject *object,
                  gk_dtype dtype, gk_array *array, PyObject **keeper);

/* A number for an array of `dtype`, or None. -1: raised, blaming argument `name`. */
int gk_take_bound(gk_state *state, gk_call *call, const char *name, PyObject *object,
                  gk_dtype dtype, gk_bound *bound);

/* The device that a call on these arrays runs on: that of the first which is in device memory (out
   may be NULL), or the one that the thread has chosen. -1: raised, blaming the argument. */
int gk_device_of(gk_state *state, const char *operation, const char *const *names,
                 PyObject *const *objects, int count, PyObject *out);

/* True or False, or the whole number or NumPy's bool that stands for it. -1: raised. */
int gk_take_flag(const char *function, const char *name, PyObject *object, bool *flag);

/* Several integers rather than one, where both are taken: an array of NumPy's has __index__
   whatever its dimensions. */
bool gk_is_sequence(PyObject *object);

/* Whether the object is something that an operation takes. */
bool gk_is_operand(gk_state *state, PyObject *object);
/* Whether an operator leaves the work to the other side: that is no operand, or an array of a class
   that has ways of its own for what NumPy does. Not to what Python would repeat. -1: raised. */
int gk_yields(gk_state *state, PyObject *object);

#endif
