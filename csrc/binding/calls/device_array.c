#include "binding/calls/device_array.h"

#include <structmember.h>
#include <stddef.h>

#include "binding/arrays/cuda_interface.h"
#include "binding/arrays/dlpack.h"
#include "binding/arrays/foreign.h"
#include "binding/arrays/indexing.h"
#include "binding/calls/invoke.h"

bool gk_is_device_array(const gk_state *state, PyObject *object) {
    return Py_TYPE(object) == state->device_array_type;
}

static void deallocate(PyObject *self) {
    gk_device_array *array = (gk_device_array *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject *module = array->module;
    PyObject_GC_UnTrack(self);
    if (array->weak_references)
        PyObject_ClearWeakRefs(self);
    gk_backend *backend = gk_engine_usable(&array->state->engine, array->device);
    if (backend && !array->owner)
        backend->release(backend, array->array.data, array->stream);
    Py_XDECREF(array->owner);
    Py_XDECREF(array->stream_keeper);
    PyObject_GC_Del(self);
    Py_DECREF(type);
    Py_DECREF(module);
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
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

/* What an array has of the call or of the array that it comes from; no references. */
typedef struct origin {
    const char *operation;
    gk_device *device;
    gk_stream stream;
    PyObject *stream_keeper, *owner; /* or NULL */
} origin;

static origin of_call(const gk_call *call) {
    gk_stream stream = home(call);
    return (origin){.operation = call->operation,
                    .device = call->device,
                    .stream = stream,
                    .stream_keeper = stream ? call->keeper : NULL};
}

static origin of_array(gk_device_array *source) {
    return (origin){.operation = "DeviceArray",
                    .device = source->device,
                    .stream = source->stream,
                    .stream_keeper = source->stream_keeper,
                    .owner = source->owner ? source->owner : (PyObject *)source};
}

/* An array of that shape, dtype and memory. */
static gk_device_array *new_object(gk_state *state, origin from, const gk_array *like) {
    if (gk_fault_due(&state->engine.faults)) {
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
    gk_device_array *made = new_object(state, of_call(call), like);
    if (!made)
        return NULL;
    made->array.readonly = false;
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

/* The same memory seen as `view`. */
static PyObject *new_view(gk_device_array *source, const gk_array *view) {
    return (PyObject *)new_object(source->state, of_array(source), view);
}

static gk_status fill(gk_call *call, const gk_array *operand, void *target) {
    gk_array staged;
    if (operand->place == GK_HOST)
        return gk_upload(call, operand, target);
    gk_status status = gk_stage_operand(call, operand, &staged);
    if (status == GK_OK)
        status = gk_call_copy_within(call, target, staged.data, gk_bytes(operand));
    return status == GK_OK ? gk_call_rejoin(call, operand) : status;
}

/* The operand made contiguous, in memory of its own. */
static PyObject *copy_operand(gk_state *state, gk_call *call, const gk_array *operand) {
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
    PyObject *made = copy_operand(state, &call, &operand);
    if (made && gk_profile_end(state, &call, &profiled, &operand, 1) < 0)
        Py_CLEAR(made);
    gk_drop_operands(&keeper, 1);
    return made;
}

/* DLPack --------------------------------------------------------------------------------------- */

PyObject *gk_device_array_from_dlpack(gk_state *state, PyObject *source, PyObject *copy) {
    gk_call call;
    gk_array lent;
    PyObject *keeper, *result = NULL;
    bool wanted = copy && Py_IsTrue(copy);
    if (gk_begin(state, &call, "from_dlpack") < 0)
        return NULL;
    if (gk_is_device_array(state, source))
        return wanted ? gk_device_array_copy(state, source, NULL) : Py_NewRef(source);
    if (gk_take_dlpack(state, &call, "x", source, &lent, &keeper) < 0)
        return NULL;
    if (wanted) {
        result = copy_operand(state, &call, &lent);
    } else {
        call.stream = gk_is_legacy(lent.producer) ? 0 : lent.producer;
        gk_device_array *made = new_object(state, of_call(&call), &lent);
        if (made)
            made->owner = Py_NewRef(keeper);
        result = (PyObject *)made;
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
    return PyErr_Occurred() ? -1 : 0;
}

/* Only where the array is: a consumer that wants it elsewhere has to copy. */
static int check_dl_device(const gk_device_array *self, PyObject *wanted) {
    gk_dl_device its = gk_dlpack_device(self->device->backend);
    if (!wanted || Py_IsNone(wanted))
        return 0;
    bool is_pair = PyTuple_Check(wanted) && PyTuple_Size(wanted) == 2;
    bool same = is_pair && PyLong_AsLong(PyTuple_GetItem(wanted, 0)) == its.kind &&
                PyLong_AsLong(PyTuple_GetItem(wanted, 1)) == its.ordinal;
    if (PyErr_Occurred())
        return -1;
    if (same)
        return 0;
    PyErr_Format(is_pair ? PyExc_BufferError : PyExc_TypeError,
                 "__dlpack__: the array is on device (%d, %d), and dl_device asks for %R; "
                 "to_host() copies it to the host",
                 its.kind, its.ordinal, wanted);
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
    gk_copy_view(&array, &self->array);
    array.producer = self->stream ? self->stream : GK_LEGACY_STREAM;
    if (gk_call_wait(call, &array) == GK_OK)
        return 0;
    gk_raise(self->state, &call->error);
    return -1;
}

static PyObject *as_dlpack(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                           PyObject *keywords) {
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    static const gk_signature signature = {"__dlpack__", names, 0, 0};
    gk_device_array *self = (gk_device_array *)object;
    PyObject *values[4];
    gk_call call;
    bool versioned;
    if (gk_parse(&signature, arguments, count, keywords, values) < 0 ||
        is_versioned(values[1], &versioned) < 0 || check_dl_device(self, values[2]) < 0 ||
        gk_begin(self->state, &call, "__dlpack__") < 0)
        return NULL;
    bool copied = values[3] && Py_IsTrue(values[3]);
    if (self->array.readonly && !versioned && !copied) {
        PyErr_SetString(PyExc_BufferError, "__dlpack__: the array is read-only, which DLPack tells "
                                           "from version 1.0 on; pass max_version=(1, 0)");
        return NULL;
    }
    PyObject *lent = copied ? gk_device_array_copy(self->state, object, NULL) : Py_NewRef(object);
    PyObject *capsule = NULL;
    if (lent && hand_over((gk_device_array *)lent, &call, values[0]) == 0)
        capsule =
            gk_dlpack_export(&((gk_device_array *)lent)->array,
                             gk_dlpack_device(self->device->backend), lent, versioned, copied);
    Py_XDECREF(lent);
    return capsule;
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused) {
    (void)unused;
    gk_dl_device device = gk_dlpack_device(((gk_device_array *)self)->device->backend);
    return Py_BuildValue("(ii)", device.kind, device.ordinal);
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
        PyErr_SetString(PyExc_TypeError, "to_host: out has to be a NumPy array");
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

static PyObject *to_host(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords) {
    static const char *const names[] = {"out", NULL};
    static const gk_signature signature = {"to_host", names, 0, 1};
    PyObject *out;
    if (gk_parse(&signature, arguments, count, keywords, &out) < 0)
        return NULL;
    return gk_device_array_to_host((gk_device_array *)self, out && !Py_IsNone(out) ? out : NULL);
}

static PyObject *as_array(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                          PyObject *keywords) {
    static const char *const names[] = {"dtype", "copy", NULL};
    static const gk_signature signature = {"__array__", names, 0, 2};
    PyObject *values[2];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0)
        return NULL;
    if (values[1] && Py_IsFalse(values[1])) {
        PyErr_SetString(PyExc_ValueError, "a DeviceArray can become a NumPy array only by a copy "
                                          "from the device; copy=False forbids it");
        return NULL;
    }
    PyObject *host = gk_device_array_to_host((gk_device_array *)self, NULL);
    if (!host || !values[0] || Py_IsNone(values[0]))
        return host;
    PyObject *converted = PyObject_CallMethod(host, "astype", "O", values[0]);
    Py_DECREF(host);
    return converted;
}

/* attributes ----------------------------------------------------------------------------------- */

static PyObject *get_shape(PyObject *self, void *closure) {
    (void)closure;
    return gk_shape_tuple(&((gk_device_array *)self)->array);
}

static PyObject *get_ndim(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromLong(((gk_device_array *)self)->array.ndim);
}

static PyObject *get_size(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromSize_t(gk_count(&((gk_device_array *)self)->array));
}

static PyObject *get_nbytes(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromSize_t(gk_bytes(&((gk_device_array *)self)->array));
}

static PyObject *get_itemsize(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromSize_t(gk_dtype_size(((gk_device_array *)self)->array.dtype));
}

static PyObject *get_dtype(PyObject *self, void *closure) {
    (void)closure;
    gk_device_array *array = (gk_device_array *)self;
    return gk_dtype_object(array->state, array->array.dtype);
}

static PyObject *get_interface(PyObject *self, void *closure) {
    (void)closure;
    gk_device_array *array = (gk_device_array *)self;
    return gk_cuda_interface(&array->array, array->stream);
}

static PyObject *get_transposed(PyObject *self, void *closure) {
    (void)closure;
    const gk_array *array = &((gk_device_array *)self)->array;
    gk_array view;
    gk_copy_view(&view, array);
    for (int i = 0; i < array->ndim; i++) {
        view.shape[i] = array->shape[array->ndim - 1 - i];
        view.strides[i] = array->strides[array->ndim - 1 - i];
    }
    return new_view((gk_device_array *)self, &view);
}

static PyObject *subscript(PyObject *self, PyObject *key) {
    gk_array view;
    if (gk_index_view(&((gk_device_array *)self)->array, key, &view) < 0)
        return NULL;
    return new_view((gk_device_array *)self, &view);
}

static PyObject *reshape(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    gk_device_array *source = (gk_device_array *)self;
    gk_array shaped;
    if (gk_reshape_shape(&source->array, arguments, count, &shaped) < 0)
        return NULL;
    gk_make_contiguous(&shaped);
    if (gk_is_contiguous(&source->array))
        return new_view(source, &shaped);
    PyObject *copy = gk_device_array_copy(source->state, self, NULL);
    if (copy) {
        shaped.data = ((gk_device_array *)copy)->array.data;
        gk_copy_view(&((gk_device_array *)copy)->array, &shaped);
    }
    return copy;
}

static Py_ssize_t length(PyObject *self) {
    const gk_array *array = &((gk_device_array *)self)->array;
    if (array->ndim > 0)
        return (Py_ssize_t)array->shape[0];
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d DeviceArray");
    return -1;
}

static int truth(PyObject *self) {
    gk_device_array *array = (gk_device_array *)self;
    if (gk_count(&array->array) != 1) {
        PyErr_Format(PyExc_ValueError,
                     "the truth value of a DeviceArray of %zu elements is ambiguous",
                     gk_count(&array->array));
        return -1;
    }
    PyObject *host = gk_device_array_to_host(array, NULL);
    int is_true = host ? PyObject_IsTrue(host) : -1;
    Py_XDECREF(host);
    return is_true;
}

/* operators ------------------------------------------------------------------------------------ */

static PyObject *operate(const gk_operation *operation, PyObject *left, PyObject *right) {
    static const gk_options defaults = {0};
    /* The type cannot be subclassed, so the side that is ours is ours exactly. */
    bool ours = PyType_GetSlot(Py_TYPE(left), Py_tp_dealloc) == (void *)deallocate;
    gk_state *state = ((gk_device_array *)(ours ? left : right))->state;
    if (!gk_is_operand(state, left) || !gk_is_operand(state, right))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *operands[] = {left, right};
    return gk_invoke(state, operation, operands, &defaults);
}

#define GK_BINARY(name)                                                                            \
    static PyObject *operator_##name(PyObject *left, PyObject *right) {                            \
        return operate(gk_op_##name, left, right);                                                 \
    }
#define GK_UNARY(name)                                                                             \
    static PyObject *operator_##name(PyObject *self) {                                             \
        static const gk_options defaults = {0};                                                    \
        return gk_invoke(((gk_device_array *)self)->state, gk_op_##name, &self, &defaults);        \
    }
GK_BINARY(add)
GK_BINARY(subtract)
GK_BINARY(multiply)
GK_BINARY(divide)
GK_BINARY(matmul)
GK_UNARY(negative)
GK_UNARY(abs)

/* the type ------------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"to_host", (PyCFunction)(void (*)(void))to_host, METH_FASTCALL | METH_KEYWORDS,
     "to_host($self, out=None)\n--\n\n"
     "Copy the values into a NumPy array.\n\n"
     "out: a NumPy array of the same shape and dtype to copy into; a new one if None.\n"
     "Returns that array, once the copy is complete.\n"
     "Raises TypeError or ValueError for an out that does not fit, MemoryError, CudaError."},
    {"reshape", (PyCFunction)(void (*)(void))reshape, METH_FASTCALL,
     "reshape($self, /, *shape)\n--\n\n"
     "The elements in C order in another shape.\n\n"
     "shape: lengths, or one tuple of them; one may be -1, which stands for what is left.\n"
     "Returns a view of the same memory where the array is contiguous, else a copy.\n"
     "Raises ValueError for a shape of another number of elements."},
    {"__array__", (PyCFunction)(void (*)(void))as_array, METH_FASTCALL | METH_KEYWORDS,
     "__array__($self, dtype=None, copy=None)\n--\n\n"
     "The values as a NumPy array: what numpy.asarray calls. Always a copy from the device, so\n"
     "copy=False raises ValueError."},
    {"__dlpack__", (PyCFunction)(void (*)(void))as_dlpack, METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "The memory for torch.from_dlpack and its like, with no copy: a capsule of DLPack 1.0, or\n"
     "of the protocol before it where max_version is below.\n\n"
     "stream: the consumer's, which is made to wait for the array; None or 1: the legacy default\n"
     "    stream; 2: the thread's own; -1: no waiting. What the consumer does on another stream\n"
     "    afterwards is its own to order.\n"
     "copy: True lends a copy.\n"
     "Raises BufferError for a dl_device that the array is not on, and for a read-only array\n"
     "without a max_version."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\n"
     "(kind, number): kind 2 is CUDA; the simulator's memory is the host's, kind 1."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"shape", get_shape, NULL, "Lengths of the axes, a tuple.", NULL},
    {"ndim", get_ndim, NULL, "Number of axes.", NULL},
    {"size", get_size, NULL, "Number of elements.", NULL},
    {"nbytes", get_nbytes, NULL, "Size of the values in bytes.", NULL},
    {"itemsize", get_itemsize, NULL, "Size of one element in bytes.", NULL},
    {"dtype", get_dtype, NULL, "The numpy.dtype of the elements.", NULL},
    {"T", get_transposed, NULL, "The array with its axes reversed, a view of the same memory.",
     NULL},
    {"__cuda_array_interface__", get_interface, NULL,
     "The memory as PyTorch, CuPy and Numba take it, with no copy (version 3).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(gk_device_array, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "An array in device memory. Made by gpukern.to_device and gpukern.empty, and by\n"
     "operations on device arrays. Indexing with integers, slices, Ellipsis and None, and .T,\n"
     "give views of the same memory. NumPy reads it through __array__ (a copy), other GPU\n"
     "libraries through __cuda_array_interface__ (no copy)."},
    {Py_tp_dealloc, deallocate},
    {Py_tp_traverse, traverse},
    {Py_tp_repr, gk_device_array_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {Py_nb_bool, truth},
    {Py_mp_length, length},
    {Py_mp_subscript, subscript},
    {Py_nb_add, operator_add},
    {Py_nb_subtract, operator_subtract},
    {Py_nb_multiply, operator_multiply},
    {Py_nb_true_divide, operator_divide},
    {Py_nb_negative, operator_negative},
    {Py_nb_absolute, operator_abs},
    {Py_nb_matrix_multiply, operator_matmul},
    {0, NULL},
};

PyType_Spec gk_device_array_spec = {
    .name = "gpukern.DeviceArray",
    .basicsize = sizeof(gk_device_array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
