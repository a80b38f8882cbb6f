#include "values.h"

#include <string.h>

static int name_index(const gk_signature *signature, PyObject *name) {
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(name, &length);
    for (int i = 0; text && signature->names[i]; i++)
        if (strcmp(text, signature->names[i]) == 0)
            return i;
    PyErr_Clear(); /* a lone surrogate is no name of ours */
    return -1;
}

int gk_parse(const gk_signature *signature, PyObject *const *arguments, Py_ssize_t count,
             PyObject *keywords, PyObject **values) {
    for (int i = 0; signature->names[i]; i++)
        values[i] = NULL;
    if (count > signature->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments, %zd were given",
                     signature->function, signature->positional, count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = arguments[i];
    Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(keywords, i);
        int index = name_index(signature, name);
        if (index < signature->required) {
            PyErr_Format(PyExc_TypeError, "%s() has no keyword argument '%U'", signature->function,
                         name);
            return -1;
        }
        if (values[index]) {
            PyErr_Format(PyExc_TypeError, "%s() got '%U' twice", signature->function, name);
            return -1;
        }
        values[index] = arguments[count + i];
    }
    if (count < signature->required) {
        PyErr_Format(PyExc_TypeError, "%s() needs its argument '%s'", signature->function,
                     signature->names[count]);
        return -1;
    }
    return 0;
}

int gk_name_failure(const char *operation) {
    PyObject *const kinds[] = {PyExc_MemoryError, PyExc_OverflowError, PyExc_TypeError,
                               PyExc_ValueError};
    PyObject *type, *value, *traceback, *kind = NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && !kind; i++)
        kind = PyErr_GivenExceptionMatches(type, kinds[i]) ? kinds[i] : NULL;
    PyObject *text = kind && value ? PyObject_Str(value) : NULL;
    if (!text) {
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    PyErr_Format(kind, "%s: %U", operation, text);
    Py_DECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return -1;
}

int gk_stream_from_object(const char *function, PyObject *object, gk_stream *stream) {
    *stream = 0;
    if (!object || Py_IsNone(object))
        return 0;
    if (!PyLong_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s: stream has to be None or an integer handle, not %R",
                     function, (PyObject *)Py_TYPE(object));
        return -1;
    }
    *stream = (gk_stream)PyLong_AsVoidPtr(object);
    return PyErr_Occurred() ? -1 : 0;
}

PyObject *gk_shape_tuple(const gk_array *array) {
    PyObject *tuple = PyTuple_New(array->ndim);
    for (int i = 0; i < array->ndim && tuple; i++) {
        PyObject *length = PyLong_FromLongLong(array->shape[i]);
        if (!length || PyTuple_SetItem(tuple, i, length) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}
