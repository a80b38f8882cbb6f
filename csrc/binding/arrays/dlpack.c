#include "binding/arrays/dlpack.h"

#include <stdlib.h>
#include <string.h>

#include "binding/values.h"

static uint8_t code_of(gk_dtype dtype) {
    static const uint8_t codes[] = {[GK_REAL] = GK_DL_FLOAT,
                                    [GK_HALF] = GK_DL_FLOAT,
                                    [GK_SIGNED] = GK_DL_INT,
                                    [GK_UNSIGNED] = GK_DL_UINT,
                                    [GK_BOOLEAN] = GK_DL_BOOL};
    return dtype == GK_bfloat16 ? GK_DL_BFLOAT : codes[gk_dtype_kind(dtype)];
}

static uint8_t bits_of(gk_dtype dtype) {
    return (uint8_t)(8 * gk_dtype_size(dtype));
}

/* The simulator's memory is the host's. */
gk_dl_device gk_dlpack_device(const gk_backend *backend) {
    bool cuda = strcmp(backend->name, "cuda") == 0;
    return (gk_dl_device){cuda ? GK_DL_CUDA : GK_DL_CPU, cuda ? backend->ordinal : 0};
}

/* in ------------------------------------------------------------------------------------------- */

static int bad_tensor(const char *operation, const char *name, const char *what) {
    PyErr_Format(PyExc_ValueError, "%s: the DLPack tensor of %s %s", operation, name, what);
    return -1;
}

static int check_device(const gk_call *call, const char *name, gk_dl_device its) {
    gk_dl_device ours = gk_dlpack_device(call->backend);
    if (its.kind == GK_DL_CUDA_MANAGED && ours.kind == GK_DL_CUDA)
        return 0;
    if (its.kind == ours.kind && its.ordinal == ours.ordinal)
        return 0;
    if (its.kind == GK_DL_CPU && ours.kind != GK_DL_CPU)
        PyErr_Format(
            PyExc_BufferError,
            "%s: %s is in host memory; numpy.from_dlpack makes a NumPy array of it with no "
            "copy, gpukern.to_device takes that to the device",
            call->operation, name);
    else
        PyErr_Format(
            PyExc_BufferError,
            "%s: %s is on device %d of DLPack's kind %d, and this call runs on device %d of "
            "kind %d",
            call->operation, name, its.ordinal, its.kind, ours.ordinal, ours.kind);
    return -1;
}

static int read_dtype(const gk_call *call, const char *name, const gk_dl_tensor *tensor,
                      gk_dtype *dtype) {
    for (int i = 0; i < GK_DTYPE_COUNT; i++) {
        if (code_of((gk_dtype)i) == tensor->code && bits_of((gk_dtype)i) == tensor->bits &&
            tensor->lanes == 1) {
            *dtype = (gk_dtype)i;
            return 0;
        }
    }
    PyErr_Format(PyExc_TypeError,
                 "%s: %s has a DLPack dtype of code %d, %d bits and %d lanes, which is not "
                 "supported; use %s",
                 call->operation, name, tensor->code, tensor->bits, tensor->lanes,
                 gk_dtype_list().text);
    return -1;
}

static int read_strides(const gk_call *call, const char *name, const gk_dl_tensor *tensor,
                        gk_array *array) {
    int64_t size = (int64_t)gk_dtype_size(array->dtype);
    gk_make_contiguous(array);
    for (int i = 0; i < array->ndim && tensor->strides; i++)
        if (__builtin_mul_overflow(tensor->strides[i], size, &array->strides[i]))
            return bad_tensor(call->operation, name, "has strides that leave the memory");
    return 0;
}

static int read_tensor(const gk_call *call, const char *name, const gk_dl_tensor *tensor,
                       gk_array *array) {
    gk_clear_view(array);
    array->place = GK_DEVICE;
    if (check_device(call, name, tensor->device) < 0 ||
        read_dtype(call, name, tensor, &array->dtype) < 0)
        return -1;
    if (tensor->ndim < 0 || tensor->ndim > GK_MAX_DIMENSIONS)
        return bad_tensor(call->operation, name, "has a number of axes that is not from 0 to 64");
    if (tensor->ndim > 0 && !tensor->shape)
        return bad_tensor(call->operation, name, "has no shape");
    array->ndim = tensor->ndim;
    for (int i = 0; i < array->ndim; i++) {
        array->shape[i] = tensor->shape[i];
        if (array->shape[i] < 0)
            return bad_tensor(call->operation, name, "has a negative length in its shape");
    }
    if (!gk_is_addressable(array))
        return bad_tensor(call->operation, name, "has more bytes than an address counts");
    if (read_strides(call, name, tensor, array) < 0)
        return -1;
    if (!tensor->data && gk_count(array) > 0)
        return bad_tensor(call->operation, name,
                          "has a null pointer for an array that is not empty");
    array->data = (char *)tensor->data + tensor->byte_offset;
    return 0;
}

const gk_dl_exchange *gk_dlpack_exchange(PyObject *capsule) {
    const gk_dl_exchange *table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    PyErr_Clear();
    while (table && table->major != GK_DL_MAJOR)
        table = table->older;
    return table;
}

static int read_stream(const gk_dl_exchange *exchange, const gk_dl_tensor *tensor,
                       gk_array *array) {
    void *stream = NULL;
    if (tensor->device.kind == GK_DL_CPU)
        return 0;
    if (exchange->current_stream(tensor->device.kind, tensor->device.ordinal, &stream) < 0)
        return -1;
    array->producer = stream ? (uintptr_t)stream : GK_LEGACY_STREAM;
    return 0;
}

int gk_dlpack_show(gk_call *call, const char *name, const gk_dl_exchange *exchange,
                   PyObject *object, gk_array *array, PyObject **keeper) {
    gk_dl_tensor tensor;
    if (exchange->show(object, &tensor) < 0 || read_tensor(call, name, &tensor, array) < 0 ||
        read_stream(exchange, &tensor, array) < 0)
        return -1;
    *keeper = Py_NewRef(object);
    return 0;
}

/* What was lent goes back when this capsule dies, perhaps on the way of an exception, which is none
   of the deleter's business. */
static const char lent_name[] = "gpukern.lent";

static void give_back(PyObject *capsule) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    gk_dl_managed *lent = PyCapsule_GetPointer(capsule, lent_name);
    if (lent && lent->deleter)
        lent->deleter(lent);
    PyErr_Restore(type, value, traceback);
}

static void give_back_versioned(PyObject *capsule) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    gk_dl_versioned *lent = PyCapsule_GetPointer(capsule, lent_name);
    if (lent && lent->deleter)
        lent->deleter(lent);
    PyErr_Restore(type, value, traceback);
}

/* The tensor is the caller's before, and afterwards the keeper's, also where it is refused. */
static int keep_versioned(const gk_call *call, const char *name, gk_dl_versioned *lent,
                          gk_array *array, PyObject **keeper) {
    *keeper = PyCapsule_New(lent, lent_name, give_back_versioned);
    if (!*keeper) {
        if (lent->deleter)
            lent->deleter(lent);
        return -1;
    }
    if (lent->major != GK_DL_MAJOR)
        return bad_tensor(call->operation, name, "is of a major version of DLPack that is not 1");
    int failed = read_tensor(call, name, &lent->tensor, array);
    array->readonly = (lent->flags & GK_DL_READ_ONLY) != 0;
    return failed;
}

static int keep_unversioned(const gk_call *call, const char *name, gk_dl_managed *lent,
                            gk_array *array, PyObject **keeper) {
    *keeper = PyCapsule_New(lent, lent_name, give_back);
    if (!*keeper) {
        if (lent->deleter)
            lent->deleter(lent);
        return -1;
    }
    return read_tensor(call, name, &lent->tensor, array);
}

int gk_dlpack_borrow(gk_call *call, const char *name, const gk_dl_exchange *exchange,
                     PyObject *object, gk_array *array, PyObject **keeper) {
    gk_dl_versioned *lent = NULL;
    if (exchange->lend(object, &lent) < 0)
        return -1;
    if (keep_versioned(call, name, lent, array, keeper) == 0 &&
        read_stream(exchange, &lent->tensor, array) == 0)
        return 0;
    Py_CLEAR(*keeper);
    return -1;
}

/* Where the object says that it is, before it is asked for more than it has. */
static int ask_device(gk_state *state, const char *operation, const char *name, PyObject *object,
                      gk_dl_device *device) {
    PyObject *method = PyObject_GetAttr(object, state->names[GK_NAME_DLPACK_DEVICE]);
    PyObject *pair = method ? PyObject_CallNoArgs(method) : NULL;
    Py_XDECREF(method);
    if (!pair)
        return -1;
    int failed = -1;
    if (PyTuple_Check(pair) && PyTuple_Size(pair) == 2) {
        device->kind = (int32_t)PyLong_AsLong(PyTuple_GetItem(pair, 0));
        device->ordinal = (int32_t)PyLong_AsLong(PyTuple_GetItem(pair, 1));
        failed = PyErr_Occurred() ? -1 : 0;
    }
    if (failed)
        bad_tensor(operation, name, "has a __dlpack_device__ that does not give (kind, number)");
    Py_DECREF(pair);
    return failed;
}

static int place_on(gk_dl_device device) {
    return device.kind == GK_DL_CUDA ? device.ordinal : -1;
}

int gk_dlpack_shown_place(const gk_dl_exchange *exchange, PyObject *object) {
    gk_dl_tensor tensor;
    return exchange->show(object, &tensor) < 0 ? -2 : place_on(tensor.device);
}

int gk_dlpack_place(gk_state *state, const char *operation, const char *name, PyObject *object) {
    gk_dl_device device;
    return ask_device(state, operation, name, object, &device) < 0 ? -2 : place_on(device);
}

PyObject *gk_dlpack_ask(const gk_state *state, PyObject *object, PyObject *named) {
    PyObject *method = PyObject_GetAttr(object, state->names[GK_NAME_DLPACK]);
    PyObject *nothing = method ? PyTuple_New(0) : NULL;
    PyObject *capsule = nothing ? PyObject_Call(method, nothing, named) : NULL;
    if (nothing && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* a producer that knows of no versions */
        if (PyDict_DelItemString(named, "max_version") == 0)
            capsule = PyObject_Call(method, nothing, named);
    }
    Py_XDECREF(nothing);
    Py_XDECREF(method);
    return capsule;
}

/* __dlpack__(stream=..., max_version=(1, 0)), or as before there were versions. The producer makes
   the legacy default stream, which is home to an array that names none, wait for its own; a graph
   waits for nothing; host memory, which the simulator's is, has no streams. */
static PyObject *ask(gk_state *state, const gk_call *call, gk_dl_device device, PyObject *object) {
    long ours = call->captured ? -1 : GK_LEGACY_STREAM;
    PyObject *capsule = NULL;
    PyObject *named = Py_BuildValue("{s:(ii)}", "max_version", GK_DL_MAJOR, GK_DL_MINOR);
    PyObject *stream = named && device.kind != GK_DL_CPU ? PyLong_FromLong(ours) : NULL;
    if (stream && PyDict_SetItem(named, state->names[GK_NAME_STREAM], stream) < 0)
        Py_CLEAR(named);
    if (named && !PyErr_Occurred())
        capsule = gk_dlpack_ask(state, object, named);
    Py_XDECREF(stream);
    Py_XDECREF(named);
    return capsule;
}

int gk_dlpack_import(gk_state *state, gk_call *call, const char *name, PyObject *object,
                     gk_array *array, PyObject **keeper) {
    int failed = -1;
    gk_dl_device device;
    if (ask_device(state, call->operation, name, object, &device) < 0 ||
        check_device(call, name, device) < 0)
        return -1;
    PyObject *capsule = ask(state, call, device, object);
    if (!capsule)
        return -1;
    /* Renamed, the capsule does not give back what is ours from here on. */
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        gk_dl_versioned *lent = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (PyCapsule_SetName(capsule, "used_dltensor_versioned") == 0)
            failed = keep_versioned(call, name, lent, array, keeper);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        gk_dl_managed *lent = PyCapsule_GetPointer(capsule, "dltensor");
        if (PyCapsule_SetName(capsule, "used_dltensor") == 0)
            failed = keep_unversioned(call, name, lent, array, keeper);
    } else {
        PyErr_Format(PyExc_TypeError,
                     "%s: __dlpack__ of %s has to give a capsule named \"dltensor\" or "
                     "\"dltensor_versioned\" that nobody has used, not %R",
                     call->operation, name, capsule);
    }
    Py_DECREF(capsule);
    if (failed)
        Py_CLEAR(*keeper);
    array->producer = GK_LEGACY_STREAM;
    return failed;
}

/* out ------------------------------------------------------------------------------------------ */

/* A tensor that is lent, with its shape and strides behind it. */
typedef struct loan {
    union {
        gk_dl_managed managed;
        gk_dl_versioned versioned;
    } as;
    PyObject *owner;
    int64_t lengths[];
} loan;

/* From any thread, with the GIL or without, at any time: the consumer's deleter may be the last
   thing that a process does. */
static void end_loan(loan *ended) {
    if (Py_IsInitialized()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        Py_DECREF(ended->owner);
        PyGILState_Release(gil);
    }
    free(ended);
}

static void delete_managed(gk_dl_managed *managed) {
    end_loan(managed->context);
}

static void delete_versioned(gk_dl_versioned *versioned) {
    end_loan(versioned->context);
}

/* Under another name it was consumed, and the consumer calls the deleter. */
static void destroy_capsule(PyObject *capsule) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
        delete_versioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    else if (PyCapsule_IsValid(capsule, "dltensor"))
        delete_managed(PyCapsule_GetPointer(capsule, "dltensor"));
    PyErr_Restore(type, value, traceback);
}

static gk_dl_tensor describe(const gk_array *array, gk_dl_device device, int64_t *lengths) {
    int64_t size = (int64_t)gk_dtype_size(array->dtype);
    for (int i = 0; i < array->ndim; i++) {
        lengths[i] = array->shape[i];
        lengths[array->ndim + i] = array->strides[i] / size;
    }
    return (gk_dl_tensor){
        .data = gk_count(array) ? array->data : NULL,
        .device = device,
        .ndim = array->ndim,
        .code = code_of(array->dtype),
        .bits = bits_of(array->dtype),
        .lanes = 1,
        .shape = lengths,
        .strides = lengths + array->ndim,
    };
}

PyObject *gk_dlpack_export(const gk_array *array, gk_dl_device device, PyObject *owner,
                           bool versioned, bool copied) {
    loan *made = malloc(sizeof *made + 2 * (size_t)array->ndim * sizeof(int64_t));
    if (!made)
        return PyErr_NoMemory();
    gk_dl_tensor tensor = describe(array, device, made->lengths);
    made->owner = Py_NewRef(owner);
    if (versioned)
        made->as.versioned = (gk_dl_versioned){
            .major = GK_DL_MAJOR,
            .minor = GK_DL_MINOR,
            .context = made,
            .deleter = delete_versioned,
            .flags = (array->readonly ? GK_DL_READ_ONLY : 0) | (copied ? GK_DL_IS_COPIED : 0),
            .tensor = tensor,
        };
    else
        made->as.managed =
            (gk_dl_managed){.tensor = tensor, .context = made, .deleter = delete_managed};
    PyObject *capsule =
        PyCapsule_New(&made->as, versioned ? "dltensor_versioned" : "dltensor", destroy_capsule);
    if (!capsule)
        end_loan(made);
    return capsule;
}
