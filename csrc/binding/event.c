#include "binding/event.h"

#include "binding/state.h"
#include "binding/stream.h"
#include "binding/values.h"
#include "engine/call.h"

typedef struct event_object {
    PyObject ob_base;
    gk_state *state;
    PyObject *module;  /* keeps the state: a collection at exit may clear the type first */
    gk_device *device; /* NULL until first recorded, as is the event */
    gk_event *event;   /* NULL until first recorded */
} event_object;

static PyObject *event_new(PyTypeObject *type, PyObject *positional, PyObject *named) {
    if (PyTuple_Size(positional) > 0 || (named && PyDict_Size(named) > 0)) {
        PyErr_SetString(PyExc_TypeError,
                        "Event: takes no arguments; Event().record(stream) names the stream");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    event_object *self = (event_object *)allocate(type, 0);
    if (self) {
        self->state = PyType_GetModuleState(type);
        self->module = Py_NewRef(self->state->module);
    }
    return (PyObject *)self;
}

static void event_deallocate(PyObject *object) {
    event_object *self = (event_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *module = self->module;
    PyObject_GC_UnTrack(object);
    gk_backend *backend = self->device ? gk_device_usable(self->device) : NULL;
    if (backend)
        backend->event_free(backend, self->event);
    PyObject_GC_Del(object);
    Py_DECREF(type);
    Py_DECREF(module);
}

static int event_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((event_object *)object)->module);
    return 0;
}

/* On the event's device, which is the one that the thread had chosen when it was first recorded. */
static int begin_at(event_object *self, gk_call *call, const char *operation) {
    int ordinal =
        self->device ? self->device->backend->ordinal : gk_engine_current(self->state->engine);
    return gk_begin_on(self->state, call, ordinal, operation);
}

/* Two threads may record a new event at once: the first one's stays. */
static gk_status make_event(event_object *self, gk_call *call) {
    gk_event *made = NULL;
    gk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = call->backend->event_new(call->backend, &made, &call->error);
    Py_END_ALLOW_THREADS;
    if (status != GK_OK)
        return status;
    if (self->event) {
        call->backend->event_free(call->backend, made);
    } else {
        self->event = made;
        self->device = call->device;
    }
    return GK_OK;
}

static PyObject *event_record(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                              PyObject *keywords) {
    static const char *const names[] = {"stream", NULL};
    static const gk_signature signature = {"Event.record", names, 0, 1};
    event_object *self = (event_object *)object;
    gk_call call;
    gk_status status;
    gk_stream stream;
    PyObject *value;
    if (gk_parse(&signature, arguments, count, keywords, &value) < 0 ||
        begin_at(self, &call, "Event.record") < 0 ||
        gk_read_stream(self->state, &call, value, &stream) < 0)
        return NULL;
    if (!self->event && make_event(self, &call) != GK_OK)
        return gk_raise(self->state, &call.error);
    if (self->device != call.device && begin_at(self, &call, "Event.record") < 0)
        return NULL; /* the other thread had chosen another device */
    Py_BEGIN_ALLOW_THREADS;
    status = call.backend->record(call.backend, self->event, stream, &call.error);
    Py_END_ALLOW_THREADS;
    if (status != GK_OK)
        return gk_raise(self->state, &call.error);
    Py_RETURN_NONE;
}

static PyObject *seconds_between(event_object *from, event_object *to, const char *operation) {
    gk_call call;
    gk_status status;
    double seconds = 0.0;
    if (!from->event || !to->event) {
        PyErr_Format(PyExc_ValueError,
                     "%s: an event that was never recorded has no time; call record() first",
                     operation);
        return NULL;
    }
    if (from->device != to->device) {
        PyErr_Format(PyExc_ValueError,
                     "%s: earlier was recorded on device %d, this event on device %d, and their "
                     "clocks differ",
                     operation, from->device->backend->ordinal, to->device->backend->ordinal);
        return NULL;
    }
    if (begin_at(to, &call, operation) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = call.backend->elapsed(call.backend, from->event, to->event, &seconds, &call.error);
    Py_END_ALLOW_THREADS;
    return status == GK_OK ? PyFloat_FromDouble(seconds) : gk_raise(to->state, &call.error);
}

static PyObject *event_seconds_since(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                                     PyObject *keywords) {
    static const char *const names[] = {"earlier", NULL};
    static const gk_signature signature = {"Event.seconds_since", names, 1, 1};
    PyObject *earlier;
    if (gk_parse(&signature, arguments, count, keywords, &earlier) < 0)
        return NULL;
    if (Py_TYPE(earlier) != Py_TYPE(object)) {
        PyErr_Format(PyExc_TypeError, "Event.seconds_since: earlier has to be an Event, not %S",
                     (PyObject *)Py_TYPE(earlier));
        return NULL;
    }
    return seconds_between((event_object *)earlier, (event_object *)object, "Event.seconds_since");
}

static PyObject *event_synchronize(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                                   PyObject *keywords) {
    event_object *self = (event_object *)object;
    if (gk_parse_none("Event.synchronize", arguments, count, keywords) < 0)
        return NULL;
    PyObject *zero = seconds_between(self, self, "Event.synchronize");
    if (!zero)
        return NULL;
    Py_DECREF(zero);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"record", GK_FAST(event_record),
     "record($self, stream=None)\n--\n\n"
     "Mark this moment in a stream's work (None: the legacy default stream, which every library\n"
     "on the device shares). Does not wait."},
    {"synchronize", GK_FAST(event_synchronize),
     "synchronize($self)\n--\n\nWait until the device has reached the event."},
    {"seconds_since", GK_FAST(event_seconds_since),
     "seconds_since($self, earlier, /)\n--\n\n"
     "Seconds of the device's clock from `earlier` to this event; waits for this one. On the\n"
     "simulator it is the CPU's clock. Raises ValueError where one was never recorded."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Event()\n--\n\nA moment in a stream's work; two of them time what ran between."},
    {Py_tp_new, event_new},
    {Py_tp_dealloc, event_deallocate},
    {Py_tp_traverse, event_traverse},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec gk_event_spec = {
    .name = "gpukern.Event",
    .basicsize = sizeof(event_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
