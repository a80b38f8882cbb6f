/* The calls of a kernel of a user's module: a launch, what a launch would be given, and launches
   over host arrays in chunks. */
#ifndef GK_LAUNCHING_H
#define GK_LAUNCHING_H

#include <Python.h>

PyObject *gk_kernel_call(PyObject *object, PyObject *positional, PyObject *named);
PyObject *gk_kernel_examine(PyObject *object, PyObject *positional, PyObject *named);
PyObject *gk_kernel_map(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                        PyObject *keywords);

#endif
