#include "binding/state.h"

#include <string.h>

#include "binding/values.h"

PyObject *gk_raise(const gk_state *state, const gk_error *error) {
    PyObject *type = state->cuda_error;
    if (error->status == GK_INTERRUPTED)
        return NULL; /* the handler of the signal has raised already */
    switch (error->status) {
    case GK_TYPE_ERROR:
        type = PyExc_TypeError;
        break;
    case GK_VALUE_ERROR:
        type = PyExc_ValueError;
        break;
    case GK_MEMORY_ERROR:
        type = PyExc_MemoryError;
        break;
    case GK_DEVICE_LOST:
        type = state->device_lost_error;
        break;
    case GK_CUDA_ERROR:
    case GK_INTERRUPTED:
    case GK_OK:
        break;
    }
    PyErr_SetString(type, error->text);
    return NULL;
}

static int show_simulator(gk_state *state) {
    if (state->simulator_shown || state->engine.no_gpu.status == GK_OK)
        return 0;
    state->simulator_shown = true;
    return PyErr_WarnFormat(
        state->simulator_warning, 1,
        "gpukern runs on its CPU simulator: results are right, times are not a GPU's. No GPU is "
        "used: %s. (GPUKERN_DEVICE=sim makes this line silent, =cuda makes it an error.)",
        state->engine.no_gpu.text);
}

int gk_begin(gk_state *state, gk_call *call, const char *operation) {
    /* Only opening a device takes time, and may need the GIL in another thread. */
    PyThreadState *released = gk_engine_is_open(&state->engine) ? NULL : PyEval_SaveThread();
    gk_status status = gk_call_begin(call, &state->engine, operation);
    if (released)
        PyEval_RestoreThread(released);
    if (status != GK_OK) {
        gk_raise(state, &call->error);
        return -1;
    }
    return show_simulator(state);
}

int gk_take_stream(gk_state *state, gk_call *call, PyObject *object) {
    gk_stream stream;
    if (!object || Py_IsNone(object))
        return 0;
    if (gk_stream_from_object(call->operation, object, &stream) < 0)
        return -1;
    call->keeper = PyLong_Check(object) ? NULL : object;
    if (gk_call_on(call, stream) == GK_OK)
        return 0;
    gk_raise(state, &call->error);
    return -1;
}

void gk_end(gk_call *call) {
    if (call->temporary_count == 0)
        return;
    Py_BEGIN_ALLOW_THREADS;
    gk_call_end(call);
    Py_END_ALLOW_THREADS;
}

void gk_profile_begin(const gk_state *state, gk_call *call, gk_profiled *profiled) {
    if (!state->profile)
        return;
    *profiled = (gk_profiled){.start = gk_seconds()};
    call->phases = &profiled->phases;
}

static PyObject *shape_list(const gk_array *operands, int operand_count) {
    PyObject *shapes = PyList_New(operand_count);
    for (int i = 0; i < operand_count && shapes; i++) {
        PyObject *shape = gk_shape_tuple(&operands[i]);
        if (!shape || PyList_SetItem(shapes, i, shape) < 0)
            Py_CLEAR(shapes);
    }
    return shapes;
}

int gk_profile_end(gk_state *state, gk_call *call, const gk_profiled *profiled,
                   const gk_array *operands, int operand_count) {
    if (!call->phases || !state->profile)
        return 0;
    const gk_phases *phases = &profiled->phases;
    double wall = gk_seconds() - profiled->start;
    double host = wall - phases->allocate - phases->host_to_device - phases->kernel -
                  phases->device_to_host + phases->overlapped;
    PyObject *shapes = shape_list(operands, operand_count);
    if (!shapes)
        return -1;
    PyObject *entry = Py_BuildValue(
        "{s:s,s:z,s:s,s:N,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:n,s:n}", "op", call->operation, "variant",
        call->ran ? call->ran->variant : NULL, "dtype", gk_dtype_name(operands[0].dtype), "shapes",
        shapes, "allocate", phases->allocate, "host_to_device", phases->host_to_device, "kernel",
        phases->kernel, "device_to_host", phases->device_to_host, "overlapped", phases->overlapped,
        "host", host > 0.0 ? host : 0.0, "wall", wall, "bytes_in", (Py_ssize_t)phases->bytes_in,
        "bytes_out", (Py_ssize_t)phases->bytes_out);
    int failed = entry ? PyList_Append(state->profile, entry) : -1;
    Py_XDECREF(entry);
    return failed;
}

/* Ask the Python side where cuBLAS may be: "name\nname\n". Called without the GIL. */
void gk_locate_cublas(void *context, char *candidates, size_t size) {
    (void)context;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("gpukern.machine.libraries");
    PyObject *list = module ? PyObject_CallMethod(module, "find_cublas", NULL) : NULL;
    PyObject *newline = list ? PyUnicode_FromString("\n") : NULL;
    PyObject *text = newline ? PyUnicode_Join(newline, list) : NULL;
    const char *names = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    candidates[0] = '\0';
    if (names && strlen(names) < size)
        strcpy(candidates, names);
    Py_XDECREF(text);
    Py_XDECREF(newline);
    Py_XDECREF(list);
    Py_XDECREF(module);
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(NULL);
    PyGILState_Release(gil);
}
