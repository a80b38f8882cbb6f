#include "binding/calls/device_dlpack.h"

#include "binding/arrays/device_object.h"
#include "binding/arrays/dlpack.h"
#include "binding/arrays/foreign.h"
#include "binding/arrays/operands.h"
#include "binding/calls/device_convert.h"
#include "binding/stream.h"
#include "binding/values.h"

/* The producer's stream may be gone any time: the legacy default stream waits for it now, and is
   home. But for one that is being captured, for which nobody waits. */
static int go_home(gk_state *state, gk_call *call, const gk_array *lent) {
    bool captured = false;
    gk_status status = GK_OK;
    if (!gk_is_legacy(lent->producer))
        status = gk_call_blame(
            call, call->backend->captured(call->backend, lent->producer, &captured, &call->error));
    if (status == GK_OK && captured)
        call->stream = lent->producer;
    else if (status == GK_OK)
        status = gk_call_wait(call, lent);
    if (status == GK_OK)
        return 0;
    gk_raise(state, &call->error);
    return -1;
}

PyObject *gk_device_array_from_dlpack(gk_state *state, PyObject *source, PyObject *copy) {
    gk_call call;
    gk_array lent;
    PyObject *keeper, *result = NULL;
    const char *name = "x";
    bool wanted = false;
    if (copy && !Py_IsNone(copy) && gk_take_flag("from_dlpack", "copy", copy, &wanted) < 0)
        return NULL;
    int ordinal = gk_device_of(state, "from_dlpack", &name, &source, 1, NULL);
    if (ordinal < 0 || gk_begin_on(state, &call, ordinal, "from_dlpack") < 0)
        return NULL;
    if (gk_is_device_array(state, source))
        return wanted ? gk_device_array_copy("from_dlpack", source, NULL) : Py_NewRef(source);
    if (gk_take_dlpack(state, &call, name, source, &lent, &keeper) < 0)
        return NULL;
    if (wanted) {
        result = gk_device_array_copy_operand(state, &call, &lent);
    } else {
        result = go_home(state, &call, &lent) < 0
                     ? NULL
                     : gk_device_array_lent(state, &call, &lent, keeper);
    }
    Py_DECREF(keeper);
    return result;
}

/* (major, minor), or None for a consumer from before there were versions. */
static int is_versioned(PyObject *version, bool *versioned) {
    *versioned = false;
    if (!version || Py_IsNone(version))
        return 0;
    if (!PyTuple_Check(version) || PyTuple_Size(version) != 2) {
        PyErr_Format(PyExc_TypeError, "__dlpack__: max_version has to be (major, minor), not %R",
                     version);
        return -1;
    }
    long major = PyLong_AsLong(PyTuple_GetItem(version, 0));
    *versioned = major >= GK_DL_MAJOR;
    return PyErr_Occurred() ? gk_name_failure("__dlpack__: max_version") : 0;
}

/* Where the array is, or a copy for the host; a consumer that wants it elsewhere has to copy. */
static int check_dl_device(const gk_device_array *self, PyObject *wanted, bool *to_host) {
    gk_dl_device its = gk_dlpack_device(self->device->backend);
    *to_host = false;
    if (!wanted || Py_IsNone(wanted))
        return 0;
    bool is_pair = PyTuple_Check(wanted) && PyTuple_Size(wanted) == 2;
    long kind = is_pair ? PyLong_AsLong(PyTuple_GetItem(wanted, 0)) : 0;
    long ordinal = is_pair && !PyErr_Occurred() ? PyLong_AsLong(PyTuple_GetItem(wanted, 1)) : 0;
    if (PyErr_Occurred())
        return gk_name_failure("__dlpack__: dl_device");
    *to_host = kind == GK_DL_CPU && ordinal == 0 && its.kind != GK_DL_CPU;
    if (*to_host || (is_pair && kind == its.kind && ordinal == its.ordinal))
        return 0;
    if (is_pair)
        PyErr_Format(PyExc_BufferError,
                     "__dlpack__: the array is on device (%d, %d), and dl_device asks for %R; use "
                     "to_host(), which copies it to the host",
                     its.kind, its.ordinal, wanted);
    else
        PyErr_Format(PyExc_TypeError, "__dlpack__: dl_device has to be (kind, number), not %R",
                     wanted);
    return -1;
}

/* Memory of the host, which the simulator's is, has no stream that could wait. */
static int hand_to_host(gk_device_array *self, gk_call *call) {
    gk_status status;
    if (gk_device_array_has_values(self, call) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    status = call->backend->synchronize(call->backend, self->stream, &call->error);
    Py_END_ALLOW_THREADS;
    if (gk_call_blame(call, status) == GK_OK)
        return 0;
    gk_raise(self->state, &call->error);
    return -1;
}

/* Make the consumer's stream wait for the array. -1 names none, and None the legacy default one. */
static int hand_over(gk_device_array *self, gk_call *call, PyObject *stream) {
    gk_array array;
    if (stream && PyLong_Check(stream)) {
        long long number = PyLong_AsLongLong(stream);
        if (number == -1 && !PyErr_Occurred())
            return 0;
        PyErr_Clear(); /* too large a number is no stream either: said below */
        if (number == 0) {
            PyErr_SetString(PyExc_ValueError,
                            "__dlpack__: stream 0 names no stream: 1 is the legacy "
                            "default stream, 2 that of the thread");
            return -1;
        }
    }
    if (gk_take_stream(self->state, call, stream) < 0)
        return -1;
    if (gk_dlpack_device(call->backend).kind == GK_DL_CPU)
        return hand_to_host(self, call);
    gk_copy_view(&array, &self->array);
    array.producer = gk_producer_of(self);
    if (gk_call_wait(call, &array) == GK_OK)
        return 0;
    gk_raise(self->state, &call->error);
    return -1;
}

/* What NumPy lends of a copy on the host. */
static PyObject *lend_on_host(gk_device_array *self, PyObject *version) {
    PyObject *capsule = NULL;
    PyObject *named = PyDict_New();
    PyObject *host = named ? PyObject_CallMethod((PyObject *)self, "to_host", NULL) : NULL;
    if (host && PyDict_SetItemString(named, "max_version", version ? version : Py_None) == 0)
        capsule = gk_dlpack_ask(self->state, host, named);
    Py_XDECREF(host);
    Py_XDECREF(named);
    return capsule;
}

PyObject *gk_method_dlpack(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                           PyObject *keywords) {
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    static const gk_signature signature = {"__dlpack__", names, 0, 0};
    gk_device_array *self = (gk_device_array *)object;
    PyObject *values[4];
    gk_call call;
    bool versioned, to_host, copied = false;
    if (gk_parse(&signature, arguments, count, keywords, values) < 0 ||
        is_versioned(values[1], &versioned) < 0 || check_dl_device(self, values[2], &to_host) < 0 ||
        (values[3] && !Py_IsNone(values[3]) &&
         gk_take_flag("__dlpack__", "copy", values[3], &copied) < 0) ||
        gk_begin_on(self->state, &call, gk_device_number(self), "__dlpack__") < 0)
        return NULL;
    bool as_is = values[3] && !Py_IsNone(values[3]) && !copied;
    if (to_host && as_is) {
        PyErr_SetString(PyExc_BufferError, "__dlpack__: the array is on the device, and dl_device "
                                           "asks for the host, which takes a copy: copy=False "
                                           "forbids it");
        return NULL;
    }
    if (to_host)
        return lend_on_host(self, values[1]);
    if (self->array.readonly && !versioned && !copied) {
        PyErr_SetString(PyExc_BufferError, "__dlpack__: the array is read-only, which DLPack tells "
                                           "from version 1.0 on; pass max_version=(1, 0)");
        return NULL;
    }
    PyObject *lent = copied ? gk_device_array_copy("__dlpack__", object, NULL) : Py_NewRef(object);
    PyObject *capsule = NULL;
    if (lent && hand_over((gk_device_array *)lent, &call, values[0]) == 0)
        capsule =
            gk_dlpack_export(&((gk_device_array *)lent)->array,
                             gk_dlpack_device(self->device->backend), lent, versioned, copied);
    Py_XDECREF(lent);
    return capsule;
}

PyObject *gk_method_dlpack_device(PyObject *self, PyObject *unused) {
    (void)unused;
    gk_dl_device device = gk_dlpack_device(((gk_device_array *)self)->device->backend);
    return Py_BuildValue("(ii)", device.kind, device.ordinal);
}
