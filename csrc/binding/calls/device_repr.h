/* How a DeviceArray prints: as NumPy would print its values, and no more of them than are shown. */
#ifndef GK_DEVICE_REPR_H
#define GK_DEVICE_REPR_H

#include <Python.h>

PyObject *gk_device_array_repr(PyObject *self);
/* The same, but of a single element the number. */
PyObject *gk_device_array_str(PyObject *self);

#endif
