#include "binding/xla/handler.h"

#include <string.h>

#include "binding/arrays/device_object.h"
#include "binding/state.h"
#include "binding/xla/ffi.h"
#include "engine/call.h"

static const char operation[] = "as_jax";
static const char runner[] = "gpukern.frameworks.jax_";

/* what XLA is told ----------------------------------------------------------------------------- */

static gk_xla_error *refuse(const gk_xla_frame *frame, int code, const char *message) {
    gk_xla_error_arguments arguments = {
        .bytes = sizeof arguments, .message = message, .code = code};
    return frame->api->error_create(&arguments);
}

/* The exception that is raised, as an error of XLA's. */
static gk_xla_error *refuse_raised(const gk_xla_frame *frame) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *name = type ? PyType_GetName((PyTypeObject *)type) : NULL;
    PyObject *text = name ? PyUnicode_FromFormat("%U: %S", name, value) : NULL;
    const char *message = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    gk_xla_error *error =
        refuse(frame, GK_XLA_INTERNAL, message ? message : "as_jax: out of memory for an error");
    Py_XDECREF(text);
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    PyErr_Clear();
    return error;
}

static void tell_of_itself(const gk_xla_extension *extension) {
    gk_xla_metadata *metadata = ((const gk_xla_metadata_extension *)extension)->metadata;
    metadata->version.major = GK_XLA_MAJOR;
    metadata->version.minor = GK_XLA_MINOR;
    metadata->traits = 0; /* never in a command buffer: what is launched is decided in Python */
}

/* XLA has seen the version when it took the function; that layouts are as that version has them, a
   later one may not keep. */
static bool is_known(const gk_xla_frame *frame) {
    const gk_xla_api *api = frame->api;
    return frame->bytes >= sizeof *frame && api->version.major == GK_XLA_MAJOR &&
           api->bytes >= sizeof *api && frame->arguments.bytes == sizeof frame->arguments &&
           frame->results.bytes == sizeof frame->results &&
           frame->attributes.bytes == sizeof frame->attributes;
}

/* buffers as arrays ---------------------------------------------------------------------------- */

static bool read_dtype(int given, gk_dtype *dtype) {
    static const struct {
        int given;
        gk_dtype dtype;
    } table[] = {{GK_XLA_PRED, GK_boolean}, {GK_XLA_S8, GK_int8},     {GK_XLA_S16, GK_int16},
                 {GK_XLA_S32, GK_int32},    {GK_XLA_S64, GK_int64},   {GK_XLA_U8, GK_uint8},
                 {GK_XLA_U16, GK_uint16},   {GK_XLA_U32, GK_uint32},  {GK_XLA_U64, GK_uint64},
                 {GK_XLA_F16, GK_float16},  {GK_XLA_F32, GK_float32}, {GK_XLA_F64, GK_float64},
                 {GK_XLA_BF16, GK_bfloat16}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].given == given) {
            *dtype = table[i].dtype;
            return true;
        }
    return false;
}

static int read_buffer(const gk_xla_buffers *buffers, int64_t place, gk_array *array) {
    const gk_xla_buffer *buffer = buffers->buffers[place];
    gk_clear_view(array);
    if (buffers->kinds[place] != GK_XLA_BUFFER || buffer->rank > GK_MAX_DIMENSIONS ||
        !read_dtype(buffer->dtype, &array->dtype)) {
        PyErr_Format(PyExc_TypeError,
                     "%s: XLA's array %lld is of its dtype %d with %lld axes, which is not taken",
                     operation, (long long)place, buffer->dtype, (long long)buffer->rank);
        return -1;
    }
    array->data = buffer->data;
    array->ndim = (int)buffer->rank;
    for (int i = 0; i < array->ndim; i++)
        array->shape[i] = buffer->lengths[i];
    gk_make_contiguous(array);
    return 0;
}

/* (memory, dtype, shape), of which NumPy makes an array; None for the memory of an empty one. */
static PyObject *host_array(const gk_array *array, bool is_written) {
    PyObject *shape = PyTuple_New(array->ndim);
    for (int i = 0; shape && i < array->ndim; i++) {
        PyObject *length = PyLong_FromLongLong(array->shape[i]);
        if (!length || PyTuple_SetItem(shape, i, length) < 0)
            Py_CLEAR(shape);
    }
    if (!shape)
        return NULL;
    PyObject *memory = gk_count(array) == 0
                           ? Py_NewRef(Py_None)
                           : PyMemoryView_FromMemory(array->data, (Py_ssize_t)gk_bytes(array),
                                                     is_written ? PyBUF_WRITE : PyBUF_READ);
    return Py_BuildValue("NsN", memory, gk_dtype_name(array->dtype), shape);
}

/* The buffers as a tuple; `call` is NULL on the host. */
static PyObject *arrays_of(gk_state *state, const gk_call *call, const gk_xla_buffers *buffers,
                           bool is_written) {
    PyObject *arrays = PyTuple_New((Py_ssize_t)buffers->count);
    for (int64_t i = 0; arrays && i < buffers->count; i++) {
        gk_array array;
        PyObject *made = NULL;
        if (read_buffer(buffers, i, &array) == 0)
            made = call ? gk_device_array_lent(state, call, &array, Py_None)
                        : host_array(&array, is_written);
        if (!made || PyTuple_SetItem(arrays, (Py_ssize_t)i, made) < 0)
            Py_CLEAR(arrays);
    }
    return arrays;
}

/* a call --------------------------------------------------------------------------------------- */

/* Which operation it is: the one attribute. */
static int read_key(const gk_xla_attributes *attributes, int64_t *key) {
    const gk_xla_scalar *scalar = attributes->count == 1 ? attributes->values[0] : NULL;
    if (!scalar || attributes->kinds[0] != GK_XLA_SCALAR || scalar->dtype != GK_XLA_S64) {
        PyErr_Format(PyExc_TypeError, "%s: XLA does not say which operation it calls", operation);
        return -1;
    }
    memcpy(key, scalar->value, sizeof *key);
    return 0;
}

/* The device that the first buffer with any memory is on; the thread's own where there is none. */
static int begin_where(gk_state *state, gk_call *call, const gk_xla_frame *frame) {
    const void *memory = NULL;
    const gk_xla_buffers *both[] = {&frame->arguments, &frame->results};
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < both[i]->count && !memory; k++)
            memory = ((const gk_xla_buffer *)both[i]->buffers[k])->data;
    if (gk_begin(state, call, operation) < 0)
        return -1;
    if (strcmp(call->backend->name, "cuda") != 0) {
        PyErr_Format(PyExc_ValueError,
                     "%s: JAX runs this on a GPU, and gpukern on its simulator, which has no such "
                     "memory; jax.default_device(jax.devices('cpu')[0]) has JAX use the CPU",
                     operation);
        return -1;
    }
    if (call->backend->devices == 1 || !memory)
        return 0;
    int place = call->backend->place(call->backend, memory);
    if (place >= 0)
        return gk_begin_on(state, call, place, operation);
    PyErr_Format(PyExc_ValueError, "%s: %p of JAX's is on none of the %d GPUs that there are",
                 operation, memory, call->backend->devices);
    return -1;
}

/* run(key, stream, arguments, results) of the Python side. */
static int run(const gk_xla_frame *frame, gk_state *state, PyObject *python, void *stream,
               bool on_gpu) {
    gk_call call;
    int64_t key;
    if (read_key(&frame->attributes, &key) < 0 || (on_gpu && begin_where(state, &call, frame) < 0))
        return -1;
    if (on_gpu && gk_call_on(&call, (gk_stream)stream) != GK_OK) {
        gk_raise(state, &call.error);
        return -1;
    }
    const gk_call *where = on_gpu ? &call : NULL;
    PyObject *arguments = arrays_of(state, where, &frame->arguments, false);
    PyObject *results = arguments ? arrays_of(state, where, &frame->results, true) : NULL;
    PyObject *done = NULL;
    if (results)
        done = PyObject_CallMethod(python, "run", "LKOO", (long long)key,
                                   (unsigned long long)(uintptr_t)stream, arguments, results);
    Py_XDECREF(done);
    Py_XDECREF(arguments);
    Py_XDECREF(results);
    if (on_gpu)
        gk_call_end(&call);
    return done ? 0 : -1;
}

static gk_xla_error *call_python(const gk_xla_frame *frame, void *stream, bool on_gpu) {
    gk_xla_error *error = NULL;
    PyGILState_STATE held = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("gpukern._core");
    PyObject *python = module ? PyImport_ImportModule(runner) : NULL;
    gk_state *state = python ? PyModule_GetState(module) : NULL;
    if (!state || run(frame, state, python, stream, on_gpu) < 0)
        error = refuse_raised(frame);
    Py_XDECREF(python);
    Py_XDECREF(module);
    PyGILState_Release(held);
    return error;
}

static gk_xla_error *answer(const gk_xla_frame *frame, bool on_gpu) {
    for (const gk_xla_extension *one = frame->extensions; one; one = one->next)
        if (one->kind == GK_XLA_METADATA) {
            tell_of_itself(one);
            return NULL;
        }
    if (!is_known(frame))
        return refuse(frame, GK_XLA_INVALID_ARGUMENT,
                      "as_jax: this version of XLA calls foreign functions otherwise than "
                      "gpukern knows; use a newer gpukern or an older jaxlib");
    if (frame->stage != GK_XLA_EXECUTE)
        return NULL;
    gk_xla_stream_arguments asked = {.bytes = sizeof asked, .context = frame->context};
    gk_xla_error *error = on_gpu ? frame->api->stream_get(&asked) : NULL;
    return error ? error : call_python(frame, asked.stream, on_gpu);
}

static gk_xla_error *answer_on_gpu(gk_xla_frame *frame) {
    return answer(frame, true);
}

static gk_xla_error *answer_on_host(gk_xla_frame *frame) {
    return answer(frame, false);
}

PyObject *gk_xla_target(PyObject *module, PyObject *on_gpu) {
    (void)module;
    int is_gpu = PyObject_IsTrue(on_gpu);
    if (is_gpu < 0)
        return NULL;
    gk_xla_error *(*function)(gk_xla_frame *) = is_gpu ? answer_on_gpu : answer_on_host;
    void *pointer;
    memcpy(&pointer, &function, sizeof pointer);
    return PyCapsule_New(pointer, "xla._CUSTOM_CALL_TARGET", NULL);
}
