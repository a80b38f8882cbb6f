#include "binding/calls/device_repr.h"

#include "binding/arrays/host_arrays.h"
#include "binding/calls/device_convert.h"

enum { REPR_WHOLE = 1000, REPR_EDGE = 3 }; /* elements shown in full; at each end of a longer one */

static const char *element_address(const gk_array *array, int64_t number) {
    const char *at = array->data;
    for (int i = array->ndim - 1; i >= 0; i--) {
        at += number % array->shape[i] * array->strides[i];
        number /= array->shape[i];
    }
    return at;
}

/* Elements [first, first + count) in C order, as a 1-D host array. */
static PyObject *read_some(gk_device_array *self, int64_t first, int64_t count) {
    gk_call call;
    gk_status status = GK_OK;
    if (gk_begin_on(self->state, &call, gk_device_number(self), "repr") < 0 ||
        gk_device_array_go_home(self, &call) < 0)
        return NULL;
    gk_array part = {.dtype = self->array.dtype, .ndim = 1, .shape = {count}};
    PyObject *host = gk_new_host_array(self->state, &call, &part);
    if (!host)
        return NULL;
    size_t size = gk_dtype_size(part.dtype);
    char *to = gk_host_data(host);
    Py_BEGIN_ALLOW_THREADS;
    for (int64_t i = 0; i < count && status == GK_OK; i++)
        status = gk_call_copy_out(&call, to + (size_t)i * size,
                                  element_address(&self->array, first + i), size);
    Py_END_ALLOW_THREADS;
    if (status == GK_OK)
        return host;
    Py_DECREF(host);
    return gk_raise(self->state, &call.error);
}

static PyObject *format_values(PyObject *values) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *format = numpy ? PyObject_GetAttrString(numpy, "array2string") : NULL;
    PyObject *positional = format ? PyTuple_Pack(1, values) : NULL;
    PyObject *named =
        positional ? Py_BuildValue("{s:s,s:s}", "separator", ", ", "prefix", "DeviceArray(") : NULL;
    PyObject *text = named ? PyObject_Call(format, positional, named) : NULL;
    Py_XDECREF(named);
    Py_XDECREF(positional);
    Py_XDECREF(format);
    Py_XDECREF(numpy);
    return text;
}

/* A long array shows its ends, and no more than those are copied from the device. */
static PyObject *format_ends(gk_device_array *self) {
    PyObject *text = NULL, *last_text = NULL;
    PyObject *first = read_some(self, 0, REPR_EDGE);
    PyObject *last =
        first ? read_some(self, (int64_t)gk_count(&self->array) - REPR_EDGE, REPR_EDGE) : NULL;
    PyObject *first_text = last ? format_values(first) : NULL;
    if (first_text)
        last_text = format_values(last);
    if (last_text) {
        PyObject *head = PyUnicode_Substring(first_text, 0, PyUnicode_GetLength(first_text) - 1);
        PyObject *tail = PyUnicode_Substring(last_text, 1, PyUnicode_GetLength(last_text));
        if (head && tail)
            text = PyUnicode_FromFormat("%U, ..., %U", head, tail);
        Py_XDECREF(head);
        Py_XDECREF(tail);
    }
    Py_XDECREF(first_text);
    Py_XDECREF(last_text);
    Py_XDECREF(first);
    Py_XDECREF(last);
    return text;
}

PyObject *gk_device_array_repr(PyObject *self) {
    gk_device_array *array = (gk_device_array *)self;
    PyObject *values = NULL;
    if (gk_is_being_captured(array)) {
        values = PyUnicode_FromString("<being captured>");
    } else if (gk_count(&array->array) > REPR_WHOLE) {
        values = format_ends(array);
    } else {
        PyObject *host = gk_device_array_to_host(array, NULL);
        values = host ? format_values(host) : NULL;
        Py_XDECREF(host);
    }
    PyObject *text = values ? PyUnicode_FromFormat("DeviceArray(%U, shape=%s, dtype=%s)", values,
                                                   gk_shape_text(&array->array).text,
                                                   gk_dtype_name(array->array.dtype))
                            : NULL;
    Py_XDECREF(values);
    return text;
}

PyObject *gk_device_array_str(PyObject *self) {
    gk_device_array *array = (gk_device_array *)self;
    if (array->array.ndim > 0 || gk_is_being_captured(array))
        return gk_device_array_repr(self);
    PyObject *host = gk_device_array_to_host(array, NULL);
    PyObject *text = host ? PyObject_Str(host) : NULL;
    Py_XDECREF(host);
    return text;
}
