#include "binding/calls/device_numbers.h"

#include "binding/calls/device_convert.h"
#include "binding/values.h"

/* Its only element as Python has numbers; `wanted` is what for. */
static PyObject *only_element(PyObject *self, const char *wanted) {
    gk_device_array *array = (gk_device_array *)self;
    size_t count = gk_count(&array->array);
    if (count != 1) {
        PyErr_Format(PyExc_TypeError,
                     "%s: takes a DeviceArray of one element, and this one has shape %s: %zu "
                     "elements; index it, reduce it, or copy it with .to_host()",
                     wanted, gk_shape_text(&array->array).text, count);
        return NULL;
    }
    PyObject *host = gk_device_array_to_host(array, NULL);
    PyObject *number = host ? PyObject_CallMethod(host, "item", NULL) : NULL;
    Py_XDECREF(host);
    return number;
}

typedef PyObject *(*converter)(PyObject *);

static PyObject *converted(PyObject *self, const char *wanted, converter convert) {
    PyObject *number = only_element(self, wanted);
    PyObject *result = number ? convert(number) : NULL;
    Py_XDECREF(number);
    return result;
}

int gk_number_bool(PyObject *self) {
    const gk_array *array = &((gk_device_array *)self)->array;
    if (gk_count(array) != 1) {
        PyErr_Format(
            PyExc_ValueError,
            "bool: the truth value of a DeviceArray of %zu elements, of shape %s, is ambiguous; "
            "reduce it with gpukern.max (any) or gpukern.min (all)",
            gk_count(array), gk_shape_text(array).text);
        return -1;
    }
    PyObject *number = only_element(self, "bool");
    int is_true = number ? PyObject_IsTrue(number) : -1;
    Py_XDECREF(number);
    return is_true;
}

PyObject *gk_number_int(PyObject *self) {
    return converted(self, "int", PyNumber_Long);
}

PyObject *gk_number_float(PyObject *self) {
    return converted(self, "float", PyNumber_Float);
}

/* As with NumPy's arrays: a mask or a list of indices is not taken for one index. */
PyObject *gk_number_index(PyObject *self) {
    const gk_array *array = &((gk_device_array *)self)->array;
    gk_kind kind = gk_dtype_kind(array->dtype);
    if (array->ndim == 0 && (kind == GK_SIGNED || kind == GK_UNSIGNED))
        return only_element(self, "index");
    PyErr_Format(PyExc_TypeError,
                 "index: has to be a DeviceArray of integers and of shape (), not one of "
                 "dtype %s and shape %s",
                 gk_dtype_name(array->dtype), gk_shape_text(array).text);
    return NULL;
}

PyObject *gk_number_item(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords) {
    if (gk_parse_none("item", arguments, count, keywords) < 0)
        return NULL;
    return only_element(self, "item");
}

static PyObject *as_complex(PyObject *number) {
    double real = PyFloat_AsDouble(number);
    return real == -1.0 && PyErr_Occurred() ? NULL : PyComplex_FromDoubles(real, 0.0);
}

PyObject *gk_number_complex(PyObject *self, PyObject *unused) {
    (void)unused;
    return converted(self, "complex", as_complex);
}

PyObject *gk_number_round(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    if (count > 1) {
        PyErr_Format(PyExc_TypeError, "round: takes at most 1 argument and was given %zd", count);
        return NULL;
    }
    PyObject *digits = count == 1 && !Py_IsNone(arguments[0]) ? arguments[0] : NULL;
    PyObject *number = only_element(self, "round");
    PyObject *rounded = NULL;
    if (number && digits)
        rounded = PyObject_CallMethod(number, "__round__", "O", digits);
    else if (number)
        rounded = PyObject_CallMethod(number, "__round__", NULL);
    if (number && !rounded)
        gk_name_failure("round");
    Py_XDECREF(number);
    return rounded;
}

PyObject *gk_number_format(PyObject *self, PyObject *spec) {
    if (!PyUnicode_Check(spec)) {
        PyErr_Format(PyExc_TypeError, "format: takes a text, not %S", (PyObject *)Py_TYPE(spec));
        return NULL;
    }
    if (PyUnicode_GetLength(spec) == 0)
        return PyObject_Str(self);
    PyObject *number = only_element(self, "format");
    PyObject *text = number ? PyObject_Format(number, spec) : NULL;
    if (number && !text)
        gk_name_failure("format");
    Py_XDECREF(number);
    return text;
}
