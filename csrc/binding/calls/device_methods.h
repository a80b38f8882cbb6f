/* The methods of a DeviceArray that are operations: sum, dot and the like. */
#ifndef GK_DEVICE_METHODS_H
#define GK_DEVICE_METHODS_H

#include <Python.h>

/* X(operation): a method takes what the function of that name takes behind its first operand. */
#define GK_OPERATION_METHODS(X)                                                                    \
    X(sum)                                                                                         \
    X(mean)                                                                                        \
    X(prod)                                                                                        \
    X(max)                                                                                         \
    X(min)                                                                                         \
    X(argmax)                                                                                      \
    X(argmin)                                                                                      \
    X(dot)                                                                                         \
    X(clip)

#define GK_DECLARE(name)                                                                           \
    PyObject *gk_method_##name(PyObject *self, PyObject *const *arguments, Py_ssize_t count,       \
                               PyObject *keywords);
GK_OPERATION_METHODS(GK_DECLARE)
#undef GK_DECLARE

/* Their docstrings: GK_METHOD_DOC_sum and so on. */
#define GK_METHOD_OF(name, signature)                                                              \
#name "($self" signature ", variant=None, stream=None)\n--\n\n"                                \
          "gpukern." #name " of the array; the result is on the device."
#define GK_METHOD_DOC_sum                                                                          \
    GK_METHOD_OF(sum, ", /, axis=None, dtype=None, out=None, keepdims=False, *")
#define GK_METHOD_DOC_mean                                                                         \
    GK_METHOD_OF(mean, ", /, axis=None, dtype=None, out=None, keepdims=False, *")
#define GK_METHOD_DOC_prod                                                                         \
    GK_METHOD_OF(prod, ", /, axis=None, dtype=None, out=None, keepdims=False, *")
#define GK_METHOD_DOC_max    GK_METHOD_OF(max, ", /, axis=None, out=None, keepdims=False, *")
#define GK_METHOD_DOC_min    GK_METHOD_OF(min, ", /, axis=None, out=None, keepdims=False, *")
#define GK_METHOD_DOC_argmax GK_METHOD_OF(argmax, ", /, axis=None, out=None, keepdims=False, *")
#define GK_METHOD_DOC_argmin GK_METHOD_OF(argmin, ", /, axis=None, out=None, keepdims=False, *")
#define GK_METHOD_DOC_dot    GK_METHOD_OF(dot, ", b, /, out=None, *")
#define GK_METHOD_DOC_clip   GK_METHOD_OF(clip, ", /, min=None, max=None, out=None, *")

#endif
