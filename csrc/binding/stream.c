#include "binding/stream.h"

#include "base/memory.h"
#include "binding/state.h"
#include "binding/values.h"
#include "engine/call.h"

/* Both types begin like this: an object of one device, which keeps the module's state. */
typedef struct stream_object {
    PyObject ob_base;
    gk_state *state;
    PyObject *module; /* keeps the state: a collection at exit may clear the type first */
    gk_device *device;
    gk_stream handle;
    bool capturing;
    uint64_t captures; /* that were begun */
} stream_object;

typedef struct graph_object {
    PyObject ob_base;
    stream_object *stream; /* that it was captured on */
    gk_graph *graph;
} graph_object;

static int begin_at(const stream_object *self, gk_call *call, const char *operation) {
    return gk_begin_on(self->state, call, self->device->backend->ordinal, operation);
}

/* streams -------------------------------------------------------------------------------------- */

uint64_t gk_capture_of(const gk_state *state, PyObject *object) {
    const stream_object *stream = (const stream_object *)object;
    return object && Py_TYPE(object) == state->stream_type && stream->capturing ? stream->captures
                                                                                : 0;
}

gk_stream gk_stream_handle(PyObject *stream) {
    return ((const stream_object *)stream)->handle;
}

gk_device *gk_stream_device(const gk_state *state, PyObject *object) {
    bool ours = object && Py_TYPE(object) == state->stream_type;
    return ours ? ((const stream_object *)object)->device : NULL;
}

static int check_device(const gk_state *state, const gk_call *call, PyObject *object) {
    const gk_device *device = gk_stream_device(state, object);
    const int here = call->backend->ordinal;
    if (!device || device == call->device)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s: stream is of device %d, and the call is on device %d; make one under "
                 "gpukern.device(%d)",
                 call->operation, device->backend->ordinal, here, here);
    return -1;
}

int gk_read_stream(const gk_state *state, const gk_call *call, PyObject *object,
                   gk_stream *stream) {
    if (check_device(state, call, object) < 0 ||
        gk_stream_from_object(call->operation, object, stream) < 0)
        return -1;
    if (!call->backend->streams_are_addresses || !object || !PyLong_Check(object) ||
        *stream <= GK_PER_THREAD_STREAM || gk_memory_is_readable(*stream))
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s: stream %R is not the handle of a stream: there is no memory to be read",
                 call->operation, object);
    return -1;
}

int gk_take_stream(gk_state *state, gk_call *call, PyObject *object) {
    gk_stream stream;
    if (!object || Py_IsNone(object))
        return 0;
    if (gk_read_stream(state, call, object, &stream) < 0)
        return -1;
    call->keeper = PyLong_Check(object) ? NULL : object;
    if (gk_call_on(call, stream) == GK_OK)
        return 0;
    gk_raise(state, &call->error);
    return -1;
}

static PyObject *stream_new(PyTypeObject *type, PyObject *positional, PyObject *named) {
    gk_state *state = PyType_GetModuleState(type);
    gk_call call;
    gk_stream handle;
    if (PyTuple_Size(positional) > 0 || (named && PyDict_Size(named) > 0)) {
        PyErr_SetString(PyExc_TypeError, "Stream: takes no arguments; the stream is one of the "
                                         "device that gpukern.device() has chosen");
        return NULL;
    }
    if (gk_begin(state, &call, "Stream") < 0)
        return NULL;
    if (call.backend->stream_new(call.backend, &handle, &call.error) != GK_OK) {
        gk_fail_in(&call.error, "Stream: ");
        return gk_raise(state, &call.error);
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    stream_object *self = (stream_object *)allocate(type, 0);
    if (!self) {
        call.backend->stream_free(call.backend, handle);
        return NULL;
    }
    self->state = state;
    self->module = Py_NewRef(state->module);
    self->device = call.device;
    self->handle = handle;
    self->capturing = false;
    self->captures = 0;
    return (PyObject *)self;
}

static void stream_deallocate(PyObject *object) {
    stream_object *self = (stream_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *module = self->module;
    gk_graph *graph = NULL;
    gk_error ignored;
    PyObject_GC_UnTrack(object);
    gk_backend *backend = gk_device_usable(self->device);
    if (backend && self->capturing &&
        backend->capture_end(backend, self->handle, &graph, &ignored) == GK_OK)
        backend->graph_free(backend, graph);
    if (backend)
        backend->stream_free(backend, self->handle);
    PyObject_GC_Del(object);
    Py_DECREF(type);
    Py_DECREF(module);
}

static int stream_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((stream_object *)object)->module);
    return 0;
}

static PyObject *stream_handle(PyObject *object, void *closure) {
    (void)closure;
    return PyLong_FromSize_t(((stream_object *)object)->handle);
}

static PyObject *stream_device(PyObject *object, void *closure) {
    (void)closure;
    return PyLong_FromLong(((stream_object *)object)->device->backend->ordinal);
}

static PyObject *stream_protocol(PyObject *object, PyObject *unused) {
    (void)unused;
    return Py_BuildValue("(in)", 0, (Py_ssize_t)((stream_object *)object)->handle);
}

static PyObject *stream_synchronize(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                                    PyObject *keywords) {
    stream_object *self = (stream_object *)object;
    gk_call call;
    gk_status status;
    if (gk_parse_none("Stream.synchronize", arguments, count, keywords) < 0 ||
        begin_at(self, &call, "Stream.synchronize") < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = call.backend->synchronize(call.backend, self->handle, &call.error);
    Py_END_ALLOW_THREADS;
    if (status == GK_OK)
        Py_RETURN_NONE;
    gk_fail_in(&call.error, "Stream.synchronize: ");
    return gk_raise(self->state, &call.error);
}

static PyObject *stream_begin_capture(PyObject *object, PyObject *const *arguments,
                                      Py_ssize_t count, PyObject *keywords) {
    stream_object *self = (stream_object *)object;
    gk_call call;
    if (gk_parse_none("Stream.begin_capture", arguments, count, keywords) < 0 ||
        begin_at(self, &call, "Stream.begin_capture") < 0)
        return NULL;
    if (call.backend->capture(call.backend, self->handle, &call.error) != GK_OK) {
        gk_fail_in(&call.error, "Stream.begin_capture: ");
        return gk_raise(self->state, &call.error);
    }
    self->capturing = true;
    self->captures++;
    Py_RETURN_NONE;
}

static PyObject *stream_end_capture(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                                    PyObject *keywords) {
    stream_object *self = (stream_object *)object;
    gk_call call;
    gk_status status;
    gk_graph *graph = NULL;
    if (gk_parse_none("Stream.end_capture", arguments, count, keywords) < 0 ||
        begin_at(self, &call, "Stream.end_capture") < 0)
        return NULL;
    self->capturing = false;
    Py_BEGIN_ALLOW_THREADS; /* a graph of many nodes takes a while */
    status = call.backend->capture_end(call.backend, self->handle, &graph, &call.error);
    Py_END_ALLOW_THREADS;
    if (status != GK_OK) {
        gk_fail_in(&call.error, "Stream.end_capture: ");
        return gk_raise(self->state, &call.error);
    }
    graph_object *made = PyObject_GC_New(graph_object, self->state->graph_type);
    if (!made) {
        call.backend->graph_free(call.backend, graph);
        return NULL;
    }
    made->stream = (stream_object *)Py_NewRef(object);
    made->graph = graph;
    PyObject_GC_Track((PyObject *)made);
    return (PyObject *)made;
}

static PyMethodDef stream_methods[] = {
    {"synchronize", GK_FAST(stream_synchronize),
     "synchronize($self)\n--\n\nWait until the device has done the stream's work."},
    {"begin_capture", GK_FAST(stream_begin_capture),
     "begin_capture($self)\n--\n\n"
     "Keep what the stream is given from here on, in place of doing it. Every array of such a "
     "call\n"
     "has to be on the device."},
    {"end_capture", GK_FAST(stream_end_capture),
     "end_capture($self)\n--\n\n"
     "The Graph of what the stream was given since begin_capture.\n"
     "Raises ValueError or CudaError where nothing is being captured or the capture has failed."},
    {"__cuda_stream__", stream_protocol, METH_NOARGS,
     "__cuda_stream__($self)\n--\n\n(0, handle): how libraries hand streams to one another."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef stream_attributes[] = {
    {"cuda_stream", stream_handle, NULL, "The handle, an integer.", NULL},
    {"device", stream_device, NULL, "The number of its device, from 0.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot stream_slots[] = {
    {Py_tp_doc, "Stream()\n--\n\n"
                "A queue of work on the device that gpukern.device() has chosen: what it is given "
                "runs in\norder, beside other streams, and does not wait for the legacy default "
                "stream. Arrays that\nare made on it keep it alive; operations take it as stream=, "
                "and so do other libraries that\nknow __cuda_stream__."},
    {Py_tp_new, stream_new},
    {Py_tp_dealloc, stream_deallocate},
    {Py_tp_traverse, stream_traverse},
    {Py_tp_methods, stream_methods},
    {Py_tp_getset, stream_attributes},
    {0, NULL},
};

PyType_Spec gk_stream_spec = {
    .name = "gpukern.Stream",
    .basicsize = sizeof(stream_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = stream_slots,
};

/* graphs --------------------------------------------------------------------------------------- */

static PyObject *refuse_graph(PyTypeObject *type, PyObject *positional, PyObject *named) {
    (void)type, (void)positional, (void)named;
    PyErr_SetString(PyExc_TypeError, "Graph: is not made by a call of its type; use "
                                     "Stream.begin_capture() and Stream.end_capture()");
    return NULL;
}

static void graph_deallocate(PyObject *object) {
    graph_object *self = (graph_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    gk_backend *backend = gk_device_usable(self->stream->device);
    if (backend)
        backend->graph_free(backend, self->graph);
    Py_DECREF((PyObject *)self->stream);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static int graph_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT((PyObject *)((graph_object *)object)->stream);
    return 0;
}

/* Between what was queued on the legacy default stream before, and what is queued there afterwards:
   that is home to the arrays that a graph makes, and to most that it reads. */
static gk_status launch_in_order(gk_call *call, gk_graph *graph, gk_stream stream) {
    gk_backend *backend = call->backend;
    bool captured;
    gk_status status = backend->captured(backend, stream, &captured, &call->error);
    bool apart = status == GK_OK && !captured && !gk_is_legacy(stream);
    if (apart)
        status = backend->wait(backend, stream, 0, &call->error);
    if (status == GK_OK)
        status = backend->graph_launch(backend, graph, stream, &call->error);
    if (status == GK_OK && apart)
        status = backend->wait(backend, 0, stream, &call->error);
    return status;
}

static PyObject *graph_launch(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                              PyObject *keywords) {
    static const char *const names[] = {"stream", NULL};
    static const gk_signature signature = {"Graph.launch", names, 0, 1};
    graph_object *self = (graph_object *)object;
    gk_call call;
    gk_status status;
    gk_stream stream;
    PyObject *value;
    if (gk_parse(&signature, arguments, count, keywords, &value) < 0 ||
        begin_at(self->stream, &call, "Graph.launch") < 0 ||
        gk_read_stream(self->stream->state, &call, value, &stream) < 0)
        return NULL;
    if (!value || Py_IsNone(value))
        stream = self->stream->handle;
    Py_BEGIN_ALLOW_THREADS;
    status = launch_in_order(&call, self->graph, stream);
    Py_END_ALLOW_THREADS;
    if (status == GK_OK)
        Py_RETURN_NONE;
    gk_fail_in(&call.error, "Graph.launch: ");
    return gk_raise(self->stream->state, &call.error);
}

static PyMethodDef graph_methods[] = {
    {"launch", GK_FAST(graph_launch),
     "launch($self, stream=None)\n--\n\n"
     "Do all that was captured once more, with what the arrays hold by then. The host does not\n"
     "wait; the device does the work after all that was queued on the legacy default stream\n"
     "before, and before all that is queued there later.\n\n"
     "stream: where; None: the stream that it was captured on."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot graph_slots[] = {
    {Py_tp_doc, "Work of a stream, captured by Stream.begin_capture and Stream.end_capture, to be "
                "launched\nas a whole. It keeps alive the arrays that were made within it, and no "
                "others: hold those that\nit reads."},
    {Py_tp_new, refuse_graph},
    {Py_tp_dealloc, graph_deallocate},
    {Py_tp_traverse, graph_traverse},
    {Py_tp_methods, graph_methods},
    {0, NULL},
};

PyType_Spec gk_graph_spec = {
    .name = "gpukern.Graph",
    .basicsize = sizeof(graph_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = graph_slots,
};
