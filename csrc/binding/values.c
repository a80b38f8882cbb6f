#include "binding/values.h"

#include <stdio.h>
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

/* add(a, b, /, out, *, variant, stream) */
typedef struct usage {
    char text[256];
} usage;

static usage usage_of(const gk_signature *signature) {
    usage it;
    size_t size = sizeof it.text,
           used = (size_t)snprintf(it.text, size, "%s(", signature->function);
    for (int i = 0; signature->names[i] && used < size; i++) {
        const char *mark = i > 0 && i == signature->required ? "/, " : "";
        const char *star = i == signature->positional ? "*, " : "";
        used += (size_t)snprintf(it.text + used, size - used, "%s%s%s%s", i ? ", " : "", mark, star,
                                 signature->names[i]);
    }
    bool ends = signature->required > 0 && !signature->names[signature->required];
    if (used < size)
        (void)snprintf(it.text + used, size - used, ends ? ", /)" : ")");
    return it;
}

PyObject *gk_whole_number(PyObject *object) {
    if (!PyBool_Check(object))
        return PyNumber_Index(object);
    PyErr_SetString(PyExc_TypeError, "a bool is no integer here");
    return NULL;
}

int gk_refuse_missing(const gk_signature *signature, Py_ssize_t index) {
    PyErr_Format(PyExc_TypeError, "%s: needs its argument '%s'; it is called as %s",
                 signature->function, signature->names[index], usage_of(signature).text);
    return -1;
}

static int refuse_keyword(const gk_signature *signature, PyObject *name, int index) {
    PyErr_Format(PyExc_TypeError,
                 index < 0 ? "%s: has no argument '%U'; it is called as %s"
                           : "%s: takes its argument '%U' by position only; it is called as %s",
                 signature->function, name, usage_of(signature).text);
    return -1;
}

static int refuse_count(const gk_signature *signature, Py_ssize_t count) {
    PyErr_Format(PyExc_TypeError,
                 "%s: takes at most %d positional arguments and was given %zd; it is called as %s",
                 signature->function, signature->positional, count, usage_of(signature).text);
    return -1;
}

int gk_parse(const gk_signature *signature, PyObject *const *arguments, Py_ssize_t count,
             PyObject *keywords, PyObject **values) {
    for (int i = 0; signature->names[i]; i++)
        values[i] = NULL;
    if (count > signature->positional)
        return refuse_count(signature, count);
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = arguments[i];
    Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(keywords, i);
        int index = name_index(signature, name);
        if (index < signature->required)
            return refuse_keyword(signature, name, index);
        if (values[index]) {
            PyErr_Format(PyExc_TypeError, "%s: '%U' is given twice, by position and by name",
                         signature->function, name);
            return -1;
        }
        values[index] = arguments[count + i];
    }
    return count < signature->required ? gk_refuse_missing(signature, count) : 0;
}

int gk_parse_new(const gk_signature *signature, PyObject *positional, PyObject *named,
                 PyObject **values) {
    enum { MOST = 8 };
    PyObject *given[MOST], *key, *value;
    Py_ssize_t count = PyTuple_Size(positional), more = named ? PyDict_Size(named) : 0, place = 0;
    if (count > signature->positional)
        return refuse_count(signature, count);
    if (more > MOST - signature->positional)
        more = MOST - signature->positional; /* of so many one is wrong */
    PyObject *keywords = PyTuple_New(more);
    int failed = keywords ? 0 : -1;
    for (Py_ssize_t i = 0; i < count && !failed; i++)
        given[i] = PyTuple_GetItem(positional, i);
    for (Py_ssize_t i = 0; i < more && !failed && PyDict_Next(named, &place, &key, &value); i++) {
        given[count + i] = value;
        failed = PyTuple_SetItem(keywords, i, Py_NewRef(key));
    }
    if (!failed)
        failed = gk_parse(signature, given, count, keywords, values);
    Py_XDECREF(keywords);
    return failed;
}

int gk_parse_none(const char *function, PyObject *const *arguments, Py_ssize_t count,
                  PyObject *keywords) {
    static const char *const names[] = {NULL};
    const gk_signature signature = {function, names, 0, 0};
    return gk_parse(&signature, arguments, count, keywords, NULL);
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

/* streams -------------------------------------------------------------------------------------- */

/* An attribute of the object: 1, 0 where it has none, -1 where reading it raised. */
static int find_attribute(PyObject *object, const char *name, PyObject **value) {
    *value = PyObject_GetAttrString(object, name);
    if (*value)
        return 1;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
        return -1;
    PyErr_Clear();
    return 0;
}

static int read_handle(const char *function, PyObject *number, gk_stream *stream) {
    *stream = (gk_stream)PyLong_AsVoidPtr(number);
    if (!PyErr_Occurred() && (intptr_t)*stream >= 0)
        return 0;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s: stream %R is not the handle of a stream", function, number);
    return -1;
}

/* What __cuda_stream__ gives: (0, handle). It is a method, and was a property once. */
static int read_protocol(const char *function, PyObject *object, PyObject *member,
                         gk_stream *stream) {
    PyObject *pair = PyCallable_Check(member) ? PyObject_CallNoArgs(member) : Py_NewRef(member);
    if (!pair)
        return -1;
    bool is_pair = PyTuple_Check(pair) && PyTuple_Size(pair) == 2 &&
                   PyLong_Check(PyTuple_GetItem(pair, 0)) && PyLong_Check(PyTuple_GetItem(pair, 1));
    int failed = -1;
    if (!is_pair)
        PyErr_Format(PyExc_TypeError,
                     "%s: __cuda_stream__ of %S has to give (version, handle), two integers, not "
                     "%R",
                     function, (PyObject *)Py_TYPE(object), pair);
    else if (PyLong_AsLong(PyTuple_GetItem(pair, 0)) != 0)
        PyErr_Format(PyExc_ValueError,
                     "%s: __cuda_stream__ of %S is of version %R, and only 0 is known", function,
                     (PyObject *)Py_TYPE(object), PyTuple_GetItem(pair, 0));
    else
        failed = read_handle(function, PyTuple_GetItem(pair, 1), stream);
    Py_DECREF(pair);
    return failed;
}

/* An integer, or a ctypes pointer, whose null is None, or what int() makes one of. */
static int read_attribute(const char *function, PyObject *member, gk_stream *stream) {
    PyObject *value;
    int found = PyLong_Check(member) ? 0 : find_attribute(member, "value", &value);
    if (found < 0)
        return -1;
    if (found == 0)
        value = PyUnicode_Check(member) || PyLong_Check(member) ? Py_NewRef(member)
                                                                : PyNumber_Long(member);
    if (!value)
        return gk_name_failure(function);
    int failed = 0;
    *stream = 0;
    if (!Py_IsNone(value))
        failed = PyLong_Check(value) ? read_handle(function, value, stream) : -1;
    if (failed && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%s: the handle of stream is %R, not an integer", function,
                     value);
    Py_DECREF(value);
    return failed;
}

int gk_stream_from_object(const char *function, PyObject *object, gk_stream *stream) {
    /* PyTorch's name for the handle, which is quicker to read than what it gives by the protocol;
       the protocol's; CuPy's and Numba's. */
    enum { PROTOCOL = 1 };
    static const char *const names[] = {"cuda_stream", "__cuda_stream__", "ptr", "handle"};
    *stream = 0;
    if (!object || Py_IsNone(object))
        return 0;
    if (PyLong_Check(object) && !PyBool_Check(object))
        return read_handle(function, object, stream);
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !PyType_Check(object); i++) {
        PyObject *member;
        int found = find_attribute(object, names[i], &member);
        if (found == 0)
            continue;
        int failed = found < 0       ? -1
                     : i == PROTOCOL ? read_protocol(function, object, member, stream)
                                     : read_attribute(function, member, stream);
        if (found > 0)
            Py_DECREF(member);
        return failed;
    }
    PyErr_Format(
        PyExc_TypeError,
        "%s: stream has to be None, an integer handle, a stream of PyTorch, CuPy or Numba, "
        "or an object with __cuda_stream__, not %R",
        function, (PyObject *)Py_TYPE(object));
    return -1;
}

PyObject *gk_lengths_tuple(const int64_t *lengths, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; i < count && tuple; i++) {
        PyObject *length = PyLong_FromLongLong(lengths[i]);
        if (!length || PyTuple_SetItem(tuple, i, length) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *gk_shape_tuple(const gk_array *array) {
    return gk_lengths_tuple(array->shape, array->ndim);
}
