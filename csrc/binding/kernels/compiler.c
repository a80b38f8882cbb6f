#include "binding/kernels/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "engine/call.h"

/* What NVRTC asks often is asked of Python now and then: it takes the GIL. */
static const double seconds_between_looks = 0.01;

typedef struct look_out {
    _Atomic double last;
} look_out;

/* On whichever thread NVRTC asks; only Python's main thread hears signals. */
static bool hear_signals(void *context) {
    look_out *self = context;
    double now = gk_seconds();
    if (now - atomic_load(&self->last) < seconds_between_looks)
        return false;
    atomic_store(&self->last, now);
    PyGILState_STATE gil = PyGILState_Ensure();
    bool raised = PyErr_CheckSignals() != 0;
    PyGILState_Release(gil);
    return raised;
}

/* The texts of a tuple, which keeps them. NULL: raised. */
static const char **texts_of(PyObject *tuple, int *count) {
    *count = (int)PyTuple_Size(tuple);
    const char **texts = PyMem_Calloc((size_t)*count + 1, sizeof *texts);
    if (!texts)
        PyErr_NoMemory();
    for (int i = 0; i < *count && texts; i++) {
        texts[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);
        if (!texts[i]) {
            PyMem_Free((void *)texts);
            return NULL;
        }
    }
    return texts;
}

static PyObject *tuple_of(char *const *texts, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; i < count && tuple; i++) {
        PyObject *text = PyUnicode_FromString(texts[i]);
        if (!text || PyTuple_SetItem(tuple, i, text) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *result_of(const gk_compiled *result) {
    PyObject *symbols = tuple_of(result->symbols, result->symbol_count);
    PyObject *image = PyBytes_FromStringAndSize(result->image, (Py_ssize_t)result->bytes);
    const char *log = result->log ? result->log : "";
    PyObject *text = PyUnicode_DecodeUTF8(log, (Py_ssize_t)strlen(log), "replace");
    PyObject *tuple = NULL;
    if (symbols && image && text)
        tuple = PyTuple_Pack(4, result->compiled ? Py_True : Py_False, image, text, symbols);
    Py_XDECREF(symbols);
    Py_XDECREF(image);
    Py_XDECREF(text);
    return tuple;
}

static PyObject *compile(gk_state *state, const gk_compiler_job *job) {
    gk_error error = {0};
    gk_compiled result;
    gk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = gk_compile_source(job, &result, &error);
    Py_END_ALLOW_THREADS;
    if (status != GK_OK) {
        gk_fail_in(&error, "compile: ");
        return gk_raise(state, &error);
    }
    PyObject *made = result_of(&result);
    gk_compiled_free(&result);
    return made;
}

PyObject *gk_compile(gk_state *state, PyObject *arguments) {
    gk_compiler_job job = {.interrupted = hear_signals};
    look_out look = {.last = gk_seconds()};
    PyObject *options, *headers, *expressions, *made = NULL;
    int header_texts = 0;
    if (!PyArg_ParseTuple(arguments, "sssO!O!O!", &job.library, &job.name, &job.source,
                          &PyTuple_Type, &options, &PyTuple_Type, &headers, &PyTuple_Type,
                          &expressions))
        return NULL;
    const char **option_texts = texts_of(options, &job.option_count);
    const char **pairs = option_texts ? texts_of(headers, &header_texts) : NULL;
    const char **names = pairs ? texts_of(expressions, &job.expression_count) : NULL;
    int count = job.header_count = header_texts / 2;
    const char **split = names ? PyMem_Calloc((size_t)header_texts + 1, sizeof *split) : NULL;
    if (split) {
        for (int i = 0; i < count; i++) {
            split[i] = pairs[2 * i];
            split[count + i] = pairs[2 * i + 1];
        }
        job.options = option_texts;
        job.expressions = names;
        job.header_names = split;
        job.headers = split + count;
        job.context = &look;
        made = compile(state, &job);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    PyMem_Free((void *)option_texts);
    PyMem_Free((void *)pairs);
    PyMem_Free((void *)names);
    PyMem_Free((void *)split);
    return made;
}

PyObject *gk_nvrtc_report(gk_state *state, PyObject *library) {
    gk_error error = {0};
    gk_status status;
    int version = 0;
    const char *path = PyUnicode_Check(library) ? PyUnicode_AsUTF8AndSize(library, NULL) : NULL;
    if (!path) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "nvrtc_version: library has to be a text");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = gk_compiler_version(path, &version, &error);
    Py_END_ALLOW_THREADS;
    return status == GK_OK ? PyLong_FromLong(version) : gk_raise(state, &error);
}
