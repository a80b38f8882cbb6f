#include "binding/arrays/device_object.h"

#include "binding/stream.h"

bool gk_is_device_array(const gk_state *state, PyObject *object) {
    return Py_TYPE(object) == state->device_array_type;
}

int gk_device_number(const gk_device_array *array) {
    return array->device->backend->ordinal;
}

int gk_refuse_place(const gk_call *call, const char *name, int there) {
    int here = call->device->backend->ordinal;
    PyErr_Format(PyExc_ValueError,
                 "%s: %s is on device %d, and the call runs on device %d, where an array before it "
                 "is; to copy it there: with gpukern.device(%d): %s = gpukern.to_device(%s)",
                 call->operation, name, there, here, here, name, name);
    return -1;
}

void gk_device_array_deallocate(PyObject *self) {
    gk_device_array *array = (gk_device_array *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject *module = array->module;
    PyObject_GC_UnTrack(self);
    if (array->weak_references)
        PyObject_ClearWeakRefs(self);
    gk_backend *backend = gk_device_usable(array->device);
    if (backend && !array->owner)
        backend->release(backend, array->array.data, array->stream);
    Py_XDECREF(array->owner);
    Py_XDECREF(array->stream_keeper);
    PyObject_GC_Del(self);
    Py_DECREF(type);
    Py_DECREF(module);
}

int gk_device_array_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((gk_device_array *)self)->module);
    Py_VISIT(((gk_device_array *)self)->owner);
    Py_VISIT(((gk_device_array *)self)->stream_keeper);
    return 0;
}

/* The call's stream; but what a graph writes is read where the graph was launched, and a thread's
   own stream, which goes with the thread, is in order with the legacy default stream. */
static gk_stream home(const gk_call *call) {
    return call->captured || call->stream == GK_PER_THREAD_STREAM ? 0 : call->stream;
}

bool gk_is_being_captured(const gk_device_array *array) {
    return array->capture && gk_capture_of(array->state, array->stream_keeper) == array->capture;
}

gk_stream gk_producer_of(const gk_device_array *array) {
    if (gk_is_being_captured(array))
        return gk_stream_handle(array->stream_keeper);
    return array->stream ? array->stream : GK_LEGACY_STREAM;
}

/* What an array has of the call or of the array that it comes from; no references. */
typedef struct origin {
    const char *operation;
    gk_device *device;
    gk_stream stream;
    uint64_t capture;
    PyObject *stream_keeper, *owner; /* or NULL */
} origin;

static origin of_call(const gk_state *state, const gk_call *call, PyObject *owner) {
    gk_stream stream = home(call);
    uint64_t capture = gk_capture_of(state, call->keeper);
    return (origin){.operation = call->operation,
                    .device = call->device,
                    .stream = stream,
                    .capture = capture,
                    .stream_keeper = stream || capture ? call->keeper : NULL,
                    .owner = owner};
}

static origin of_array(gk_device_array *source) {
    return (origin){.operation = "DeviceArray",
                    .device = source->device,
                    .stream = source->stream,
                    .capture = source->capture,
                    .stream_keeper = source->stream_keeper,
                    .owner = source->owner ? source->owner : (PyObject *)source};
}

/* An array of that shape, dtype and memory. */
static gk_device_array *new_object(gk_state *state, origin from, const gk_array *like) {
    if (gk_engine_fault_due(state->engine)) {
        PyErr_Format(PyExc_MemoryError, "%s: planted fault in a host allocation", from.operation);
        return NULL;
    }
    gk_device_array *made = PyObject_GC_New(gk_device_array, state->device_array_type);
    if (!made)
        return NULL;
    made->state = state;
    made->module = Py_NewRef(state->module);
    made->device = from.device;
    made->stream = from.stream;
    made->capture = from.capture;
    made->owner = Py_XNewRef(from.owner);
    made->stream_keeper = Py_XNewRef(from.stream_keeper);
    made->weak_references = NULL;
    gk_copy_view(&made->array, like);
    made->array.place = GK_DEVICE;
    made->array.producer = 0;
    PyObject_GC_Track((PyObject *)made);
    return made;
}

PyObject *gk_device_array_new(gk_state *state, gk_call *call, const gk_array *like) {
    gk_status status;
    gk_device_array *made = new_object(state, of_call(state, call, NULL), like);
    if (!made)
        return NULL;
    made->array.readonly = made->array.swapped = false;
    made->array.data = NULL;
    gk_make_contiguous(&made->array);
    Py_BEGIN_ALLOW_THREADS;
    status = gk_call_allocate(call, gk_bytes(&made->array), &made->array.data);
    Py_END_ALLOW_THREADS;
    if (status == GK_OK)
        return (PyObject *)made;
    made->array.data = NULL;
    Py_DECREF(made);
    return gk_raise(state, &call->error);
}

PyObject *gk_device_array_view(gk_device_array *source, const gk_array *view) {
    return (PyObject *)new_object(source->state, of_array(source), view);
}

PyObject *gk_device_array_lent(gk_state *state, const gk_call *call, const gk_array *lent,
                               PyObject *owner) {
    return (PyObject *)new_object(state, of_call(state, call, owner), lent);
}
