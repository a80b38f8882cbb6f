#include "binding/calls/parameters.h"

#include <string.h>

#include "binding/arrays/dtypes.h"
#include "binding/arrays/operands.h"
#include "binding/values.h"

static bool given(PyObject *object) {
    return object && !Py_IsNone(object);
}

/* axes ----------------------------------------------------------------------------------------- */

typedef enum axis_read {
    AXIS_READ,
    AXIS_NO_INTEGER,
    AXIS_OUT_OF_RANGE,
    AXIS_TWICE,
    AXIS_RAISED,
} axis_read;

/* One axis as a number from 0 on. What stands against it is not raised yet, but for an exception of
   the object's own. */
static axis_read read_axis(PyObject *object, int ndim, int *axis) {
    PyObject *number = gk_whole_number(object);
    int overflow = 0;
    long index = number ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
    Py_XDECREF(number);
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return AXIS_RAISED;
        PyErr_Clear();
        return AXIS_NO_INTEGER;
    }
    index += index < 0 ? ndim : 0;
    *axis = (int)index;
    return overflow || index < 0 || index >= ndim ? AXIS_OUT_OF_RANGE : AXIS_READ;
}

/* The same, and that none comes twice: `seen` has a bit for each that has come. */
static axis_read read_new_axis(PyObject *object, int ndim, uint64_t *seen, int *axis) {
    axis_read read = read_axis(object, ndim, axis);
    if (read != AXIS_READ)
        return read;
    if (*seen >> *axis & 1)
        return AXIS_TWICE;
    *seen |= (uint64_t)1 << *axis;
    return AXIS_READ;
}

static void refuse_range(const gk_call *call, PyObject *whole, int ndim) {
    if (ndim == 0)
        PyErr_Format(PyExc_ValueError, "%s: axis %R does not fit a 0-d array, which has no axes",
                     call->operation, whole);
    else
        PyErr_Format(PyExc_ValueError,
                     "%s: axis %R does not fit an array of %d axes; they are 0 to %d, or from the "
                     "end -1 to -%d",
                     call->operation, whole, ndim, ndim - 1, ndim);
}

static int add_axis(const gk_call *call, PyObject *whole, PyObject *named, bool several, int ndim,
                    uint64_t *axes) {
    int axis;
    /* Where there is no axis NumPy takes 0 and -1 all the same, but not in a tuple. */
    int axis_count = ndim == 0 && named == whole ? 1 : ndim;
    switch (read_new_axis(named, axis_count, axes, &axis)) {
    case AXIS_READ:
        return 0;
    case AXIS_NO_INTEGER:
        PyErr_Format(PyExc_TypeError, "%s: axis has to be None%s, not %R", call->operation,
                     several ? ", an integer or a tuple of integers" : " or an integer", whole);
        return -1;
    case AXIS_TWICE:
        PyErr_Format(PyExc_ValueError, "%s: axis %R names an axis twice", call->operation, whole);
        return -1;
    case AXIS_OUT_OF_RANGE:
        refuse_range(call, whole, ndim);
        return -1;
    case AXIS_RAISED:
        return -1;
    }
    return -1;
}

/* None for all axes, one, or, where several are taken, a tuple of them. */
static int take_axes(const gk_call *call, PyObject *object, bool several, int ndim,
                     uint64_t *axes) {
    *axes = 0;
    if (!given(object)) {
        *axes = ~(uint64_t)0;
        return 0;
    }
    if (!PyTuple_Check(object) || !several)
        return add_axis(call, object, object, several, ndim, axes);
    Py_ssize_t length = PyTuple_Size(object);
    for (Py_ssize_t i = 0; i < length; i++)
        if (add_axis(call, object, PyTuple_GetItem(object, i), several, ndim, axes) < 0)
            return -1;
    return 0;
}

/* The order of the axes: every axis once, negative ones from the end. */
static int take_order(const gk_call *call, PyObject *object, int ndim, gk_order *order) {
    uint64_t seen = 0;
    order->given = given(object);
    if (!order->given)
        return 0;
    bool sequence = gk_is_sequence(object);
    PyObject *list = sequence ? PySequence_Tuple(object) : NULL;
    if (sequence && !list && !PyErr_ExceptionMatches(PyExc_TypeError))
        return -1;
    axis_read read = !list                        ? AXIS_NO_INTEGER
                     : PyTuple_Size(list) == ndim ? AXIS_READ
                                                  : AXIS_OUT_OF_RANGE;
    for (int i = 0; i < ndim && read == AXIS_READ; i++)
        read = read_new_axis(PyTuple_GetItem(list, i), ndim, &seen, &order->axis[i]);
    Py_XDECREF(list);
    if (read == AXIS_NO_INTEGER)
        PyErr_Format(PyExc_TypeError,
                     "%s: axes has to be None or a tuple of integers, one for each axis of a, as "
                     "axes=(1, 0), not %R",
                     call->operation, object);
    if (read == AXIS_OUT_OF_RANGE || read == AXIS_TWICE)
        PyErr_Format(PyExc_ValueError, "%s: axes %R have to name each of the %d axes of a once",
                     call->operation, object, ndim);
    return read == AXIS_READ ? 0 : -1;
}

/* the others ----------------------------------------------------------------------------------- */

static int take_dtype(gk_state *state, const gk_call *call, PyObject *object,
                      gk_wanted_dtype *wanted) {
    wanted->given = given(object);
    return wanted->given ? gk_dtype_from_object(state, call->operation, object, &wanted->dtype) : 0;
}

static int take_flag(const gk_call *call, const char *name, PyObject *object, bool *flag) {
    *flag = false;
    return object ? gk_take_flag(call->operation, name, object, flag) : 0;
}

static int take_one(gk_state *state, gk_call *call, const gk_parameter *parameter, PyObject *value,
                    const gk_array *operands, void *into) {
    void *member = (char *)into + parameter->offset;
    switch (parameter->kind) {
    case GK_OUT:
        return 0;
    case GK_AXES:
    case GK_AXIS:
        return take_axes(call, value, parameter->kind == GK_AXES, operands[0].ndim, member);
    case GK_ORDER:
        return take_order(call, value, operands[0].ndim, member);
    case GK_DTYPE:
        return take_dtype(state, call, value, member);
    case GK_FLAG:
        return take_flag(call, parameter->name, value, member);
    case GK_BOUND:
        return gk_take_bound(state, call, parameter->name, value, operands[0].dtype, member);
    }
    return 0;
}

int gk_take_parameters(gk_state *state, gk_call *call, const gk_operation *operation,
                       PyObject *const *values, const gk_array *operands, void *into) {
    memset(into, 0, operation->parameter_bytes); /* what the operation has and does not take */
    call->parameters = operation->parameter_bytes ? into : NULL;
    for (int i = 0; operation->parameters[i].name; i++)
        if (take_one(state, call, &operation->parameters[i], values ? values[i] : NULL, operands,
                     into) < 0)
            return -1;
    return 0;
}
