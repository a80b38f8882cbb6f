#include "binding/calls/invoke.h"

#include <string.h>

#include "binding/arrays/device_object.h"
#include "binding/arrays/operands.h"
#include "binding/profile.h"
#include "binding/values.h"
#include "engine/call.h"
#include "engine/pipeline.h"
#include "ops/reduce.h"

static bool given(PyObject *object) {
    return object && !Py_IsNone(object);
}

static int take_variant(gk_call *call, PyObject *variant) {
    if (!given(variant))
        return 0;
    if (!PyUnicode_Check(variant)) {
        PyErr_Format(PyExc_TypeError, "%s: variant has to be a name, not %S", call->operation,
                     (PyObject *)Py_TYPE(variant));
        return -1;
    }
    Py_ssize_t length;
    call->variant = PyUnicode_AsUTF8AndSize(variant, &length);
    if (call->variant && strlen(call->variant) == (size_t)length)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: unknown variant %A", call->operation, variant);
    return -1;
}

/* One axis of a reduction as a bit of the mask. */
static int take_axis(gk_call *call, PyObject *axis, PyObject *named, int ndim) {
    gk_reduction_request *request = &call->reduction;
    PyObject *number = PyNumber_Index(named);
    long index = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    if (index == -1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Format(PyExc_TypeError, "%s: axis has to be None, an integer%s, not %R",
                         call->operation,
                         gk_takes_one_axis(request->kind) ? "" : " or a tuple of them", axis);
            return -1;
        }
        PyErr_Clear(); /* a number too large to count axes with */
        index = ndim;
    }
    index += index < 0 ? ndim : 0;
    if (index < 0 || index >= ndim || (request->axes >> index & 1)) {
        PyErr_Format(PyExc_ValueError, "%s: axis %R does not fit an array of %d axes",
                     call->operation, axis, ndim);
        return -1;
    }
    request->axes |= (uint64_t)1 << index;
    return 0;
}

/* None for all axes, one, or a tuple of them. */
static int take_axes(gk_call *call, PyObject *axis, int ndim) {
    if (!given(axis)) {
        call->reduction.axes = ~(uint64_t)0;
        return 0;
    }
    if (!PyTuple_Check(axis) || gk_takes_one_axis(call->reduction.kind))
        return take_axis(call, axis, axis, ndim);
    Py_ssize_t length = PyTuple_Size(axis);
    for (Py_ssize_t i = 0; i < length; i++)
        if (take_axis(call, axis, PyTuple_GetItem(axis, i), ndim) < 0)
            return -1;
    return 0;
}

static int take_reduction(gk_state *state, gk_call *call, const gk_operation *operation,
                          const gk_options *options, int ndim) {
    if (!operation->reduction)
        return 0;
    call->reduction = (gk_reduction_request){.kind = operation->reduction,
                                             .operands = operation->operand_count,
                                             .keepdims = options->keepdims,
                                             .has_dtype = given(options->dtype)};
    if (take_axes(call, options->axis, ndim) < 0)
        return -1;
    return given(options->dtype) ? gk_dtype_from_object(state, call->operation, options->dtype,
                                                        &call->reduction.dtype)
                                 : 0;
}

/* The order of the axes: every axis once, as a tuple or one by one, negative ones from the end. */
static int take_order(gk_call *call, PyObject *axes, int ndim, int *order) {
    bool seen[GK_MAX_DIMENSIONS] = {false};
    if (!given(axes))
        return 0;
    PyObject *list = PySequence_Tuple(axes);
    if (!list)
        return gk_name_failure(call->operation);
    int failed = PyTuple_Size(list) != ndim;
    for (int i = 0; i < ndim && !failed; i++) {
        PyObject *index = PyNumber_Index(PyTuple_GetItem(list, i));
        long axis = index ? PyLong_AsLong(index) : -1;
        Py_XDECREF(index);
        if (axis == -1 && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError)) {
            Py_DECREF(list);
            return gk_name_failure(call->operation);
        }
        PyErr_Clear();
        axis += axis < 0 ? ndim : 0;
        failed = axis < 0 || axis >= ndim || seen[axis];
        if (!failed)
            seen[order[i] = (int)axis] = true;
    }
    Py_DECREF(list);
    call->axes = order;
    if (failed)
        PyErr_Format(PyExc_ValueError, "%s: axes %R are not each of the %d axes of the array once",
                     call->operation, axes, ndim);
    return failed ? -1 : 0;
}

static int take_matrix_axes(gk_call *call, const gk_array *a, int *order) {
    if (a->ndim < 2) {
        PyErr_Format(PyExc_ValueError,
                     "matrix_transpose: a has shape %s; it takes 2 dimensions or more",
                     gk_shape_text(a).text);
        return -1;
    }
    for (int i = 0; i < a->ndim; i++)
        order[i] = i;
    order[a->ndim - 2] = a->ndim - 1;
    order[a->ndim - 1] = a->ndim - 2;
    call->axes = order;
    return 0;
}

/* Shapes, dtypes and the variant, before any memory is asked for. */
static int infer(gk_state *state, gk_call *call, const gk_operation *operation,
                 const gk_array *arrays, gk_array *expected) {
    /* The first look for a row may load a library, which takes time and the GIL. */
    bool known = gk_row_known(call->operation, call->variant, arrays[0].dtype, call->backend);
    PyThreadState *released = known ? NULL : PyEval_SaveThread();
    gk_status status = gk_operation_infer(call, operation, arrays, expected);
    if (released)
        PyEval_RestoreThread(released);
    if (status == GK_OK)
        return 0;
    gk_raise(state, &call->error);
    return -1;
}

/* `out` where it is given; else on the device if any operand is there, and on the host if none. */
static int make_output(gk_state *state, gk_call *call, const gk_operation *operation,
                       const gk_array *arrays, PyObject *out, const gk_array *expected,
                       gk_output *output) {
    if (given(out))
        return gk_take_output(state, call, out, expected, output);
    bool on_device = false;
    for (int i = 0; i < operation->operand_count; i++)
        on_device |= arrays[i].place == GK_DEVICE;
    if (!on_device)
        return gk_new_output(state, call, expected, output);
    output->bridge = output->keeper = NULL;
    output->object = gk_device_array_new(state, call, expected);
    if (!output->object)
        return -1;
    gk_copy_view(&output->array, &((gk_device_array *)output->object)->array);
    return 0;
}

/* Between chunks of a long call signals are heard, with the GIL that the call gave up. */
typedef struct listener {
    gk_interruption base;
    PyThreadState *thread;
} listener;

static bool hear_signals(gk_interruption *interruption) {
    listener *self = (listener *)interruption;
    PyEval_RestoreThread(self->thread);
    bool raised = PyErr_CheckSignals() != 0;
    self->thread = PyEval_SaveThread();
    return raised;
}

static int run(gk_state *state, gk_call *call, const gk_operation *operation,
               const gk_array *arrays, gk_output *output) {
    listener signals = {.base = {.wanted = hear_signals}};
    call->interruption = &signals.base;
    signals.thread = PyEval_SaveThread();
    gk_status status = gk_operation_run(call, operation, arrays, &output->array);
    gk_call_end(call);
    PyEval_RestoreThread(signals.thread);
    if (status == GK_OK)
        return gk_finish_output(state, output);
    gk_raise(state, &call->error);
    return -1;
}

PyObject *gk_invoke(gk_state *state, const gk_operation *operation, PyObject *const *objects,
                    const gk_options *options) {
    gk_call call;
    gk_profiled profiled;
    PyObject *keepers[GK_MAX_OPERANDS];
    gk_array arrays[GK_MAX_OPERANDS], expected;
    gk_output output;
    PyObject *result = NULL;
    int count = operation->operand_count, order[GK_MAX_DIMENSIONS];
    if (gk_begin(state, &call, operation->name) < 0)
        return NULL;
    gk_profile_begin(state, &call, &profiled);
    if (gk_take_stream(state, &call, options->stream) < 0 ||
        take_variant(&call, options->variant) < 0 ||
        gk_take_operands(state, &call, operation->operands, objects, count, arrays, keepers) < 0)
        return NULL;
    int failed = options->matrices ? take_matrix_axes(&call, &arrays[0], order)
                                   : take_order(&call, options->axes, arrays[0].ndim, order);
    if (!failed)
        failed = take_reduction(state, &call, operation, options, arrays[0].ndim);
    if (!failed && infer(state, &call, operation, arrays, &expected) == 0 &&
        make_output(state, &call, operation, arrays, options->out, &expected, &output) == 0) {
        if (run(state, &call, operation, arrays, &output) == 0 &&
            gk_profile_end(state, &call, &profiled, arrays, count) == 0)
            result = Py_NewRef(output.object);
        gk_drop_output(&output);
    }
    gk_drop_operands(keepers, count);
    if (result && !given(options->out) && expected.ndim == 0)
        result = gk_as_scalar(result);
    return result;
}
