/* A DeviceArray and DLPack: memory of others as one, and one lent to others. */
#ifndef GK_DEVICE_DLPACK_H
#define GK_DEVICE_DLPACK_H

#include "binding/state.h"

/* The memory that a DLPack producer lends, as an array, or a copy where `copy` asks for one. */
PyObject *gk_device_array_from_dlpack(gk_state *state, PyObject *source, PyObject *copy);

/* The methods __dlpack__ and __dlpack_device__. */
PyObject *gk_method_dlpack(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                           PyObject *keywords);
PyObject *gk_method_dlpack_device(PyObject *self, PyObject *unused);

#endif
