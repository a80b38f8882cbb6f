#define GK_LOADS_NUMPY
#include "binding/arrays/dtypes.h"

#include "binding/arrays/numpy_api.h"
#include "binding/values.h"

int gk_load_numpy(void) {
    return _import_array() < 0 ? -1 : 0; /* import_array() would print what is raised, too */
}

/* bfloat16 is a type that ml_dtypes registers with NumPy, so it is known by name, not by number. */
static bool is_bfloat16(PyArray_Descr *descr) {
    if (descr->type_num < NPY_USERDEF || PyDataType_ELSIZE(descr) != 2)
        return false;
    PyObject *name = PyType_GetName(descr->typeobj);
    bool same = name && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0;
    Py_XDECREF(name);
    PyErr_Clear();
    return same;
}

/* By kind and size: C has several integer types of one size, and NumPy a number for each. */
bool gk_dtype_of(PyObject *object, gk_dtype *dtype) {
    PyArray_Descr *descr = (PyArray_Descr *)object;
    size_t size = (size_t)PyDataType_ELSIZE(descr);
    for (int i = 0; i < GK_DTYPE_COUNT && descr->type_num < NPY_USERDEF; i++) {
        *dtype = (gk_dtype)i;
        if (i != GK_bfloat16 && gk_dtype_letter(*dtype) == descr->kind &&
            gk_dtype_size(*dtype) == size)
            return true;
    }
    *dtype = GK_bfloat16;
    return is_bfloat16(descr);
}

/* ml_dtypes is imported when a bfloat16 array has to be made, not before. */
static PyArray_Descr *bfloat16_descr(gk_state *state) {
    PyArray_Descr *descr = NULL;
    if (!state->bfloat16) {
        PyObject *module = PyImport_ImportModule("ml_dtypes");
        PyObject *type = module ? PyObject_GetAttrString(module, "bfloat16") : NULL;
        if (type && PyArray_DescrConverter(type, &descr))
            state->bfloat16 = (PyObject *)descr;
        Py_XDECREF(type);
        Py_XDECREF(module);
    }
    return (PyArray_Descr *)Py_XNewRef(state->bfloat16);
}

PyObject *gk_dtype_object(gk_state *state, gk_dtype dtype) {
    static const int numbers[GK_DTYPE_COUNT] = {
#define GK_NUMBER(name, short_name, type, bytes, text, number, ...) [GK_##name] = number,
        GK_DTYPES(GK_NUMBER, )
#undef GK_NUMBER
    };
    return (PyObject *)(dtype == GK_bfloat16 ? bfloat16_descr(state)
                                             : PyArray_DescrFromType(numbers[dtype]));
}

/* What NumPy makes no dtype of, where that is not a failure of another kind. */
static int refuse_dtype(const char *function, PyObject *object) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError))
        PyErr_Format(PyExc_TypeError, "%s: dtype %R is none that NumPy knows; use %s", function,
                     object, gk_dtype_list().text);
    return -1;
}

int gk_dtype_from_object(gk_state *state, const char *function, PyObject *object, gk_dtype *dtype) {
    if (PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, "bfloat16") == 0) {
        *dtype = GK_bfloat16; /* NumPy knows the name only once ml_dtypes has been imported */
        PyArray_Descr *descr = bfloat16_descr(state);
        Py_XDECREF((PyObject *)descr);
        return descr ? 0 : -1;
    }
    PyArray_Descr *descr = NULL;
    if (!PyArray_DescrConverter(object, &descr))
        return refuse_dtype(function, object);
    bool known = gk_dtype_of((PyObject *)descr, dtype) && PyArray_ISNBO(descr->byteorder);
    if (!known)
        PyErr_Format(PyExc_TypeError, "%s: dtype %R is not supported; use %s", function, object,
                     gk_dtype_list().text);
    Py_DECREF(descr);
    return known ? 0 : -1;
}

static bool is_of_integers(PyObject *shape) {
    Py_ssize_t count = PyTuple_Check(shape) ? PyTuple_Size(shape) : 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!PyLong_Check(PyTuple_GetItem(shape, i)))
            return false;
    return PyTuple_Check(shape) || PyLong_Check(shape);
}

/* What NumPy makes no shape of, where that is not a failure of another kind. */
static int refuse_shape(const char *function, PyObject *object) {
    if (PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError,
                     "%s: shape has to be a length or a tuple of lengths, whole numbers, not %R",
                     function, object);
    else if (PyErr_ExceptionMatches(PyExc_ValueError) && is_of_integers(object))
        PyErr_Format(
            PyExc_ValueError,
            "%s: shape %S has a length that no array can have; lengths are from 0 and below "
            "2**63",
            function, object);
    else
        return gk_name_failure(function);
    return -1;
}

int gk_shape_from_object(const char *function, PyObject *object, gk_array *array) {
    npy_intp shape[GK_MAX_DIMENSIONS];
    int ndim = PyArray_IntpFromSequence(object, shape, GK_MAX_DIMENSIONS);
    if (ndim < 0)
        return refuse_shape(function, object);
    if (ndim > GK_MAX_DIMENSIONS) {
        PyErr_Format(PyExc_ValueError, "%s: shape has %d dimensions, and the most are %d", function,
                     ndim, GK_MAX_DIMENSIONS);
        return -1;
    }
    array->ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        array->shape[i] = shape[i];
        if (shape[i] < 0) {
            PyErr_Format(PyExc_ValueError, "%s: shape %S has a negative length; lengths are from 0",
                         function, object);
            return -1;
        }
    }
    return 0;
}
