/* Values written into a DeviceArray, and DeviceArrays of other dtypes: slots and methods of the
   type. */
#ifndef GK_DEVICE_ASSIGN_H
#define GK_DEVICE_ASSIGN_H

#include <Python.h>

/* self[key] = value */
int gk_assign_item(PyObject *self, PyObject *key, PyObject *value);

PyObject *gk_method_fill(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords);
PyObject *gk_method_astype(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                           PyObject *keywords);
/* For copy.copy and copy.deepcopy. */
PyObject *gk_method_copied(PyObject *self, PyObject *unused);
PyObject *gk_method_copy(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords);

#endif
