/* A DeviceArray of one element as a Python number: slots and methods of its type. */
#ifndef GK_DEVICE_NUMBERS_H
#define GK_DEVICE_NUMBERS_H

#include <Python.h>

int gk_number_bool(PyObject *self);
PyObject *gk_number_int(PyObject *self);
PyObject *gk_number_float(PyObject *self);
PyObject *gk_number_index(PyObject *self);

/* The methods item, __complex__, __round__ and __format__. */
PyObject *gk_number_item(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords);
PyObject *gk_number_complex(PyObject *self, PyObject *unused);
PyObject *gk_number_round(PyObject *self, PyObject *const *arguments, Py_ssize_t count);
PyObject *gk_number_format(PyObject *self, PyObject *spec);

#endif
