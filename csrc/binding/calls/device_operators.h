/* The operators of a DeviceArray, each an operation: slots of its type. */
#ifndef GK_DEVICE_OPERATORS_H
#define GK_DEVICE_OPERATORS_H

#include <Python.h>

/* X(slot, operation) */
#define GK_UNARY_SLOTS(X)                                                                          \
    X(negative, negative)                                                                          \
    X(absolute, abs)
#define GK_BINARY_SLOTS(X)                                                                         \
    X(add, add)                                                                                    \
    X(subtract, subtract)                                                                          \
    X(multiply, multiply)                                                                          \
    X(true_divide, divide)                                                                         \
    X(matrix_multiply, matmul)

#define GK_DECLARE(slot, operation) PyObject *gk_operator_##slot(PyObject *);
GK_UNARY_SLOTS(GK_DECLARE)
#undef GK_DECLARE
#define GK_DECLARE(slot, operation)                                                                \
    PyObject *gk_operator_##slot(PyObject *, PyObject *);                                          \
    PyObject *gk_operator_inplace_##slot(PyObject *, PyObject *);
GK_BINARY_SLOTS(GK_DECLARE)
#undef GK_DECLARE

/* <, <=, ==, !=, > and >=, element by element. */
PyObject *gk_operator_compare(PyObject *self, PyObject *other, int how);

/* Whether any element is equal: `other in self`. */
int gk_operator_contains(PyObject *self, PyObject *other);

#endif
