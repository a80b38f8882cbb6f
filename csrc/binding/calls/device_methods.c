#include "binding/calls/device_methods.h"

#include "binding/arrays/device_object.h"
#include "binding/calls/operations.h"

#define GK_METHOD(name)                                                                            \
    PyObject *gk_method_##name(PyObject *self, PyObject *const *arguments, Py_ssize_t count,       \
                               PyObject *keywords) {                                               \
        return gk_call_operation(((gk_device_array *)self)->state, gk_op_##name, self, arguments,  \
                                 count, keywords);                                                 \
    }
GK_OPERATION_METHODS(GK_METHOD)
