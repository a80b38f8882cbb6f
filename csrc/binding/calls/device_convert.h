/* A DeviceArray made of other arrays, and NumPy arrays made of it. */
#ifndef GK_DEVICE_CONVERT_H
#define GK_DEVICE_CONVERT_H

#include "binding/arrays/device_object.h"

/* A contiguous copy of a DeviceArray, on its device, made by the call of that name. */
PyObject *gk_device_array_copy(const char *operation, PyObject *self, PyObject *stream);
/* What gpukern.to_device does: the copy is on the thread's device, wherever the source is. */
PyObject *gk_to_device(gk_state *state, PyObject *source, PyObject *stream);
/* The operand of a call made contiguous, in memory of its own. */
PyObject *gk_device_array_copy_operand(gk_state *state, gk_call *call, const gk_array *operand);

/* Run the call where the array is ordered. -1: raised. */
int gk_device_array_go_home(gk_device_array *self, gk_call *call);
/* That it is made by nothing that is being captured. -1: raised. */
int gk_device_array_has_values(const gk_device_array *self, const gk_call *call);
/* Its values in a new NumPy array, or in the one that is given. */
PyObject *gk_device_array_to_host(gk_device_array *self, PyObject *out);

/* NumPy's protocols, by which its functions leave to us what they do with a DeviceArray. */
PyObject *gk_method_array_ufunc(PyObject *self, PyObject *arguments, PyObject *keywords);
PyObject *gk_method_array_function(PyObject *self, PyObject *arguments, PyObject *keywords);

/* The methods to_host, tolist and __array__. */
PyObject *gk_method_to_host(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                            PyObject *keywords);
PyObject *gk_method_bytes(PyObject *self, PyObject *unused);
PyObject *gk_method_tolist(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                           PyObject *keywords);
PyObject *gk_method_array(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                          PyObject *keywords);

#endif
