#include "binding/arrays/operands.h"

#include <string.h>

#include "base/pack.h"
#include "binding/arrays/device_object.h"
#include "binding/arrays/dtypes.h"
#include "binding/arrays/foreign.h"
#include "binding/arrays/host_arrays.h"
#include "binding/arrays/numpy_api.h"
#include "binding/values.h"

static bool is_python_scalar(PyObject *object) {
    return !PyArray_IsScalar(object, Generic) &&
           (PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object));
}

/* -1: in no device's memory; -2: raised. */
static int place_of(gk_state *state, const char *operation, const char *name, PyObject *object) {
    if (gk_is_device_array(state, object))
        return gk_device_number((const gk_device_array *)object);
    bool host = PyArray_Check(object) || PyArray_IsScalar(object, Generic) ||
                is_python_scalar(object) || Py_IsNone(object);
    int devices = gk_engine_devices(state->engine);
    /* Where there is one device alone, nobody has to be asked. */
    if (host || devices == 1 || !gk_is_foreign(state, object))
        return -1;
    int place = gk_foreign_place(state, operation, name, object);
    return devices && place >= devices ? -1 : place; /* refused when it is taken */
}

int gk_device_of(gk_state *state, const char *operation, const char *const *names,
                 PyObject *const *objects, int count, PyObject *out) {
    int place = -1;
    for (int i = 0; i < count && place == -1; i++)
        place = place_of(state, operation, names[i], objects[i]);
    if (place == -1 && out)
        place = place_of(state, operation, "out", out);
    if (place == -1)
        return gk_engine_current(state->engine);
    return place < 0 ? -1 : place;
}

bool gk_is_sequence(PyObject *object) {
    if (PyArray_Check(object))
        return PyArray_NDIM((PyArrayObject *)object) > 0;
    return !PyIndex_Check(object) && !PyUnicode_Check(object);
}

bool gk_is_operand(gk_state *state, PyObject *object) {
    return gk_is_device_array(state, object) || PyArray_Check(object) ||
           PyArray_IsScalar(object, Generic) || is_python_scalar(object) ||
           gk_is_foreign(state, object);
}

/* What Python would repeat or join, by a single element as a number of times. */
static bool is_repeated(PyObject *object) {
    return PyList_Check(object) || PyTuple_Check(object) || PyUnicode_Check(object) ||
           PyBytes_Check(object);
}

int gk_yields(gk_state *state, PyObject *object) {
    static const char *const name = "__array_ufunc__";
    if (!gk_is_operand(state, object))
        return !is_repeated(object);
    if (!PyArray_Check(object) || PyArray_CheckExact(object))
        return 0;
    PyObject *its = PyObject_GetAttrString((PyObject *)Py_TYPE(object), name);
    PyObject *usual = its ? PyObject_GetAttrString((PyObject *)&PyArray_Type, name) : NULL;
    int yields = usual ? its != usual : -1;
    Py_XDECREF(usual);
    Py_XDECREF(its);
    return yields;
}

/* Our own arrays need no dict and no question to the driver, unless another stream made them: what
   cannot be waited for is refused before memory is asked for, which there is none of beside a
   capture. */
static int take_device(gk_state *state, gk_call *call, const char *name, PyObject *object,
                       gk_array *array, PyObject **keeper) {
    const gk_device_array *source = (const gk_device_array *)object;
    if (source->device != call->device)
        return gk_refuse_place(call, name, gk_device_number(source));
    gk_copy_view(array, &source->array);
    array->producer = gk_producer_of(source);
    if (gk_call_may_wait(call, array) != GK_OK) {
        gk_raise(state, &call->error);
        return -1;
    }
    *keeper = Py_NewRef(object);
    return 0;
}

int gk_refuse_operand(const gk_call *call, const char *name, PyObject *object) {
    bool sequence = PyList_Check(object) || PyTuple_Check(object);
    bool convertible = strcmp(name, "out") != 0 && (sequence || is_python_scalar(object));
    PyErr_Format(PyExc_TypeError,
                 "%s: %s has to be a NumPy array, a DeviceArray or an object with "
                 "__cuda_array_interface__ or __dlpack__, not %S%s",
                 call->operation, name, (PyObject *)Py_TYPE(object),
                 convertible ? "; numpy.array(...) makes an array of it" : "");
    return -1;
}

int gk_take_array(gk_state *state, gk_call *call, const char *name, PyObject *object,
                  gk_array *array, PyObject **keeper) {
    if (gk_is_device_array(state, object))
        return take_device(state, call, name, object, array, keeper);
    if (PyArray_Check(object))
        return gk_take_host(call, name, object, array, keeper);
    if (PyArray_IsScalar(object, Generic)) {
        PyObject *scalar = PyArray_FromScalar(object, NULL);
        int failed = scalar ? gk_take_host(call, name, scalar, array, keeper) : -1;
        Py_XDECREF(scalar);
        return failed;
    }
    if (gk_is_foreign(state, object))
        return gk_take_foreign(state, call, name, object, array, keeper);
    return gk_refuse_operand(call, name, object);
}

/* A Python integer beside integers: where it lies, and its bits where the dtype holds it. */
static int take_whole_bound(PyObject *number, gk_dtype dtype, gk_bound *bound) {
    int overflow, width = 8 * (int)gk_dtype_size(dtype);
    bool is_signed = gk_dtype_kind(dtype) == GK_SIGNED;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (value == -1 && PyErr_Occurred())
        return -1;
    bound->is = GK_BOUNDED;
    bound->value = (uint64_t)value;
    if (overflow > 0 && !is_signed && width == 64) { /* it may still be below 2^64 */
        bound->value = PyLong_AsUnsignedLongLong(number);
        overflow = PyErr_Occurred() ? 1 : 0;
        PyErr_Clear();
        bound->is = overflow ? GK_ABOVE_ALL : GK_BOUNDED;
        return 0;
    }
    long long least = is_signed ? (long long)(INT64_MIN >> (64 - width)) : 0;
    uint64_t greatest = (is_signed ? INT64_MAX : UINT64_MAX) >> (64 - width);
    if (overflow < 0 || (!overflow && value < least))
        bound->is = GK_BELOW_ALL;
    else if (overflow > 0 || (value > 0 && (uint64_t)value > greatest))
        bound->is = GK_ABOVE_ALL;
    return 0;
}

static int refuse_whole(const gk_call *call, const char *name, PyObject *number, gk_dtype dtype) {
    PyErr_Clear();
    int overflow;
    PyLong_AsLongLongAndOverflow(number, &overflow);
    PyObject *bits = PyObject_CallMethod(number, "bit_length", NULL);
    if (!bits)
        return -1;
    const char *format = overflow ? "%s: %s is an integer of %S bits, out of bounds for %s"
                                  : "%s: %s is the integer %S, out of bounds for %s";
    PyErr_Format(PyExc_OverflowError, format, call->operation, name, overflow ? bits : number,
                 gk_dtype_name(dtype));
    Py_DECREF(bits);
    return -1;
}

/* A Python scalar takes the dtype of the array beside it, where that loses nothing of its kind. */
static int take_scalar(gk_state *state, gk_call *call, const char *name, PyObject *object,
                       gk_dtype dtype, gk_array *array, PyObject **keeper) {
    bool whole = PyLong_Check(object) && !PyBool_Check(object);
    if (PyComplex_Check(object) || (PyFloat_Check(object) && !gk_is_float(dtype)) ||
        (whole && gk_dtype_kind(dtype) == GK_BOOLEAN)) {
        PyErr_Format(PyExc_TypeError, "%s: %s is the %S %R beside an array of %s; convert one",
                     call->operation, name, (PyObject *)Py_TYPE(object), object,
                     gk_dtype_name(dtype));
        return -1;
    }
    if (gk_planted_host_fault(state, call) < 0)
        return -1;
    PyArray_Descr *descr = (PyArray_Descr *)gk_dtype_object(state, dtype);
    *keeper = descr ? PyArray_FromAny(object, descr, 0, 0, NPY_ARRAY_CARRAY, NULL) : NULL;
    if (!*keeper && whole && PyErr_ExceptionMatches(PyExc_OverflowError))
        return refuse_whole(call, name, object, dtype);
    if (!*keeper)
        return gk_name_failure(call->operation);
    gk_view_host(*keeper, dtype, array);
    return 0;
}

int gk_take_value(gk_state *state, gk_call *call, const char *name, PyObject *object,
                  gk_dtype dtype, gk_array *array, PyObject **keeper) {
    if (!gk_is_device_array(state, object) && is_python_scalar(object))
        return take_scalar(state, call, name, object, dtype, array, keeper);
    return gk_take_array(state, call, name, object, array, keeper);
}

int gk_take_flag(const char *function, const char *name, PyObject *object, bool *flag) {
    if (PyBool_Check(object) || PyLong_Check(object) || PyArray_IsScalar(object, Bool) ||
        PyArray_IsScalar(object, Integer)) {
        int is_true = PyObject_IsTrue(object);
        *flag = is_true == 1;
        return is_true < 0 ? -1 : 0;
    }
    PyErr_Format(PyExc_TypeError, "%s: %s has to be True or False, not %R", function, name, object);
    return -1;
}

int gk_take_bound(gk_state *state, gk_call *call, const char *name, PyObject *object,
                  gk_dtype dtype, gk_bound *bound) {
    gk_array number;
    PyObject *keeper = NULL;
    *bound = (gk_bound){.is = GK_UNBOUNDED};
    if (!object || Py_IsNone(object))
        return 0;
    if (is_python_scalar(object) && PyLong_Check(object) && !gk_is_float(dtype))
        return take_whole_bound(object, dtype, bound);
    if (is_python_scalar(object)) {
        if (take_scalar(state, call, name, object, dtype, &number, &keeper) < 0)
            return -1;
    } else if (PyArray_IsScalar(object, Generic)) {
        if (gk_take_array(state, call, name, object, &number, &keeper) < 0)
            return -1;
    } else {
        PyErr_Format(PyExc_TypeError,
                     "%s: %s has to be a number or None, not %S; for bounds that are arrays use "
                     "gpukern.minimum(gpukern.maximum(a, low), high)",
                     call->operation, name, (PyObject *)Py_TYPE(object));
        return -1;
    }
    bool same = number.dtype == dtype;
    if (same) {
        bound->is = GK_BOUNDED;
        gk_pack(&bound->value, &number, 0, 1);
    } else {
        PyErr_Format(PyExc_TypeError, "%s: %s is of dtype %s, and a of %s; convert one",
                     call->operation, name, gk_dtype_name(number.dtype), gk_dtype_name(dtype));
    }
    Py_DECREF(keeper);
    return same ? 0 : -1;
}

/* Whether the scalar is an integer beyond all of an array's: 1 above, -1 below, else 0. */
static int beyond(PyObject *scalar, const gk_array *array) {
    gk_kind kind = gk_dtype_kind(array->dtype);
    gk_bound bound;
    if (!PyLong_Check(scalar) || (kind != GK_SIGNED && kind != GK_UNSIGNED) ||
        take_whole_bound(scalar, array->dtype, &bound) < 0)
        return 0;
    return bound.is == GK_ABOVE_ALL ? 1 : bound.is == GK_BELOW_ALL ? -1 : 0;
}

int gk_take_operands(gk_state *state, gk_call *call, const char *const *names,
                     PyObject *const *objects, int count, gk_array *arrays, PyObject **keepers,
                     int *order) {
    int array = -1;
    for (int i = 0; i < count; i++)
        keepers[i] = NULL;
    for (int i = 0; i < count; i++) {
        if (!gk_is_device_array(state, objects[i]) && is_python_scalar(objects[i]))
            continue;
        if (gk_take_array(state, call, names[i], objects[i], &arrays[i], &keepers[i]) < 0)
            goto fail;
        array = i;
    }
    for (int i = 0; i < count; i++) {
        if (keepers[i])
            continue;
        if (array < 0) { /* scalars alone: there is no dtype to take */
            gk_refuse_operand(call, names[i], objects[i]);
            goto fail;
        }
        int side = order ? beyond(objects[i], &arrays[array]) : 0;
        if (side) {
            *order = i == 0 ? side : -side;
            gk_copy_view(&arrays[i], &arrays[array]);
            keepers[i] = Py_NewRef(keepers[array]);
            continue;
        }
        if (take_scalar(state, call, names[i], objects[i], arrays[array].dtype, &arrays[i],
                        &keepers[i]) < 0)
            goto fail;
    }
    return 0;
fail:
    gk_drop_operands(keepers, count);
    return -1;
}

void gk_drop_operands(PyObject **keepers, int count) {
    for (int i = 0; i < count; i++)
        Py_CLEAR(keepers[i]);
}

static bool is_as_taken(PyObject *keeper, const gk_array *array) {
    PyArrayObject *source = (PyArrayObject *)keeper;
    if (array->place != GK_HOST || !PyArray_Check(keeper))
        return true;
    bool same = PyArray_DATA(source) == array->data && PyArray_NDIM(source) == array->ndim;
    for (int i = 0; same && i < array->ndim; i++)
        same = PyArray_DIM(source, i) == array->shape[i];
    return same;
}

int gk_check_operands(const gk_call *call, const char *const *names, PyObject *const *keepers,
                      int count, const gk_array *arrays) {
    for (int i = 0; i < count; i++)
        if (!is_as_taken(keepers[i], &arrays[i])) {
            PyErr_Format(PyExc_ValueError,
                         "%s: %s was resized while the other arguments were looked at",
                         call->operation, names[i]);
            return -1;
        }
    return 0;
}
