#include "binding/arrays/indexing.h"

#include "binding/arrays/operands.h"
#include "binding/values.h"

/* An axis of the view from now on. */
static int add_axis(gk_array *view, int64_t length, int64_t stride) {
    if (view->ndim == GK_MAX_DIMENSIONS) {
        PyErr_Format(PyExc_IndexError, "number of dimensions must be within [0, %d]",
                     GK_MAX_DIMENSIONS);
        return -1;
    }
    view->shape[view->ndim] = length;
    view->strides[view->ndim++] = stride;
    return 0;
}

static int refuse_index(PyObject *item) {
    PyErr_Format(PyExc_IndexError,
                 "only integers, slices (`:`), ellipsis (`...`) and None (numpy.newaxis) are valid "
                 "indices of a DeviceArray, not %S",
                 (PyObject *)Py_TYPE(item));
    return -1;
}

static int take_integer(const gk_array *array, int axis, PyObject *item, gk_array *view) {
    int64_t length = array->shape[axis];
    PyObject *number = PyNumber_Index(item);
    int64_t index = number ? PyLong_AsLongLong(number) : -1;
    bool huge = PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError);
    if (PyErr_Occurred() && !huge) { /* an array, whose __index__ takes one element alone */
        Py_XDECREF(number);
        return PyErr_ExceptionMatches(PyExc_TypeError) ? refuse_index(item) : -1;
    }
    PyErr_Clear();
    if (huge || index < -length || index >= length) {
        PyErr_Format(PyExc_IndexError, "index %S is out of bounds for axis %d with size %lld",
                     number, axis, (long long)length);
        Py_DECREF(number);
        return -1;
    }
    Py_DECREF(number);
    view->data = (char *)view->data + (index < 0 ? index + length : index) * array->strides[axis];
    return 0;
}

static int take_slice(const gk_array *array, int axis, PyObject *slice, gk_array *view) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
        return -1;
    Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)array->shape[axis], &start, &stop, step);
    int64_t stride = array->strides[axis];
    if (count > 0)
        view->data = (char *)view->data + start * stride;
    /* A step that is never taken may be longer than an address counts. */
    return add_axis(view, count, count > 1 ? step * stride : stride);
}

/* How many axes the items of a key take, and whether there is an Ellipsis among them. */
static int count_items(PyObject *key, bool *ellipsis) {
    int taken = 0;
    *ellipsis = false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(key); i++) {
        PyObject *item = PyTuple_GetItem(key, i);
        if (item == Py_Ellipsis && *ellipsis) {
            PyErr_SetString(PyExc_IndexError, "an index can only have a single ellipsis ('...')");
            return -1;
        }
        if (item == Py_Ellipsis)
            *ellipsis = true;
        else if (PySlice_Check(item) || (PyIndex_Check(item) && !PyBool_Check(item)))
            taken++;
        else if (!Py_IsNone(item))
            return refuse_index(item);
    }
    return taken;
}

/* The item's part in the view; `axis`: the next one of the array. */
static int take_item(const gk_array *array, PyObject *item, int skipped, int *axis,
                     gk_array *view) {
    if (Py_IsNone(item))
        return add_axis(view, 1, 0);
    if (PySlice_Check(item))
        return take_slice(array, (*axis)++, item, view);
    if (item != Py_Ellipsis)
        return take_integer(array, (*axis)++, item, view);
    for (int i = 0; i < skipped; i++, (*axis)++)
        if (add_axis(view, array->shape[*axis], array->strides[*axis]) < 0)
            return -1;
    return 0;
}

static int take_items(const gk_array *array, PyObject *key, gk_array *view) {
    bool ellipsis;
    int axis = 0, taken = count_items(key, &ellipsis);
    if (taken < 0)
        return -1;
    if (taken > array->ndim) {
        PyErr_Format(PyExc_IndexError,
                     "too many indices for array: array is %d-dimensional, but %d were indexed",
                     array->ndim, taken);
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(key); i++)
        if (take_item(array, PyTuple_GetItem(key, i), array->ndim - taken, &axis, view) < 0)
            return -1;
    return ellipsis ? 0 : take_item(array, Py_Ellipsis, array->ndim - taken, &axis, view);
}

int gk_index_view(const gk_array *array, PyObject *key, gk_array *view) {
    PyObject *items = PyTuple_Check(key) ? Py_NewRef(key) : PyTuple_Pack(1, key);
    if (!items)
        return -1;
    gk_copy_view(view, array);
    view->ndim = 0;
    int failed = take_items(array, items, view);
    Py_DECREF(items);
    return failed;
}

/* reshape -------------------------------------------------------------------------------------- */

/* Instead of what Python says of a thing that is no number. */
static int refuse_lengths(PyObject *shape) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        return gk_name_failure("reshape");
    PyErr_Format(PyExc_TypeError,
                 "reshape: shape has to be lengths or one tuple of them, whole numbers, not %R",
                 shape);
    return -1;
}

static int read_lengths(PyObject *lengths, gk_array *shaped) {
    Py_ssize_t ndim = PyTuple_Size(lengths);
    if (ndim > GK_MAX_DIMENSIONS) {
        PyErr_Format(PyExc_ValueError, "reshape: shape has %zd dimensions, and the most are %d",
                     ndim, GK_MAX_DIMENSIONS);
        return -1;
    }
    shaped->ndim = (int)ndim;
    for (int i = 0; i < shaped->ndim; i++) {
        PyObject *number = gk_whole_number(PyTuple_GetItem(lengths, i));
        int overflow = 0;
        shaped->shape[i] = number ? PyLong_AsLongLongAndOverflow(number, &overflow) : 0;
        Py_XDECREF(number);
        if (overflow)
            shaped->shape[i] = INT64_MIN; /* no length, as a huge one */
        if (PyErr_Occurred())
            return refuse_lengths(lengths);
    }
    return 0;
}

/* The product of the known lengths; the unknown one's place, or -1. */
static int64_t known_lengths(const gk_array *shaped, int *unknown) {
    int64_t product = 1;
    *unknown = -1;
    for (int i = 0; i < shaped->ndim; i++) {
        if (shaped->shape[i] == -1 && *unknown < 0)
            *unknown = i;
        else if (shaped->shape[i] < 0 ||
                 __builtin_mul_overflow(product, shaped->shape[i], &product))
            return -1;
    }
    return product;
}

static int fit_lengths(const gk_array *array, PyObject *lengths, gk_array *shaped) {
    int64_t count = (int64_t)gk_count(array);
    int unknown;
    if (read_lengths(lengths, shaped) < 0)
        return -1;
    int64_t known = known_lengths(shaped, &unknown);
    if (unknown >= 0 && known > 0 && count % known == 0) {
        shaped->shape[unknown] = count / known;
        known = count;
    }
    bool fits = known == count && !(unknown >= 0 && shaped->shape[unknown] < 0);
    if (fits && gk_is_addressable(shaped))
        return 0;
    PyErr_Format(PyExc_ValueError, "reshape: cannot reshape array of size %lld into shape %S",
                 (long long)count, lengths);
    return -1;
}

/* What a method was given: one sequence, or the integers themselves. */
static PyObject *listed(PyObject *const *arguments, Py_ssize_t count) {
    if (count == 1 && gk_is_sequence(arguments[0]))
        return PySequence_Tuple(arguments[0]);
    PyObject *list = PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count && list; i++)
        if (PyTuple_SetItem(list, i, Py_NewRef(arguments[i])) < 0)
            Py_CLEAR(list);
    return list;
}

int gk_reshape_shape(const gk_array *array, PyObject *const *arguments, Py_ssize_t count,
                     gk_array *shaped) {
    PyObject *lengths = listed(arguments, count);
    if (!lengths)
        return count == 1 ? refuse_lengths(arguments[0]) : -1;
    gk_copy_view(shaped, array);
    int failed = fit_lengths(array, lengths, shaped);
    Py_DECREF(lengths);
    return failed;
}

/* transpose ------------------------------------------------------------------------------------ */

static int refuse_order(const gk_array *array, PyObject *order) {
    PyErr_Format(PyExc_ValueError,
                 "transpose: axes %R have to name each of the %d axes of the array once", order,
                 array->ndim);
    return -1;
}

/* Instead of what Python says of a thing that is no number. */
static int refuse_axes(PyObject *axes) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError))
        return gk_name_failure("transpose");
    PyErr_Format(PyExc_TypeError,
                 "transpose: axes have to be integers or one tuple of them, each axis once, not %R",
                 axes);
    return -1;
}

static int take_order(const gk_array *array, PyObject *order, gk_array *view) {
    uint64_t seen = 0;
    if (PyTuple_Size(order) != array->ndim)
        return refuse_order(array, order);
    for (int i = 0; i < array->ndim; i++) {
        PyObject *number = gk_whole_number(PyTuple_GetItem(order, i));
        Py_ssize_t axis =
            number ? PyNumber_AsSsize_t(number, NULL) : 0; /* a huge one: the nearest */
        Py_XDECREF(number);
        if (PyErr_Occurred())
            return refuse_axes(order);
        axis += axis < 0 ? array->ndim : 0;
        if (axis < 0 || axis >= array->ndim || (seen >> axis & 1))
            return refuse_order(array, order);
        seen |= (uint64_t)1 << axis;
        view->shape[i] = array->shape[axis];
        view->strides[i] = array->strides[axis];
    }
    return 0;
}

void gk_reversed_view(const gk_array *array, gk_array *view) {
    gk_copy_view(view, array);
    for (int i = 0; i < array->ndim; i++) {
        view->shape[i] = array->shape[array->ndim - 1 - i];
        view->strides[i] = array->strides[array->ndim - 1 - i];
    }
}

int gk_transposed_view(const gk_array *array, PyObject *const *arguments, Py_ssize_t count,
                       gk_array *view) {
    gk_reversed_view(array, view);
    if (count == 0 || (count == 1 && Py_IsNone(arguments[0])))
        return 0;
    PyObject *order = listed(arguments, count);
    if (!order)
        return count == 1 ? refuse_axes(arguments[0]) : -1;
    int failed = take_order(array, order, view);
    Py_DECREF(order);
    return failed;
}
