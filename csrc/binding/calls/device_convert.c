#include "binding/calls/device_convert.h"

#include "binding/arrays/operands.h"
#include "binding/profile.h"
#include "binding/values.h"
#include "engine/transfer.h"

static gk_status fill(gk_call *call, const gk_array *operand, void *target) {
    gk_array staged;
    if (operand->place == GK_HOST)
        return gk_upload(call, operand, target);
    gk_status status = gk_stage_operand(call, operand, &staged);
    if (status == GK_OK)
        status = gk_call_copy_within(call, target, staged.data, gk_bytes(operand));
    return status == GK_OK ? gk_call_rejoin(call, operand) : status;
}

PyObject *gk_device_array_copy_operand(gk_state *state, gk_call *call, const gk_array *operand) {
    gk_status status;
    PyObject *made = gk_device_array_new(state, call, operand);
    if (!made)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = fill(call, operand, ((gk_device_array *)made)->array.data);
    gk_call_end(call);
    Py_END_ALLOW_THREADS;
    if (status == GK_OK)
        return made;
    Py_DECREF(made);
    return gk_raise(state, &call->error);
}

PyObject *gk_device_array_copy(gk_state *state, PyObject *source, PyObject *stream) {
    gk_call call;
    gk_array operand;
    PyObject *keeper;
    gk_profiled profiled;
    if (gk_begin(state, &call, "to_device") < 0)
        return NULL;
    gk_profile_begin(state, &call, &profiled);
    if (gk_take_stream(state, &call, stream) < 0 ||
        gk_take_operands(state, &call, (const char *const[]){"a"}, &source, 1, &operand, &keeper) <
            0)
        return NULL;
    PyObject *made = gk_device_array_copy_operand(state, &call, &operand);
    if (made && gk_profile_end(state, &call, &profiled, &operand, 1) < 0)
        Py_CLEAR(made);
    gk_drop_operands(&keeper, 1);
    return made;
}

/* to the host ---------------------------------------------------------------------------------- */

int gk_device_array_go_home(gk_device_array *self, gk_call *call) {
    if (gk_call_on(call, self->stream) == GK_OK)
        return 0;
    gk_raise(self->state, &call->error);
    return -1;
}

PyObject *gk_device_array_to_host(gk_device_array *self, PyObject *out) {
    gk_state *state = self->state;
    gk_call call;
    gk_output output;
    gk_profiled profiled;
    if (gk_begin(state, &call, "to_host") < 0)
        return NULL;
    gk_profile_begin(state, &call, &profiled);
    if (gk_device_array_go_home(self, &call) < 0)
        return NULL;
    int failed = out ? gk_take_output(state, &call, out, &self->array, &output)
                     : gk_new_output(state, &call, &self->array, &output);
    if (failed)
        return NULL;
    if (output.array.place != GK_HOST) {
        PyErr_SetString(PyExc_TypeError,
                        "to_host: out has to be a NumPy array, and is a device array");
        failed = -1;
    } else {
        gk_status status;
        gk_array packed;
        Py_BEGIN_ALLOW_THREADS;
        status = gk_stage_operand(&call, &self->array, &packed);
        if (status == GK_OK)
            status = gk_download(&call, packed.data, &output.array);
        gk_call_end(&call);
        Py_END_ALLOW_THREADS;
        if (status != GK_OK) {
            gk_raise(state, &call.error);
            failed = -1;
        }
    }
    if (!failed)
        failed = gk_finish_output(state, &output);
    if (!failed)
        failed = gk_profile_end(state, &call, &profiled, &self->array, 1);
    PyObject *result = failed ? NULL : Py_NewRef(output.object);
    gk_drop_output(&output);
    return result;
}

PyObject *gk_method_to_host(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                            PyObject *keywords) {
    static const char *const names[] = {"out", NULL};
    static const gk_signature signature = {"to_host", names, 0, 1};
    PyObject *out;
    if (gk_parse(&signature, arguments, count, keywords, &out) < 0)
        return NULL;
    return gk_device_array_to_host((gk_device_array *)self, out && !Py_IsNone(out) ? out : NULL);
}

PyObject *gk_method_array(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                          PyObject *keywords) {
    static const char *const names[] = {"dtype", "copy", NULL};
    static const gk_signature signature = {"__array__", names, 0, 2};
    PyObject *values[2];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0)
        return NULL;
    bool copied = true;
    if (values[1] && !Py_IsNone(values[1]) &&
        gk_take_flag("__array__", "copy", values[1], &copied) < 0)
        return NULL;
    if (!copied) {
        PyErr_SetString(PyExc_ValueError, "__array__: copy is False, and a DeviceArray becomes a "
                                          "NumPy array only by a copy from the device");
        return NULL;
    }
    PyObject *host = gk_device_array_to_host((gk_device_array *)self, NULL);
    if (!host || !values[0] || Py_IsNone(values[0]))
        return host;
    PyObject *converted = PyObject_CallMethod(host, "astype", "O", values[0]);
    Py_DECREF(host);
    if (!converted)
        gk_name_failure("__array__: dtype");
    return converted;
}
