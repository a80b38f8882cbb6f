#include "binding/arrays/outputs.h"

#include "binding/arrays/device_object.h"
#include "binding/arrays/dtypes.h"
#include "binding/arrays/foreign.h"
#include "binding/arrays/host_arrays.h"
#include "binding/arrays/numpy_api.h"
#include "binding/arrays/operands.h"
#include "engine/transfer.h"

static int check_output(const gk_call *call, const char *name, const gk_array *out,
                        const gk_array *expected) {
    if (gk_repeats_elements(out)) {
        PyErr_Format(
            PyExc_ValueError,
            "%s: %s is a broadcast view, of which several elements share one place; pass an "
            "array of its own",
            call->operation, name);
        return -1;
    }
    if (out->dtype != expected->dtype) {
        PyErr_Format(PyExc_TypeError, "%s: %s has dtype %s, and the result is %s", call->operation,
                     name, gk_dtype_name(out->dtype), gk_dtype_name(expected->dtype));
        return -1;
    }
    if (!gk_same_shape(out, expected)) {
        PyErr_Format(PyExc_ValueError, "%s: %s has shape %s, and the result has shape %s",
                     call->operation, name, gk_shape_text(out).text, gk_shape_text(expected).text);
        return -1;
    }
    if (out->readonly) {
        PyErr_Format(PyExc_ValueError,
                     "%s: %s is read-only, and has to be an array that can be written",
                     call->operation, name);
        return -1;
    }
    return 0;
}

/* Whether results may go straight to the user's array, as they come: a part of one is worth less
   than a second pass over all of them. A call may begin anew where memory runs out, so no operand
   may lie there. */
static bool is_written_directly(const gk_array *out, const gk_array *operands, int count) {
    if (!operands || out->swapped || !gk_is_contiguous(out))
        return false;
    for (int i = 0; i < count; i++)
        if (operands[i].place == GK_HOST && gk_overlaps(out, &operands[i]))
            return false;
    return true;
}

static int take_host_output(gk_state *state, gk_call *call, const char *name, PyObject *out,
                            const gk_array *expected, const gk_array *operands, int count,
                            gk_output *output) {
    PyArrayObject *array = (PyArrayObject *)out;
    gk_dtype dtype;
    if (gk_refuse_masked(call, name, out) < 0)
        return -1;
    if (!gk_dtype_of((PyObject *)PyArray_DESCR(array), &dtype)) {
        PyErr_Format(PyExc_TypeError, "%s: %s has dtype %S, and the result is %s", call->operation,
                     name, (PyObject *)PyArray_DESCR(array), gk_dtype_name(expected->dtype));
        return -1;
    }
    gk_view_host(out, dtype, &output->array);
    if (check_output(call, name, &output->array, expected) < 0)
        return -1;
    if (is_written_directly(&output->array, operands, count))
        return 0;
    output->target = output->array;
    output->bridge = gk_new_host_array(state, call, expected);
    if (!output->bridge)
        return -1;
    gk_view_host(output->bridge, dtype, &output->array);
    return 0;
}

int gk_take_output(gk_state *state, gk_call *call, const char *name, PyObject *out,
                   const gk_array *expected, const gk_array *operands, int count,
                   gk_output *output) {
    int failed;
    output->bridge = output->keeper = NULL;
    output->object = Py_NewRef(out);
    if (!gk_is_device_array(state, out) && PyArray_Check(out)) {
        failed = take_host_output(state, call, name, out, expected, operands, count, output);
    } else if (gk_is_device_array(state, out) || gk_is_foreign(state, out)) {
        failed = gk_take_array(state, call, name, out, &output->array, &output->keeper);
        if (!failed)
            failed = check_output(call, name, &output->array, expected);
    } else {
        failed = gk_refuse_operand(call, name, out);
    }
    if (failed)
        gk_drop_output(output);
    return failed;
}

int gk_check_on_host(const gk_call *call, const gk_output *output) {
    if (output->array.place == GK_HOST)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s: out has to be a NumPy array, and is a device array",
                 call->operation);
    return -1;
}

int gk_new_output(gk_state *state, gk_call *call, const gk_array *expected, gk_output *output) {
    output->bridge = output->keeper = NULL;
    output->object = gk_new_host_array(state, call, expected);
    if (!output->object)
        return -1;
    gk_view_host(output->object, expected->dtype, &output->array);
    return 0;
}

int gk_finish_output(const gk_call *call, gk_output *output) {
    if (!output->bridge)
        return 0;
    if (PyArray_ISBYTESWAPPED((PyArrayObject *)output->object))
        return PyArray_CopyInto((PyArrayObject *)output->object, (PyArrayObject *)output->bridge);
    Py_BEGIN_ALLOW_THREADS;
    gk_copy_host(call->device, &output->target, &output->array);
    Py_END_ALLOW_THREADS;
    return 0;
}

void gk_drop_output(gk_output *output) {
    Py_CLEAR(output->object);
    Py_CLEAR(output->bridge);
    Py_CLEAR(output->keeper);
}
