/* gpukern._core: the functions that Python sees, and the state behind them. */
#include "binding/state.h"

#include <stdlib.h>

#include "binding/arrays/dtypes.h"
#include "binding/calls/device_array.h"
#include "binding/calls/operations.h"
#include "binding/event.h"
#include "binding/kernels/compiler.h"
#include "binding/kernels/direction.h"
#include "binding/kernels/image.h"
#include "binding/kernels/kernel.h"
#include "binding/memory.h"
#include "binding/reports.h"
#include "binding/stream.h"
#include "binding/values.h"
#include "binding/xla/handler.h"
#include "engine/call.h"
#include "engine/pool.h"
#include "device/operations.h"

static gk_state *state_of(PyObject *module) {
    return PyModule_GetState(module);
}

/* what the Python side of the package is built on -----------------------------------------------
 */

static PyObject *backend(PyObject *module, PyObject *unused) {
    (void)unused;
    gk_call call;
    if (gk_begin(state_of(module), &call, "backend") < 0)
        return NULL;
    return PyUnicode_FromString(call.backend->name);
}

static PyObject *simulator_reason(PyObject *module, PyObject *unused) {
    (void)unused;
    const char *no_gpu = gk_engine_no_gpu(state_of(module)->engine);
    if (!no_gpu)
        Py_RETURN_NONE;
    return PyUnicode_FromString(no_gpu);
}

static PyObject *rows(PyObject *module, PyObject *unused) {
    (void)unused;
    return gk_report_rows(state_of(module));
}

static PyObject *matmul_row(PyObject *module, gk_arguments arguments, Py_ssize_t count,
                            PyObject *keywords) {
    static const char *const names[] = {"a", "b", "by_rule", NULL};
    static const gk_signature signature = {"variants", names, 2, 2};
    PyObject *values[3];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0)
        return NULL;
    int by_rule = values[2] ? PyObject_IsTrue(values[2]) : 0;
    return by_rule < 0 ? NULL : gk_report_matmul_row(state_of(module), values, by_rule);
}

static PyObject *devices(PyObject *module, PyObject *unused) {
    (void)unused;
    return gk_report_devices(state_of(module));
}

static PyObject *driver_report(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return gk_report_driver();
}

static PyObject *cublas_report(PyObject *module, PyObject *unused) {
    (void)unused;
    return gk_report_cublas(state_of(module));
}

static PyObject *compile_source(PyObject *module, PyObject *arguments) {
    return gk_compile(state_of(module), arguments);
}

static PyObject *nvrtc_version(PyObject *module, PyObject *library) {
    return gk_nvrtc_report(state_of(module), library);
}

static PyObject *capability(PyObject *module, PyObject *unused) {
    gk_call call;
    (void)unused;
    if (gk_begin(state_of(module), &call, "capability") < 0)
        return NULL;
    return PyLong_FromLong(call.backend->capability);
}

static PyObject *build_report(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return gk_report_build();
}

static PyObject *strict(PyObject *module, PyObject *change) {
    long by = PyLong_AsLong(change);
    if (by == -1 && PyErr_Occurred())
        return NULL;
    gk_engine_add_strict(state_of(module)->engine, (int)by);
    Py_RETURN_NONE;
}

static PyObject *profile_start(PyObject *module, PyObject *unused) {
    (void)unused;
    gk_state *state = state_of(module);
    if (state->profile) {
        PyErr_SetString(PyExc_RuntimeError, "profile: one is open already; close it first");
        return NULL;
    }
    state->profile = PyList_New(0);
    if (!state->profile)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *profile_stop(PyObject *module, PyObject *unused) {
    (void)unused;
    gk_state *state = state_of(module);
    PyObject *calls = state->profile;
    if (!calls) {
        PyErr_SetString(PyExc_RuntimeError, "profile: none is open");
        return NULL;
    }
    state->profile = NULL;
    return calls;
}

static PyObject *fail_call(PyObject *module, PyObject *number) {
    long left = PyLong_AsLong(number);
    if (left == -1 && PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(gk_engine_plant_fault(state_of(module)->engine, left));
}

static PyObject *device_count(PyObject *module, PyObject *unused) {
    gk_call call;
    (void)unused;
    if (gk_begin(state_of(module), &call, "device_count") < 0)
        return NULL;
    return PyLong_FromLong(gk_device_count(call.device));
}

static PyObject *choose_device(PyObject *module, PyObject *ordinal) {
    gk_engine *engine = state_of(module)->engine;
    gk_call call;
    int before = gk_engine_current(engine);
    long chosen = PyLong_AsLong(ordinal);
    if (chosen == -1 && PyErr_Occurred())
        return NULL;
    if (!gk_engine_choose(engine, chosen))
        return PyErr_NoMemory();
    if (gk_begin(state_of(module), &call, "device") < 0) {
        (void)gk_engine_choose(engine, before); /* there was room for the choice before it */
        return NULL;
    }
    return PyLong_FromLong(before);
}

static PyObject *make_current(PyObject *module, PyObject *unused) {
    gk_state *state = state_of(module);
    gk_call call;
    (void)unused;
    if (gk_begin(state, &call, "make_current") < 0)
        return NULL;
    if (gk_call_blame(&call, call.backend->make_current(call.backend, &call.error)) != GK_OK)
        return gk_raise(state, &call.error);
    return PyLong_FromLong(call.backend->ordinal);
}

/* The settings, by name: bytes each. */
static int take_limit(PyObject *name, gk_limit *limit) {
    static const char *const names[] = {
        [GK_LIMIT_PINNED] = "pinned_memory", [GK_LIMIT_DEVICE] = "device_memory",
        [GK_LIMIT_MAPPED] = "mapped_call",   [GK_LIMIT_CHUNK] = "chunk",
        [GK_LIMIT_BOXED] = "boxed_copy",     [GK_LIMIT_TILED] = "tiled_copy",
        [GK_LIMIT_VECTORS] = "vectors",      [GK_LIMIT_REPEATED] = "repeated_row",
    };
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "limit: name has to be a text");
        return -1;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0) {
            *limit = (gk_limit)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError,
                 "limit: unknown name %R; there are pinned_memory, device_memory, mapped_call, "
                 "chunk, boxed_copy, tiled_copy, vectors and repeated_row",
                 name);
    return -1;
}

static PyObject *limit(PyObject *module, gk_arguments arguments, Py_ssize_t count,
                       PyObject *keywords) {
    static const char *const names[] = {"name", "bytes", NULL};
    static const gk_signature signature = {"limit", names, 1, 2};
    gk_engine *engine = state_of(module)->engine;
    gk_limit which;
    PyObject *values[2];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0 ||
        take_limit(values[0], &which) < 0)
        return NULL;
    size_t before = gk_engine_limit(engine, which);
    if (values[1] && !Py_IsNone(values[1])) {
        size_t bytes = PyLong_AsSize_t(values[1]);
        if (bytes == (size_t)-1 && PyErr_Occurred())
            return NULL;
        Py_BEGIN_ALLOW_THREADS;
        gk_engine_set_limit(engine, which, bytes);
        Py_END_ALLOW_THREADS;
    }
    return PyLong_FromSize_t(before);
}

static PyObject *live_bytes(PyObject *module, PyObject *unused) {
    (void)unused;
    gk_call call;
    size_t bytes;
    if (gk_begin(state_of(module), &call, "live_bytes") < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    bytes = gk_device_live_bytes(call.device);
    Py_END_ALLOW_THREADS;
    return PyLong_FromSize_t(bytes);
}

static PyObject *pinned_bytes(PyObject *module, PyObject *unused) {
    (void)unused;
    gk_call call;
    if (gk_begin(state_of(module), &call, "pinned_bytes") < 0)
        return NULL;
    gk_pool_report report = gk_pool_describe(call.device->pool);
    return Py_BuildValue("nn", (Py_ssize_t)report.used, (Py_ssize_t)report.unused);
}

/* the module ----------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"backend", backend, METH_NOARGS,
     "backend($module)\n--\n\n'cuda' or 'sim': what runs the kernels of this process."},
    {"simulator_reason", simulator_reason, METH_NOARGS,
     "simulator_reason($module)\n--\n\n"
     "Why the simulator serves though nobody asked for it, or None."},
    {"rows", rows, METH_NOARGS, "rows($module)\n--\n\nThe table of kernels, a dict a row."},
    {"matmul_row", GK_FAST(matmul_row),
     "matmul_row($module, a, b, /, *, by_rule=False)\n--\n\n"
     "The place in rows() of the kernel that would multiply two arrays; None where none runs.\n"
     "by_rule: the one that would if nothing had been measured."},
    {"devices", devices, METH_NOARGS,
     "devices($module)\n--\n\nWhat the driver tells of each device, a dict a device."},
    {"driver_report", driver_report, METH_NOARGS,
     "driver_report($module)\n--\n\nThe state of the CUDA driver; never raises for a bad one."},
    {"cublas_report", cublas_report, METH_NOARGS,
     "cublas_report($module)\n--\n\nWhere cuBLAS was found and its version, or what is wrong."},
    {"compile_source", compile_source, METH_VARARGS,
     "compile_source($module, library, name, source, options, headers, expressions, /)\n--\n\n"
     "What NVRTC makes of a source: (compiled, image, log, symbols). headers holds names and "
     "texts\n"
     "by turns; symbols are those of the expressions."},
    {"xla_target", gk_xla_target, METH_O,
     "xla_target($module, on_gpu, /)\n--\n\n"
     "The function that XLA calls for operations that JAX was given, in a capsule."},
    {"nvrtc_version", nvrtc_version, METH_O,
     "nvrtc_version($module, library, /)\n--\n\n13000 for NVRTC 13.0."},
    {"capability", capability, METH_NOARGS,
     "capability($module)\n--\n\nThe compute capability of this thread's device: 90 for 9.0."},
    {"build_report", build_report, METH_NOARGS,
     "build_report($module)\n--\n\nWhat this extension was compiled for and with."},
    {"strict", strict, METH_O,
     "strict($module, change, /)\n--\n\nAdd to the number of open gpukern.strict() blocks."},
    {"profile_start", profile_start, METH_NOARGS,
     "profile_start($module)\n--\n\nStart to record every call, phase by phase."},
    {"profile_stop", profile_stop, METH_NOARGS,
     "profile_stop($module)\n--\n\nThe calls recorded, a dict a call."},
    {"fail_call", fail_call, METH_O,
     "fail_call($module, number, /)\n--\n\n"
     "Plant a fault for tests: the number-th device call or host allocation from now fails; 0\n"
     "disarms. Returns whether the fault planted before has come to pass."},
    {"device_count", device_count, METH_NOARGS,
     "device_count($module)\n--\n\nHow many devices there are to choose from."},
    {"choose_device", choose_device, METH_O,
     "choose_device($module, ordinal, /)\n--\n\n"
     "Run the calls of this thread on another device; returns the one until now."},
    {"make_current", make_current, METH_NOARGS,
     "make_current($module)\n--\n\n"
     "Make this thread's device the one that libraries of the CUDA runtime take for current, and\n"
     "return its number."},
    {"limit", GK_FAST(limit),
     "limit($module, name, /, bytes=None)\n--\n\n"
     "Set a limit in bytes; returns the one until now. pinned_memory: host memory that is kept\n"
     "pinned for results and staging, a device. device_memory: what the arrays of one call may\n"
     "take, 0 for all there is. mapped_call: calls of no more bytes copy nothing. chunk: how much\n"
     "of a host array goes through the device at a time. boxed_copy: copies of no less bytes may "
     "go\n"
     "by boxes; tiled_copy: of more than these by tiles, of eight times that by woven lines."},
    {"live_bytes", live_bytes, METH_NOARGS,
     "live_bytes($module)\n--\n\nBytes of device memory that are allocated now."},
    {"pinned_bytes", pinned_bytes, METH_NOARGS,
     "pinned_bytes($module)\n--\n\n"
     "Bytes of pinned host memory of this device: in use, and kept to be used again."},
    {NULL, NULL, 0, NULL},
};

static int add_exceptions(PyObject *module, gk_state *state) {
    state->cuda_error = PyErr_NewExceptionWithDoc(
        "gpukern.CudaError", "The CUDA driver, cuBLAS or the simulator refused a call.",
        PyExc_RuntimeError, NULL);
    if (!state->cuda_error || PyModule_AddObjectRef(module, "CudaError", state->cuda_error) < 0)
        return -1;
    state->device_lost_error = PyErr_NewExceptionWithDoc(
        "gpukern.DeviceLostError",
        "A kernel faulted and the device answers no more until the process ends.",
        state->cuda_error, NULL);
    if (!state->device_lost_error ||
        PyModule_AddObjectRef(module, "DeviceLostError", state->device_lost_error) < 0)
        return -1;
    state->simulator_warning = PyErr_NewExceptionWithDoc(
        "gpukern.SimulatorWarning", "No GPU can be used: the CPU simulator runs the kernels.",
        PyExc_UserWarning, NULL);
    if (!state->simulator_warning)
        return -1;
    return PyModule_AddObjectRef(module, "SimulatorWarning", state->simulator_warning);
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    if (!type &&
        !PyErr_Occurred()) /* Python 3.11 had no memory for its name, and does not say so */
        PyErr_NoMemory();
    return (PyTypeObject *)type;
}

/* What `from gpukern._core import *` gives, and so gpukern: the operations and these. */
static int add_public_names(PyObject *module) {
    static const char *const names[] = {
#define GK_NAME(name, ...) #name,
        GK_OPERATIONS(GK_NAME)
#undef GK_NAME
            "CudaError",
        "DeviceArray",
        "DeviceLostError",
        "Event",
        "Graph",
        "In",
        "InOut",
        "Out",
        "SimulatorWarning",
        "Stream",
        "empty",
        "empty_pinned",
        "from_dlpack",
        "pin",
        "release_memory",
        "synchronize",
        "to_device"};
    enum { NAMES = sizeof names / sizeof names[0] };
    PyObject *list = PyList_New(NAMES);
    for (int i = 0; i < NAMES && list; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (!name || PyList_SetItem(list, i, name) < 0)
            Py_CLEAR(list);
    }
    int failed = list ? PyModule_AddObjectRef(module, "__all__", list) : -1;
    Py_XDECREF(list);
    return failed;
}

/* The dtypes by name, with the bytes of an element. */
static int add_dtypes(PyObject *module) {
    PyObject *dtypes = PyDict_New();
    for (int i = 0; i < GK_DTYPE_COUNT && dtypes; i++) {
        PyObject *size = PyLong_FromSize_t(gk_dtype_size((gk_dtype)i));
        if (!size || PyDict_SetItemString(dtypes, gk_dtype_name((gk_dtype)i), size) < 0)
            Py_CLEAR(dtypes);
        Py_XDECREF(size);
    }
    int failed = dtypes ? PyModule_AddObjectRef(module, "DTYPES", dtypes) : -1;
    Py_XDECREF(dtypes);
    return failed;
}

static int intern_names(gk_state *state) {
    static const char *const texts[GK_NAME_COUNT] = {
#define GK_TEXT(name, text) text,
        GK_NAMES(GK_TEXT)
#undef GK_TEXT
    };
    for (int i = 0; i < GK_NAME_COUNT; i++) {
        state->names[i] = PyUnicode_InternFromString(texts[i]);
        if (!state->names[i])
            return -1;
    }
    return 0;
}

static int add_kernel_types(PyObject *module, gk_state *state) {
    const struct {
        PyTypeObject **type;
        PyType_Spec *spec;
    } types[] = {
        {&state->image_type, &gk_image_spec}, {&state->kernel_type, &gk_kernel_spec},
        {&state->in_type, &gk_in_spec},       {&state->out_type, &gk_out_spec},
        {&state->inout_type, &gk_inout_spec},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        *types[i].type = add_type(module, types[i].spec);
        if (!*types[i].type)
            return -1;
    }
    return 0;
}

static int module_exec(PyObject *module) {
    gk_state *state = state_of(module);
    state->module = module;
    state->engine = gk_engine_new((gk_places){gk_locate_cublas, gk_locate_tables, NULL});
    if (!state->engine) {
        PyErr_NoMemory();
        return -1;
    }
    if (gk_load_numpy() < 0 || intern_names(state) < 0 || add_exceptions(module, state) < 0)
        return -1;
    if (gk_add_operations(module, state) < 0 || gk_add_memory(module) < 0 ||
        add_public_names(module) < 0 || add_dtypes(module) < 0)
        return -1;
    state->device_array_type = add_type(module, &gk_device_array_spec);
    if (!state->device_array_type)
        return -1;
    state->event_type = add_type(module, &gk_event_spec);
    state->stream_type = state->event_type ? add_type(module, &gk_stream_spec) : NULL;
    state->graph_type = state->stream_type ? add_type(module, &gk_graph_spec) : NULL;
    return state->graph_type ? add_kernel_types(module, state) : -1;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    gk_state *state = state_of(module);
    Py_VISIT(state->cuda_error);
    Py_VISIT(state->device_lost_error);
    Py_VISIT(state->simulator_warning);
    Py_VISIT(state->device_array_type);
    Py_VISIT(state->event_type);
    Py_VISIT(state->stream_type);
    Py_VISIT(state->graph_type);
    Py_VISIT(state->image_type);
    Py_VISIT(state->kernel_type);
    Py_VISIT(state->in_type);
    Py_VISIT(state->out_type);
    Py_VISIT(state->inout_type);
    Py_VISIT(state->bfloat16);
    Py_VISIT(state->profile);
    for (int i = 0; i < GK_FOREIGN_TYPES; i++)
        Py_VISIT((PyObject *)state->foreign_types[i].type);
    return 0;
}

static int module_clear(PyObject *module) {
    gk_state *state = state_of(module);
    Py_CLEAR(state->cuda_error);
    Py_CLEAR(state->device_lost_error);
    Py_CLEAR(state->simulator_warning);
    Py_CLEAR(state->device_array_type);
    Py_CLEAR(state->event_type);
    Py_CLEAR(state->stream_type);
    Py_CLEAR(state->graph_type);
    Py_CLEAR(state->image_type);
    Py_CLEAR(state->kernel_type);
    Py_CLEAR(state->in_type);
    Py_CLEAR(state->out_type);
    Py_CLEAR(state->inout_type);
    Py_CLEAR(state->bfloat16);
    Py_CLEAR(state->profile);
    for (int i = 0; i < GK_FOREIGN_TYPES; i++)
        Py_CLEAR(state->foreign_types[i].type);
    for (int i = 0; i < GK_NAME_COUNT; i++)
        Py_CLEAR(state->names[i]);
    return 0;
}

static void module_free(void *module) {
    module_clear(module);
    free(state_of(module)->operation_methods);
    gk_engine_free(state_of(module)->engine);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "gpukern._core",
    .m_doc = "CUDA kernels under NumPy arrays: the engine, in C.",
    .m_size = sizeof(gk_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void) {
    return PyModuleDef_Init(&definition);
}
