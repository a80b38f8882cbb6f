#include "binding/calls/device_convert.h"

#include "binding/arrays/operands.h"
#include "binding/arrays/outputs.h"
#include "binding/profile.h"
#include "binding/stream.h"
#include "binding/values.h"
#include "engine/copy.h"
#include "engine/transfer.h"

static gk_status fill(gk_call *call, const gk_array *operand, const gk_array *target) {
    gk_array staged;
    if (operand->place == GK_HOST)
        return gk_upload(call, operand, target->data);
    gk_status status = gk_stage_view(call, operand, &staged);
    if (status == GK_OK)
        status = gk_copy_strided(call, target, &staged);
    return status == GK_OK ? gk_call_rejoin(call, operand) : status;
}

PyObject *gk_device_array_copy_operand(gk_state *state, gk_call *call, const gk_array *operand) {
    gk_status status;
    PyObject *made = gk_device_array_new(state, call, operand);
    if (!made)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = fill(call, operand, &((gk_device_array *)made)->array);
    gk_call_end(call);
    Py_END_ALLOW_THREADS;
    if (status == GK_OK)
        return made;
    Py_DECREF(made);
    return gk_raise(state, &call->error);
}

/* Of any array, to the device that it is on or, if it is on none, that one. */
static PyObject *copy_to(gk_state *state, const char *operation, PyObject *source, int ordinal,
                         PyObject *stream) {
    gk_call call;
    gk_array operand;
    PyObject *keeper;
    gk_profiled profiled;
    if (gk_begin_on(state, &call, ordinal, operation) < 0)
        return NULL;
    gk_profile_begin(state, &call, &profiled);
    if (gk_take_stream(state, &call, stream) < 0 ||
        gk_take_operands(state, &call, (const char *const[]){"a"}, &source, 1, &operand, &keeper,
                         NULL) < 0)
        return NULL;
    PyObject *made = gk_device_array_copy_operand(state, &call, &operand);
    if (made && gk_profile_end(state, &call, &profiled, &operand, 1) < 0)
        Py_CLEAR(made);
    gk_drop_operands(&keeper, 1);
    return made;
}

/* The bytes of a contiguous array on another device, which the call's stream is made to wait for.
 */
static gk_status bring_across(gk_call *call, const gk_device_array *there, void *target) {
    gk_backend *other = there->device->backend, *backend = call->backend;
    gk_status status = other->synchronize(other, there->stream, &call->error);
    if (status == GK_OK)
        status = backend->synchronize(backend, call->stream, &call->error);
    if (status == GK_OK)
        status = backend->copy_across(backend, target, other, there->array.data,
                                      gk_bytes(&there->array), &call->error);
    return gk_call_blame(call, status);
}

/* By a copy where it is, since what goes from device to device is contiguous. */
static PyObject *move(gk_state *state, PyObject *source, int from, PyObject *stream) {
    gk_call call;
    gk_status status;
    if (gk_begin(state, &call, "to_device") < 0 || gk_take_stream(state, &call, stream) < 0)
        return NULL;
    if (call.captured) {
        PyErr_Format(PyExc_ValueError,
                     "to_device: a is on device %d, and a copy from one device to another cannot "
                     "be captured in a CUDA graph",
                     from);
        return NULL;
    }
    PyObject *there = copy_to(state, "to_device", source, from, NULL);
    if (!there)
        return NULL;
    PyObject *made = gk_device_array_new(state, &call, &((gk_device_array *)there)->array);
    if (made) {
        Py_BEGIN_ALLOW_THREADS;
        status =
            bring_across(&call, (gk_device_array *)there, ((gk_device_array *)made)->array.data);
        Py_END_ALLOW_THREADS;
        if (status != GK_OK) {
            Py_CLEAR(made);
            gk_raise(state, &call.error);
        }
    }
    Py_DECREF(there);
    return made;
}

PyObject *gk_to_device(gk_state *state, PyObject *source, PyObject *stream) {
    int here = gk_engine_current(state->engine);
    int there = gk_device_of(state, "to_device", (const char *const[]){"a"}, &source, 1, NULL);
    if (there < 0)
        return NULL;
    return there == here ? copy_to(state, "to_device", source, here, stream)
                         : move(state, source, there, stream);
}

PyObject *gk_device_array_copy(const char *operation, PyObject *self, PyObject *stream) {
    gk_device_array *array = (gk_device_array *)self;
    return copy_to(array->state, operation, self, gk_device_number(array), stream);
}

/* to the host ---------------------------------------------------------------------------------- */

int gk_device_array_has_values(const gk_device_array *self, const gk_call *call) {
    if (!gk_is_being_captured(self))
        return 0;
    PyErr_Format(
        PyExc_ValueError,
        "%s: the array is made by a stream that is being captured in a CUDA graph, and has "
        "its values when the graph has been launched",
        call->operation);
    return -1;
}

int gk_device_array_go_home(gk_device_array *self, gk_call *call) {
    if (gk_device_array_has_values(self, call) < 0)
        return -1;
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
    if (gk_begin_on(state, &call, gk_device_number(self), "to_host") < 0)
        return NULL;
    gk_profile_begin(state, &call, &profiled);
    if (gk_device_array_go_home(self, &call) < 0)
        return NULL;
    int failed =
        out ? gk_take_output(state, &call, "out", out, &self->array, &self->array, 1, &output)
            : gk_new_output(state, &call, &self->array, &output);
    if (failed)
        return NULL;
    failed = gk_check_on_host(&call, &output);
    if (!failed) {
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
        failed = gk_finish_output(&call, &output);
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

/* What Python makes of NumPy's array of the values. */
PyObject *gk_method_bytes(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *host = gk_device_array_to_host((gk_device_array *)self, NULL);
    PyObject *bytes =
        host ? PyObject_CallFunctionObjArgs((PyObject *)&PyBytes_Type, host, NULL) : NULL;
    Py_XDECREF(host);
    return bytes;
}

PyObject *gk_method_tolist(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                           PyObject *keywords) {
    if (gk_parse_none("tolist", arguments, count, keywords) < 0)
        return NULL;
    PyObject *host = gk_device_array_to_host((gk_device_array *)self, NULL);
    PyObject *list = host ? PyObject_CallMethod(host, "tolist", NULL) : NULL;
    Py_XDECREF(host);
    return list;
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

/* NumPy's protocols ---------------------------------------------------------------------------- */

/* They are written in Python: gpukern.protocols. */
static PyObject *leave_to_python(const char *name, PyObject *arguments, PyObject *keywords) {
    PyObject *module = PyImport_ImportModule("gpukern.protocols");
    PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
    PyObject *result = function ? PyObject_Call(function, arguments, keywords) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

PyObject *gk_method_array_ufunc(PyObject *self, PyObject *arguments, PyObject *keywords) {
    (void)self;
    return leave_to_python("array_ufunc", arguments, keywords);
}

PyObject *gk_method_array_function(PyObject *self, PyObject *arguments, PyObject *keywords) {
    (void)self;
    return leave_to_python("array_function", arguments, keywords);
}
