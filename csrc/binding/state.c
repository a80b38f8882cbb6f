#include "binding/state.h"

#include <pthread.h>
#include <string.h>

#include "binding/values.h"
#include "engine/call.h"

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
    const char *no_gpu = state->simulator_shown ? NULL : gk_engine_no_gpu(state->engine);
    if (!no_gpu)
        return 0;
    state->simulator_shown = true;
    return PyErr_WarnFormat(
        state->simulator_warning, 1,
        "gpukern runs on its CPU simulator: results are right, times are not a GPU's. No GPU is "
        "used: %s. (GPUKERN_DEVICE=sim makes this line silent, =cuda makes it an error.)",
        no_gpu);
}

/* Said by whoever found the device closed. */
static int show_complaint(const gk_call *call) {
    const char *complaint = gk_device_complaint(call->device);
    if (!complaint)
        return 0;
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                            "gpukern does not use a table of what was measured for matmul: %s; "
                            "remove the file, or make it anew with gpukern tune",
                            complaint);
}

int gk_begin_on(gk_state *state, gk_call *call, int ordinal, const char *operation) {
    /* Only opening a device takes time, and may need the GIL in another thread. */
    bool is_open = gk_engine_is_open(state->engine, ordinal);
    PyThreadState *released = is_open ? NULL : PyEval_SaveThread();
    gk_status status = gk_call_begin(call, state->engine, ordinal, operation);
    if (released)
        PyEval_RestoreThread(released);
    if (status != GK_OK) {
        gk_raise(state, &call->error);
        return -1;
    }
    if (!is_open && show_complaint(call) < 0)
        return -1;
    return show_simulator(state);
}

int gk_begin(gk_state *state, gk_call *call, const char *operation) {
    return gk_begin_on(state, call, gk_engine_current(state->engine), operation);
}

/* The list that a function of the Python side returns, or NULL. */
static PyObject *ask(const char *module_name, const char *function, const char *argument) {
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *list = NULL;
    if (module && argument)
        list = PyObject_CallMethod(module, function, "s", argument);
    else if (module)
        list = PyObject_CallMethod(module, function, NULL);
    Py_XDECREF(module);
    return list;
}

typedef struct question {
    const char *module, *function, *argument; /* the argument may be NULL */
    char *lines;                              /* the answer: "name\nname" */
    size_t size;
} question;

static void *answer(void *asked) {
    const question *it = asked;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *list = ask(it->module, it->function, it->argument);
    PyObject *newline = list ? PyUnicode_FromString("\n") : NULL;
    PyObject *text = newline ? PyUnicode_Join(newline, list) : NULL;
    const char *names = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (names && strlen(names) < it->size)
        strcpy(it->lines, names);
    Py_XDECREF(text);
    Py_XDECREF(newline);
    Py_XDECREF(list);
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(NULL);
    PyGILState_Release(gil);
    return NULL;
}

/* Called without the GIL, with a lock of the engine's. In the main thread Python code would run the
   handlers of signals, which may call gpukern and wait for that lock: hence a thread, where it runs
   none. */
static void locate(question asked) {
    pthread_t thread;
    asked.lines[0] = '\0';
    if (pthread_create(&thread, NULL, answer, &asked) == 0)
        (void)pthread_join(thread, NULL); /* it cannot fail: the thread is ours, and joinable */
    else
        answer(&asked); /* no more threads to be had */
}

void gk_locate_cublas(void *context, char *candidates, size_t size) {
    (void)context;
    locate((question){"gpukern.machine.finding", "find_cublas", NULL, candidates, size});
}

void gk_locate_tables(void *context, const char *device, char *paths, size_t size) {
    (void)context;
    locate((question){"gpukern.machine.finding", "find_tables", device, paths, size});
}
