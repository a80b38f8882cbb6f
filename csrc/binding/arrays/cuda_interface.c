/* __cuda_array_interface__, version 3: how GPU libraries of Python hand arrays to one another. */
#include "binding/arrays/cuda_interface.h"

#include "binding/stream.h"
#include "binding/values.h"

typedef struct typestr {
    char text[4]; /* "<f4"; of one byte "|i1" */
} typestr;

/* bfloat16, which NumPy does not have, goes as two bytes of no meaning. */
static typestr typestr_of(gk_dtype dtype) {
    size_t size = gk_dtype_size(dtype);
    char kind = dtype == GK_bfloat16 ? 'V' : gk_dtype_letter(dtype);
    return (typestr){{size == 1 ? '|' : '<', kind, (char)('0' + size), '\0'}};
}

PyObject *gk_cuda_interface(const gk_array *array, gk_stream stream) {
    PyObject *shape = gk_shape_tuple(array);
    PyObject *strides = gk_is_contiguous(array) ? Py_NewRef(Py_None)
                                                : gk_lengths_tuple(array->strides, array->ndim);
    if (!shape || !strides) {
        Py_XDECREF(shape);
        Py_XDECREF(strides);
        return NULL;
    }
    /* A stream of 0 is not allowed there; 1 names the legacy default stream. */
    return Py_BuildValue("{s:N,s:s,s:(K,O),s:N,s:i,s:K}", "shape", shape, "typestr",
                         typestr_of(array->dtype).text, "data",
                         (unsigned long long)(uintptr_t)(gk_count(array) ? array->data : NULL),
                         array->readonly ? Py_True : Py_False, "strides", strides, "version", 3,
                         "stream", (unsigned long long)(stream ? stream : 1));
}

/* A key of the interface, or NULL: missing (nothing raised) or a failure (raised). Borrowed. */
static PyObject *interface_item(const gk_state *state, PyObject *interface, gk_name key) {
    PyObject *item = PyDict_GetItemWithError(interface, state->names[key]);
    return item && !Py_IsNone(item) ? item : NULL;
}

static int bad_interface(const gk_call *call, const char *name, const char *what) {
    PyErr_Clear(); /* what Python said of an item says less than this */
    PyErr_Format(PyExc_ValueError, "%s: the __cuda_array_interface__ of %s %s", call->operation,
                 name, what);
    return -1;
}

static int read_lengths(PyObject *tuple, int expected, int64_t *lengths) {
    if (!tuple || !PyTuple_Check(tuple) || PyTuple_Size(tuple) > GK_MAX_DIMENSIONS ||
        (expected >= 0 && PyTuple_Size(tuple) != expected))
        return -1;
    int count = (int)PyTuple_Size(tuple);
    for (int i = 0; i < count; i++) {
        lengths[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (lengths[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return count;
}

static int read_typestr(const gk_call *call, const char *name, PyObject *text, gk_dtype *dtype) {
    for (int i = 0; i < GK_DTYPE_COUNT && text && PyUnicode_Check(text); i++) {
        *dtype = (gk_dtype)i;
        if (PyUnicode_CompareWithASCIIString(text, typestr_of(*dtype).text) == 0)
            return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s: %s has the typestr %R, which is not supported; use %s",
                 call->operation, name, text ? text : Py_None, gk_dtype_list().text);
    return -1;
}

const void *gk_cuda_interface_data(const gk_state *state, PyObject *interface) {
    PyObject *data =
        PyDict_Check(interface) ? interface_item(state, interface, GK_NAME_DATA) : NULL;
    const void *pointer = data && PyTuple_Check(data) && PyTuple_Size(data) == 2
                              ? PyLong_AsVoidPtr(PyTuple_GetItem(data, 0))
                              : NULL;
    PyErr_Clear(); /* whoever reads the dict says what is wrong with it */
    return pointer;
}

int gk_read_cuda_interface(gk_state *state, const gk_call *call, const char *name,
                           PyObject *interface, gk_array *array) {
    gk_clear_view(array);
    array->place = GK_DEVICE;
    if (!PyDict_Check(interface))
        return bad_interface(call, name, "is not a dict");
    PyObject *version = interface_item(state, interface, GK_NAME_VERSION);
    if (!version || !PyLong_Check(version) || PyLong_AsLong(version) < 2)
        return bad_interface(call, name, "has no version, or one below 2");
    if (interface_item(state, interface, GK_NAME_MASK))
        return bad_interface(call, name, "has a mask; masked arrays are not supported");
    array->ndim = read_lengths(interface_item(state, interface, GK_NAME_SHAPE), -1, array->shape);
    if (array->ndim < 0)
        return bad_interface(call, name, "has no shape that is a tuple of integers");
    for (int i = 0; i < array->ndim; i++)
        if (array->shape[i] < 0)
            return bad_interface(call, name, "has a negative length in its shape");
    if (read_typestr(call, name, interface_item(state, interface, GK_NAME_TYPESTR), &array->dtype) <
        0)
        return -1;
    if (!gk_is_addressable(array))
        return bad_interface(call, name, "has more bytes than an address counts");
    PyObject *strides = interface_item(state, interface, GK_NAME_STRIDES);
    gk_make_contiguous(array);
    if (strides && read_lengths(strides, array->ndim, array->strides) < 0)
        return bad_interface(call, name, "has strides that do not fit its shape");
    PyObject *data = interface_item(state, interface, GK_NAME_DATA);
    if (!data || !PyTuple_Check(data) || PyTuple_Size(data) != 2)
        return bad_interface(call, name, "has no data that is (pointer, readonly)");
    array->data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
    int readonly = PyObject_IsTrue(PyTuple_GetItem(data, 1));
    if (PyErr_Occurred())
        return bad_interface(call, name, "has no data that is (pointer, readonly)");
    array->readonly = readonly == 1;
    PyObject *stream = interface_item(state, interface, GK_NAME_STREAM);
    if (stream && PyLong_Check(stream) && PyLong_AsLongLong(stream) == 0)
        return bad_interface(call, name, "has stream 0, which the interface forbids");
    if (!array->data && gk_count(array) > 0)
        return bad_interface(call, name, "has a null pointer for an array that is not empty");
    if (gk_read_stream(state, call, stream, &array->producer) < 0)
        return -1;
    /* None says that there is nothing to wait for; but the next work on the array will be where
       work is that names no stream, and has to wait for ours. */
    array->producer = array->producer ? array->producer : GK_LEGACY_STREAM;
    return 0;
}
