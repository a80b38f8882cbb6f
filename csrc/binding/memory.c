/* Functions of memory: arrays on the device and in pinned memory, and what is kept for later. */
#include "binding/memory.h"

#include "binding/arrays/device_object.h"
#include "binding/arrays/dtypes.h"
#include "binding/arrays/host_arrays.h"
#include "binding/arrays/operands.h"
#include "binding/calls/device_convert.h"
#include "binding/calls/device_dlpack.h"
#include "binding/stream.h"
#include "binding/values.h"
#include "engine/pipeline.h"
#include "engine/transfer.h"
#include "ops/docs.h"

static PyObject *to_device(PyObject *module, gk_arguments arguments, Py_ssize_t count,
                           PyObject *keywords) {
    static const char *const names[] = {"a", "stream", NULL};
    static const gk_signature signature = {"to_device", names, 1, 2};
    PyObject *values[2];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0)
        return NULL;
    return gk_to_device(PyModule_GetState(module), values[0], values[1]);
}

static PyObject *from_dlpack(PyObject *module, gk_arguments arguments, Py_ssize_t count,
                             PyObject *keywords) {
    static const char *const names[] = {"x", "copy", NULL};
    static const gk_signature signature = {"from_dlpack", names, 1, 1};
    PyObject *values[2];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0)
        return NULL;
    return gk_device_array_from_dlpack(PyModule_GetState(module), values[0], values[1]);
}

/* What an array is to be like, of a length or a tuple of them and what is a dtype or None. -1:
   raised. */
static int take_likeness(gk_state *state, const gk_signature *signature, PyObject *shape,
                         PyObject *dtype, gk_array *like) {
    const char *function = signature->function;
    *like = (gk_array){.dtype = GK_float32};
    if ((!shape && gk_refuse_missing(signature, 0) < 0) ||
        gk_shape_from_object(function, shape, like) < 0)
        return -1;
    if (dtype && !Py_IsNone(dtype) &&
        gk_dtype_from_object(state, function, dtype, &like->dtype) < 0)
        return -1;
    if (gk_is_addressable(like))
        return 0;
    PyErr_Format(PyExc_MemoryError,
                 "%s: an array of shape %s and dtype %s has more bytes than an address counts",
                 function, gk_shape_text(like).text, gk_dtype_name(like->dtype));
    return -1;
}

static PyObject *empty(PyObject *module, gk_arguments arguments, Py_ssize_t count,
                       PyObject *keywords) {
    static const char *const names[] = {"shape", "dtype", "stream", NULL};
    static const gk_signature signature = {"empty", names, 0, 2};
    gk_state *state = PyModule_GetState(module);
    gk_call call;
    gk_array like;
    PyObject *values[3];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0 ||
        take_likeness(state, &signature, values[0], values[1], &like) < 0 ||
        gk_begin(state, &call, "empty") < 0 || gk_take_stream(state, &call, values[2]) < 0)
        return NULL;
    return gk_device_array_new(state, &call, &like);
}

static PyObject *empty_pinned(PyObject *module, gk_arguments arguments, Py_ssize_t count,
                              PyObject *keywords) {
    static const char *const names[] = {"shape", "dtype", NULL};
    static const gk_signature signature = {"empty_pinned", names, 0, 2};
    gk_state *state = PyModule_GetState(module);
    gk_call call;
    gk_array like;
    PyObject *values[2];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0 ||
        take_likeness(state, &signature, values[0], values[1], &like) < 0 ||
        gk_begin(state, &call, "empty_pinned") < 0)
        return NULL;
    return gk_new_pinned_array(state, &call, &like);
}

/* The array itself where its memory is pinned already. */
static PyObject *pinned(gk_state *state, gk_call *call, PyObject *object, const gk_array *array) {
    if (!array->swapped && gk_is_contiguous(array) &&
        gk_pool_holds(call->device->pool, array->data, gk_bytes(array)))
        return Py_NewRef(object);
    gk_array like = *array;
    like.swapped = false;
    gk_make_contiguous(&like);
    PyObject *made = gk_new_pinned_array(state, call, &like);
    if (!made)
        return NULL;
    like.data = gk_host_data(made);
    Py_BEGIN_ALLOW_THREADS;
    gk_copy_host(call->device, &like, array);
    Py_END_ALLOW_THREADS;
    return made;
}

static PyObject *pin(PyObject *module, gk_arguments arguments, Py_ssize_t count,
                     PyObject *keywords) {
    static const char *const names[] = {"a", NULL};
    static const gk_signature signature = {"pin", names, 1, 1};
    gk_state *state = PyModule_GetState(module);
    gk_call call;
    gk_array array;
    PyObject *value, *keeper, *made = NULL;
    if (gk_parse(&signature, arguments, count, keywords, &value) < 0 ||
        gk_begin(state, &call, "pin") < 0 ||
        gk_take_operands(state, &call, names, &value, 1, &array, &keeper, NULL) < 0)
        return NULL;
    if (array.place == GK_HOST)
        made = pinned(state, &call, value, &array);
    else
        PyErr_SetString(
            PyExc_TypeError,
            "pin: a has to be a NumPy array, and is on the device; a.to_host() copies it to the "
            "host, where large arrays are pinned already");
    gk_drop_operands(&keeper, 1);
    return made;
}

static PyObject *synchronize(PyObject *module, gk_arguments arguments, Py_ssize_t count,
                             PyObject *keywords) {
    static const char *const names[] = {"stream", NULL};
    static const gk_signature signature = {"synchronize", names, 0, 1};
    gk_state *state = PyModule_GetState(module);
    gk_call call;
    gk_status status;
    gk_stream stream;
    PyObject *value;
    if (gk_parse(&signature, arguments, count, keywords, &value) < 0)
        return NULL;
    const gk_device *its = gk_stream_device(state, value);
    const int ordinal = its ? its->backend->ordinal : gk_engine_current(state->engine);
    if (gk_begin_on(state, &call, ordinal, "synchronize") < 0 ||
        gk_read_stream(state, &call, value, &stream) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = call.backend->synchronize(call.backend, stream, &call.error);
    Py_END_ALLOW_THREADS;
    if (status != GK_OK) {
        gk_fail_in(&call.error, "synchronize: ");
        return gk_raise(state, &call.error);
    }
    Py_RETURN_NONE;
}

static PyObject *release_memory(PyObject *module, gk_arguments arguments, Py_ssize_t count,
                                PyObject *keywords) {
    gk_call call;
    if (gk_parse_none("release_memory", arguments, count, keywords) < 0 ||
        gk_begin(PyModule_GetState(module), &call, "release_memory") < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    gk_device_trim(call.device);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

static PyObject *staging(PyObject *module, gk_arguments arguments, Py_ssize_t count,
                         PyObject *keywords) {
    static const char *const names[] = {"in", "out", "both", "both, unpacked", "both, in parts"};
    gk_call call;
    if (gk_parse_none("staging", arguments, count, keywords) < 0 ||
        gk_begin(PyModule_GetState(module), &call, "staging") < 0)
        return NULL;
    gk_tuner tuner;
    Py_BEGIN_ALLOW_THREADS;
    tuner = gk_pipeline_tuner(call.device->pipeline);
    Py_END_ALLOW_THREADS;
    PyObject *list = PyList_New(0);
    for (int i = 0; i < GK_DIRECTIONS * GK_STAGING_CLASSES && list; i++) {
        gk_staging found;
        size_t bytes;
        bool settled;
        const int direction = i / GK_STAGING_CLASSES;
        if (!gk_tuner_tell(&tuner, (gk_direction)direction, i % GK_STAGING_CLASSES, &bytes, &found,
                           &settled))
            continue;
        PyObject *entry = Py_BuildValue(
            "{s:s,s:n,s:i,s:n,s:N,s:N}", "direction", names[direction], "bytes", (Py_ssize_t)bytes,
            "workers", found.workers, "chunk", (Py_ssize_t)found.chunk, "past_caches",
            PyBool_FromLong(found.past_caches), "settled", PyBool_FromLong(settled));
        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"staging", GK_FAST(staging),
     "staging($module)\n--\n\n"
     "How host arrays go through the device, as calls have found it out so far: a dict for each\n"
     "direction and each size of flows that there were, from so many bytes on."},
    {"to_device", GK_FAST(to_device),
     "to_device($module, a, /, stream=None)\n--\n\n"
     "A copy of an array in device memory, as a DeviceArray.\n\n"
     "a: a NumPy array of any layout, or an array that is on the device already.\n"
     "stream: the CUDA stream to copy on, as for every operation. None: the legacy default "
     "stream.\n" GK_RAISES_DOC},
    {"from_dlpack", GK_FAST(from_dlpack),
     "from_dlpack($module, x, /, *, copy=None)\n--\n\n"
     "The device memory of another library's array as a DeviceArray, with no copy.\n\n"
     "x: an object with __dlpack__ on this device: CUDA or managed memory, the simulator's own on\n"
     "    the simulator; a dtype that operations take. It stays alive as long as the result.\n"
     "copy: True copies. A layout of any strides is lent as it is.\n"
     "Memory that is lent read-only is refused as out.\n"
     "Raises BufferError for an array that is elsewhere (numpy.from_dlpack takes those on the "
     "host,\n"
     "gpukern.to_device copies them to the device), TypeError for a dtype or object that is not\n"
     "taken, ValueError for a broken tensor."},
    {"empty", GK_FAST(empty),
     "empty($module, shape, dtype='float32', *, stream=None)\n--\n\n"
     "A DeviceArray of undefined values.\n\n"
     "shape: a length or a tuple of them; dtype: what numpy.dtype takes, or 'bfloat16'; None is\n"
     "float32 too. stream: that the memory is taken on, as for every operation.\n"
     "Raises TypeError, ValueError, MemoryError (with what was asked and what is free), "
     "CudaError."},
    {"empty_pinned", GK_FAST(empty_pinned),
     "empty_pinned($module, shape, dtype='float32')\n--\n\n"
     "A NumPy array of undefined values in pinned memory, which operations copy from and to\n"
     "without staging: as fast as the bus is, and with none of the host's own copies.\n\n"
     "shape: a length or a tuple of them; dtype: what numpy.dtype takes, or 'bfloat16'. The "
     "memory\n"
     "is taken by whole 2 MiB, counts against limits(pinned_memory=), and is used again when the\n"
     "array dies. Large results of operations are such arrays already.\n"
     "Raises TypeError, ValueError, and MemoryError where the limit or the system allows no more."},
    {"pin", GK_FAST(pin),
     "pin($module, a, /)\n--\n\n"
     "A contiguous copy of a NumPy array in pinned memory, as empty_pinned makes it; the array\n"
     "itself where it lies there.\n\n"
     "a: a NumPy array of any layout.\n"
     "Raises TypeError, and MemoryError where the limit or the system allows no more."},
    {"synchronize", GK_FAST(synchronize),
     "synchronize($module, stream=None)\n--\n\n"
     "Wait until the device has done all its work, or that of one stream.\n"
     "Raises DeviceLostError if a kernel has faulted meanwhile."},
    {"release_memory", GK_FAST(release_memory),
     "release_memory($module)\n--\n\n"
     "Give the memory that is kept for later calls back to the system: device memory that no\n"
     "array uses, once the device is done with it, pinned host memory that no result lives in,\n"
     "and the buffers that NumPy arrays pass through. For a process that others share the GPU\n"
     "with; later calls ask for memory anew."},
    {0},
};

int gk_add_memory(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
