/* Python objects to gk_array and back; the only user of the NumPy C API. */
#ifndef GK_OPERANDS_H
#define GK_OPERANDS_H

#include "base/array.h"
#include "binding/state.h"

/* Load NumPy's C API; -1: raised. */
int gk_args_init(void);

/* Take every operand of a call: arrays as they are, Python scalars in the dtype of the array beside
   them. The keepers (owned) keep their memory alive. -1: raised, and nothing is held. */
int gk_take_operands(gk_state *state, gk_call *call, const char *const *names,
                     PyObject *const *objects, int count, gk_array *arrays, PyObject **keepers);
void gk_drop_operands(PyObject **keepers, int count);

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

/* Where a result goes: `object` is what the user gets, `array` what the engine writes. Before a
   host array of the user's stands a `bridge`, so that no failure leaves it half written, but before
   pinned memory, which is there to be written without a second pass. */
typedef struct gk_output {
    gk_array array;
    gk_array target;  /* the user's host array, where a bridge stands before it */
    PyObject *object; /* owned */
    PyObject *bridge; /* owned, or NULL */
    PyObject *keeper; /* of device memory; owned, or NULL */
} gk_output;

/* Check the user's `out` against the result that was inferred; `operands` are what the call reads,
   NULL where that is not known. -1: raised, blaming `name`. */
int gk_take_output(gk_state *state, gk_call *call, const char *name, PyObject *out,
                   const gk_array *expected, const gk_array *operands, int count,
                   gk_output *output);
/* A new host array for the result. */
int gk_new_output(gk_state *state, gk_call *call, const gk_array *expected, gk_output *output);
/* What has to be done after the engine has written: -1 raised. */
int gk_finish_output(const gk_call *call, gk_output *output);
void gk_drop_output(gk_output *output);
/* A 0-d host array as the scalar that NumPy would give; steals and returns a reference. */
PyObject *gk_as_scalar(PyObject *array);

PyObject *gk_new_host_array(gk_state *state, gk_call *call, const gk_array *like);
/* One in pinned memory; MemoryError where there is none to be had. */
PyObject *gk_new_pinned_array(gk_state *state, gk_call *call, const gk_array *like);
void *gk_host_data(PyObject *array);

int gk_shape_from_object(const char *function, PyObject *object, gk_array *array);
PyObject *gk_dtype_object(gk_state *state, gk_dtype dtype); /* a new numpy.dtype */
int gk_dtype_from_object(gk_state *state, const char *function, PyObject *object, gk_dtype *dtype);

#endif
