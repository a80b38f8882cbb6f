#include "binding/kernels/kernel.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#include "binding/arrays/device_object.h"
#include "binding/arrays/operands.h"
#include "binding/kernels/arguments.h"
#include "binding/kernels/direction.h"
#include "binding/kernels/image.h"
#include "binding/kernels/launch_shape.h"
#include "binding/profile.h"
#include "binding/signals.h"
#include "binding/values.h"
#include "ops/user_map.h"

enum { MOST_PARAMETERS = 4096, NUMBERS = 7 };

typedef struct kernel_object {
    PyObject ob_base;
    gk_state *state;
    PyObject *module; /* keeps the state: a collection at exit may clear the type first */
    PyObject *image;
    PyObject *name;  /* as the user asked for it: "add<float>" */
    PyObject *texts; /* of the parameters: what their fields point into */
    PyObject *symbol;
    const char *name_text, *symbol_text;
    int count;
    gk_parameter *parameters;
    const char **names;
    gk_kernel loaded[GK_MOST_DEVICES]; /* without a function until first wanted */
} kernel_object;

/* making one ----------------------------------------------------------------------------------- */

static int bad_parameters(void) {
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError,
                        "Kernel: parameters are (text, made_of, bytes, readonly, points_to, "
                        "scalar_bytes, pointee_bytes, alignment) each");
    return -1;
}

static int read_parameter(PyObject *description, gk_parameter *parameter) {
    long long numbers[NUMBERS];
    if (!PyTuple_Check(description) || PyTuple_Size(description) != NUMBERS + 1)
        return bad_parameters();
    PyObject *text = PyTuple_GetItem(description, 0);
    parameter->text = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (!parameter->text)
        return bad_parameters();
    for (int i = 0; i < NUMBERS; i++) {
        numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(description, i + 1));
        if (PyErr_Occurred() || numbers[i] < 0)
            return bad_parameters();
    }
    if (numbers[0] >= GK_MADE_OF_COUNT || numbers[3] >= GK_MADE_OF_COUNT ||
        (numbers[0] != GK_OF_BYTES && numbers[0] != GK_OF_UNKNOWN && numbers[1] > 8))
        return bad_parameters();
    parameter->made_of = (gk_made_of)numbers[0];
    parameter->bytes = (size_t)numbers[1];
    parameter->readonly = numbers[2] != 0;
    parameter->points_to = (gk_made_of)numbers[3];
    parameter->scalar_bytes = (size_t)numbers[4];
    parameter->pointee_bytes = (size_t)numbers[5];
    parameter->alignment = (size_t)numbers[6];
    return 0;
}

static int read_parameters(kernel_object *self) {
    self->count = (int)PyTuple_Size(self->texts);
    size_t room = (size_t)self->count + 1;
    self->parameters = PyMem_Calloc(room, sizeof *self->parameters);
    self->names = PyMem_Calloc(room, sizeof *self->names);
    if (!self->parameters || !self->names) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < self->count; i++) {
        if (read_parameter(PyTuple_GetItem(self->texts, i), &self->parameters[i]) < 0)
            return -1;
        self->names[i] = self->parameters[i].text;
    }
    return 0;
}

/* The kernel on the call's device. NULL: raised. */
static const gk_kernel *kernel_here(kernel_object *self, gk_call *call) {
    gk_kernel *slot = &self->loaded[call->backend->ordinal];
    gk_kernel found;
    if (slot->function)
        return slot;
    if (gk_image_kernel(self->state, call, self->image, self->symbol_text, &found) < 0)
        return NULL;
    *slot = found; /* with the GIL, and every thread would write the same */
    return slot;
}

static int fill(kernel_object *self, PyObject *positional) {
    gk_call call;
    PyObject *image = PyTuple_GetItem(positional, 0), *symbol = PyTuple_GetItem(positional, 1),
             *name = PyTuple_GetItem(positional, 2), *texts = PyTuple_GetItem(positional, 3);
    if (Py_TYPE(image) != self->state->image_type || !PyUnicode_Check(symbol) ||
        !PyUnicode_Check(name) || !PyTuple_Check(texts) || PyTuple_Size(texts) > MOST_PARAMETERS)
        return bad_parameters();
    self->image = Py_NewRef(image);
    self->symbol = Py_NewRef(symbol);
    self->name = Py_NewRef(name);
    self->texts = Py_NewRef(texts);
    self->symbol_text = PyUnicode_AsUTF8AndSize(symbol, NULL);
    self->name_text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!self->symbol_text || !self->name_text || read_parameters(self) < 0)
        return -1;
    return gk_begin(self->state, &call, self->name_text) == 0 && kernel_here(self, &call) ? 0 : -1;
}

static gk_state *state_of(PyTypeObject *type) {
    /* A subclass in Python has no module state of its own: its first base in C does. */
    while (type && !(PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE && PyType_GetModule(type))) {
        PyErr_Clear();
        type = PyType_GetSlot(type, Py_tp_base);
    }
    return type ? PyType_GetModuleState(type) : NULL;
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *positional, PyObject *named) {
    if (PyTuple_Size(positional) != 4 || (named && PyDict_Size(named) > 0)) {
        PyErr_SetString(PyExc_TypeError, "Kernel: takes an Image, a symbol, a name and parameters; "
                                         "gpukern.compile makes kernels");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    kernel_object *self = (kernel_object *)allocate(type, 0);
    if (!self)
        return NULL;
    self->state = state_of(type);
    if (!self->state) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    self->module = Py_NewRef(self->state->module);
    if (fill(self, positional) == 0)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void kernel_deallocate(PyObject *object) {
    kernel_object *self = (kernel_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *module = self->module;
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->image);
    Py_XDECREF(self->symbol);
    Py_XDECREF(self->name);
    Py_XDECREF(self->texts);
    PyMem_Free(self->parameters);
    PyMem_Free((void *)self->names);
    PyObject_GC_Del(object);
    Py_DECREF(type);
    Py_XDECREF(module);
}

static int kernel_traverse(PyObject *object, visitproc visit, void *arg) {
    kernel_object *self = (kernel_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->module);
    Py_VISIT(self->image);
    return 0;
}

/* calling it ----------------------------------------------------------------------------------- */

/* What a call of it takes in memory. */
typedef struct launching {
    gk_launch launch;
    size_t a_block; /* elements, of a launch in chunks; else 0 */
    gk_kernel_argument *arguments;
    gk_holding *holdings;
} launching;

static int refuse_count(const kernel_object *self, Py_ssize_t given) {
    char list[512] = "";
    size_t used = 0;
    for (int i = 0; i < self->count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 self->names[i]);
    PyErr_Format(PyExc_TypeError,
                 "%s: takes %d argument%s after grid and block, (%s), and was given %zd",
                 self->name_text, self->count, self->count == 1 ? "" : "s", list,
                 given > 0 ? given : (Py_ssize_t)0);
    return -1;
}

static int read_named(const kernel_object *self, PyObject *named, PyObject **shared,
                      PyObject **stream) {
    PyObject *key, *value;
    Py_ssize_t place = 0;
    *shared = *stream = NULL;
    while (named && PyDict_Next(named, &place, &key, &value)) {
        if (PyUnicode_CompareWithASCIIString(key, "shared") == 0) {
            *shared = value;
        } else if (PyUnicode_CompareWithASCIIString(key, "stream") == 0) {
            *stream = value;
        } else {
            PyErr_Format(PyExc_TypeError,
                         "%s: has no argument '%U'; a kernel is called as kernel(grid, block, "
                         "*arguments, shared=0, stream=None), its own arguments by position",
                         self->name_text, key);
            return -1;
        }
    }
    return 0;
}

/* The device of the first array that is on one. */
static int ordinal_of(const kernel_object *self, PyObject *positional) {
    PyObject *few[16], **objects = few;
    if (self->count > (int)(sizeof few / sizeof few[0]))
        objects = PyMem_Malloc((size_t)self->count * sizeof *objects);
    if (!objects) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < self->count; i++)
        objects[i] = gk_direction_of(self->state, PyTuple_GetItem(positional, i + 2)).object;
    int ordinal =
        gk_device_of(self->state, self->name_text, self->names, objects, self->count, NULL);
    if (objects != few)
        PyMem_Free(objects);
    return ordinal;
}

/* Of two host arrays that are both copied back the later one would win. */
static int check_apart(const kernel_object *self, const gk_kernel_argument *arguments) {
    for (int i = 0; i < self->count; i++)
        for (int j = 0; j < i; j++) {
            const gk_kernel_argument *a = &arguments[j], *b = &arguments[i];
            if (!a->is_array || !b->is_array || !a->is_out || !b->is_out ||
                a->array.place != GK_HOST || b->array.place != GK_HOST ||
                !gk_overlaps(&a->array, &b->array))
                continue;
            PyErr_Format(PyExc_ValueError,
                         "%s: %s and %s share memory, and what the kernel writes to one would be "
                         "lost in the other; pass arrays of their own, or gpukern.In(...) for one "
                         "that is not written",
                         self->name_text, self->names[j], self->names[i]);
            return -1;
        }
    return 0;
}

static int take_all(kernel_object *self, gk_call *call, PyObject *positional, launching *it) {
    for (int i = 0; i < self->count; i++)
        if (gk_take_kernel_argument(self->state, call, &self->parameters[i],
                                    PyTuple_GetItem(positional, i + 2), &it->arguments[i],
                                    &it->holdings[i]) < 0)
            return -1;
    return check_apart(self, it->arguments);
}

/* What the kernel has printed, to Python's own output. -1: raised. */
static int show_printed(const gk_call *call) {
    gk_backend *backend = call->backend;
    size_t bytes = 0;
    char *text = backend->printed ? backend->printed(backend, &bytes) : NULL;
    if (!text)
        return 0;
    PyObject *shown = PyUnicode_DecodeUTF8(text, (Py_ssize_t)bytes, "replace");
    PyObject *output = PySys_GetObject("stdout"); /* borrowed; None where there is none */
    PyObject *done = NULL;
    free(text);
    Py_XINCREF(output);
    if (shown && output && !Py_IsNone(output)) {
        PyObject *written = PyObject_CallMethod(output, "write", "O", shown);
        done = written ? PyObject_CallMethod(output, "flush", NULL) : NULL;
        Py_XDECREF(written);
    } else if (shown) {
        done = Py_NewRef(Py_None);
    }
    Py_XDECREF(output);
    Py_XDECREF(shown);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* A failure that is raised already is said first. */
static void show_printed_beside(const gk_call *call) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (show_printed(call) < 0)
        PyErr_Clear();
    PyErr_Restore(type, value, trace);
}

static int run(kernel_object *self, gk_call *call, launching *it) {
    gk_listener signals;
    if (call->captured)
        gk_image_keep(self->image);
    gk_listen(&signals, call);
    gk_status status =
        it->a_block ? gk_user_kernel_map(call, &it->launch, it->arguments, self->count, it->a_block)
                    : gk_user_kernel_run(call, &it->launch, it->arguments, self->count);
    gk_call_end(call);
    gk_listen_end(&signals);
    if (status == GK_OK)
        return show_printed(call);
    gk_raise(self->state, &call->error);
    show_printed_beside(call);
    return -1;
}

static int end_profile(kernel_object *self, gk_call *call, const gk_profiled *profiled,
                       const launching *it) {
    int arrays = 0;
    if (!call->phases)
        return 0;
    gk_array *operands = PyMem_Malloc(((size_t)self->count + 1) * sizeof *operands);
    if (!operands) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < self->count; i++)
        if (it->arguments[i].is_array)
            gk_copy_view(&operands[arrays++], &it->arguments[i].array);
    int failed = gk_profile_end(self->state, call, profiled, operands, arrays);
    PyMem_Free(operands);
    return failed;
}

/* All that a launch takes, checked; nothing has been done on the device. */
static int prepare(kernel_object *self, gk_call *call, PyObject *positional, PyObject *shared,
                   PyObject *stream, launching *it) {
    if (gk_take_stream(self->state, call, stream) < 0 ||
        gk_take_sides(call, "grid", PyTuple_GetItem(positional, 0), it->launch.grid) < 0 ||
        gk_take_sides(call, "block", PyTuple_GetItem(positional, 1), it->launch.block) < 0 ||
        gk_take_shared(call, shared, &it->launch.shared_bytes) < 0)
        return -1;
    it->launch.kernel = kernel_here(self, call);
    if (!it->launch.kernel || gk_check_launch(call, &it->launch) < 0)
        return -1;
    return take_all(self, call, positional, it);
}

static PyObject *launch_on(kernel_object *self, gk_call *call, PyObject *positional,
                           PyObject *shared, PyObject *stream, launching *it) {
    gk_profiled profiled;
    gk_profile_begin(self->state, call, &profiled);
    if (prepare(self, call, positional, shared, stream, it) < 0 || run(self, call, it) < 0 ||
        end_profile(self, call, &profiled, it) < 0)
        return NULL;
    return Py_NewRef(Py_None);
}

/* The bytes of an array that a launch would be given: of the host's, or of a device's. */
static PyObject *memory_of(kernel_object *self, const gk_call *call, PyObject *object,
                           const gk_array *array) {
    gk_array bytes;
    size_t count = gk_bytes(array);
    if (array->place == GK_HOST)
        return PyMemoryView_FromMemory(array->data, (Py_ssize_t)count,
                                       array->readonly ? PyBUF_READ : PyBUF_WRITE);
    gk_copy_view(&bytes, array);
    bytes.dtype = GK_uint8;
    bytes.ndim = 1;
    bytes.shape[0] = (ptrdiff_t)count;
    bytes.strides[0] = 1;
    return gk_device_array_lent(self->state, call, &bytes, object);
}

/* (memory, is_in, is_out) of an array, None of anything else. */
static PyObject *examined(kernel_object *self, const gk_call *call, PyObject *object,
                          const gk_kernel_argument *argument) {
    if (!argument->is_array || gk_count(&argument->array) == 0)
        return Py_NewRef(Py_None);
    PyObject *array = gk_direction_of(self->state, object).object;
    PyObject *memory = memory_of(self, call, array, &argument->array);
    if (!memory)
        return NULL;
    return Py_BuildValue("(NOO)", memory, argument->is_in ? Py_True : Py_False,
                         argument->is_out ? Py_True : Py_False);
}

static PyObject *examine_on(kernel_object *self, gk_call *call, PyObject *positional,
                            PyObject *shared, PyObject *stream, launching *it) {
    if (prepare(self, call, positional, shared, stream, it) < 0)
        return NULL;
    PyObject *found = PyTuple_New(self->count);
    for (int i = 0; found && i < self->count; i++) {
        PyObject *one = examined(self, call, PyTuple_GetItem(positional, i + 2), &it->arguments[i]);
        if (!one || PyTuple_SetItem(found, i, one) < 0)
            Py_CLEAR(found);
    }
    return found ? Py_BuildValue("(iN)", call->backend->ordinal, found) : NULL;
}

typedef PyObject *doing(kernel_object *self, gk_call *call, PyObject *positional, PyObject *shared,
                        PyObject *stream, launching *it);

/* To be given back either way. */
static int make_room(const kernel_object *self, launching *it) {
    size_t room = (size_t)self->count + 1;
    *it = (launching){.arguments = PyMem_Malloc(room * sizeof *it->arguments),
                      .holdings = PyMem_Calloc(room, sizeof *it->holdings)};
    if (!it->arguments || !it->holdings) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < self->count; i++) {
        it->arguments[i].is_array = false;
        it->arguments[i].staged = NULL;
    }
    return 0;
}

static void give_room(const kernel_object *self, launching *it) {
    if (it->holdings)
        gk_let_go(it->holdings, self->count);
    PyMem_Free(it->arguments);
    PyMem_Free(it->holdings);
}

static PyObject *with_arguments(kernel_object *self, PyObject *positional, PyObject *named,
                                doing *what) {
    gk_call call;
    PyObject *shared, *stream, *done = NULL;
    Py_ssize_t given = PyTuple_Size(positional) - 2;
    if (read_named(self, named, &shared, &stream) < 0)
        return NULL;
    if (given != self->count) {
        refuse_count(self, given);
        return NULL;
    }
    int ordinal = ordinal_of(self, positional);
    if (ordinal < 0 || gk_begin_on(self->state, &call, ordinal, self->name_text) < 0)
        return NULL;
    launching it;
    if (make_room(self, &it) == 0)
        done = what(self, &call, positional, shared, stream, &it);
    give_room(self, &it);
    return done;
}

static PyObject *kernel_call(PyObject *object, PyObject *positional, PyObject *named) {
    return with_arguments((kernel_object *)object, positional, named, launch_on);
}

static PyObject *kernel_examine(PyObject *object, PyObject *positional, PyObject *named) {
    return with_arguments((kernel_object *)object, positional, named, examine_on);
}

/* in chunks ------------------------------------------------------------------------------------ */

/* An array that is read, or a number. */
static int take_mapped(kernel_object *self, gk_call *call, int number, PyObject *object,
                       const gk_array *result, launching *it) {
    gk_kernel_argument *argument = &it->arguments[number];
    if (gk_take_kernel_argument(self->state, call, &self->parameters[number], object, argument,
                                &it->holdings[number]) < 0)
        return -1;
    if (!argument->is_array ||
        (argument->array.place == GK_HOST && gk_count(&argument->array) == gk_count(result) &&
         !argument->is_out))
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s: %s has to be const, and an array on the host of as many elements as the "
                 "result, %zu",
                 call->operation, self->names[number], gk_count(result));
    return -1;
}

/* The result, and how many elements it has. */
static int take_ends(const kernel_object *self, const gk_call *call, const gk_array *result,
                     launching *it) {
    gk_kernel_argument *out = &it->arguments[self->count - 2], *count = out + 1;
    const gk_parameter *written = &self->parameters[self->count - 2], *last = written + 1;
    if (written->made_of != GK_OF_POINTER || written->readonly ||
        !gk_points_to(written, result->dtype) || last->made_of != GK_OF_SIGNED ||
        last->bytes != sizeof count->number) {
        PyErr_Format(PyExc_TypeError,
                     "%s: the last parameters, %s and %s, have to be where %s is written and a "
                     "number of 8 bytes",
                     call->operation, written->text, last->text, gk_dtype_name(result->dtype));
        return -1;
    }
    out->is_array = out->is_out = true;
    out->is_in = false;
    gk_copy_view(&out->array, result);
    count->number = gk_count(result);
    count->value = &count->number;
    return 0;
}

static int map_into(kernel_object *self, gk_call *call, PyObject *given, gk_output *output,
                    launching *it) {
    it->launch.kernel = kernel_here(self, call);
    if (!it->launch.kernel || gk_check_launch(call, &it->launch) < 0)
        return -1;
    for (int i = 0; i < self->count - 2; i++)
        if (take_mapped(self, call, i, PyTuple_GetItem(given, i), &output->array, it) < 0)
            return -1;
    if (take_ends(self, call, &output->array, it) < 0 || run(self, call, it) < 0)
        return -1;
    return gk_finish_output(call, output);
}

static int take_mapping(kernel_object *self, gk_call *call, PyObject *const *values,
                        gk_array *expected, launching *it) {
    long long a_block = PyLong_AsLongLong(values[0]);
    gk_clear_view(expected);
    expected->place = GK_HOST;
    if (PyErr_Occurred() || gk_take_sides(call, "block", values[1], it->launch.block) < 0 ||
        gk_shape_from_object(self->name_text, values[2], expected) < 0 ||
        gk_dtype_from_object(self->state, self->name_text, values[3], &expected->dtype) < 0)
        return -1;
    gk_make_contiguous(expected);
    it->launch.grid[0] = it->launch.grid[1] = it->launch.grid[2] = 1; /* of each chunk its own */
    it->a_block = a_block > 0 ? (size_t)a_block : 0;
    if (a_block > 0 && PyTuple_Check(values[4]) && PyTuple_Size(values[4]) == self->count - 2)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s: takes the elements of a block and a tuple of %d arguments, and was given %R "
                 "and %R",
                 self->name_text, self->count - 2, values[0], values[4]);
    return -1;
}

static PyObject *kernel_map(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                            PyObject *keywords) {
    static const char *const names[] = {"a_block",   "block", "shape",  "dtype",
                                        "arguments", "out",   "stream", NULL};
    static const gk_signature signature = {"map", names, 5, 7};
    kernel_object *self = (kernel_object *)object;
    PyObject *values[7], *result = NULL;
    gk_call call;
    gk_profiled profiled;
    gk_array expected;
    gk_output output;
    launching it;
    if (gk_parse(&signature, arguments, count, keywords, values) < 0 ||
        gk_begin(self->state, &call, self->name_text) < 0)
        return NULL;
    gk_profile_begin(self->state, &call, &profiled);
    bool is_given = values[5] && !Py_IsNone(values[5]);
    if (make_room(self, &it) == 0 && gk_take_stream(self->state, &call, values[6]) == 0 &&
        take_mapping(self, &call, values, &expected, &it) == 0 &&
        (is_given ? gk_take_output(self->state, &call, "out", values[5], &expected, &output)
                  : gk_new_output(self->state, &call, &expected, &output)) == 0) {
        if (map_into(self, &call, values[4], &output, &it) == 0 &&
            end_profile(self, &call, &profiled, &it) == 0)
            result = Py_NewRef(output.object);
        gk_drop_output(&output);
    }
    give_room(self, &it);
    return result;
}

/* what is known of it -------------------------------------------------------------------------- */

static PyObject *kernel_facts(PyObject *object, PyObject *unused) {
    kernel_object *self = (kernel_object *)object;
    gk_call call;
    (void)unused;
    if (gk_begin(self->state, &call, self->name_text) < 0)
        return NULL;
    const gk_kernel *kernel = kernel_here(self, &call);
    if (!kernel)
        return NULL;
    return Py_BuildValue("{s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "registers", kernel->registers, "local",
                         kernel->local_bytes, "constant", kernel->constant_bytes, "shared",
                         kernel->shared_bytes, "most_shared", kernel->most_dynamic, "most_threads",
                         kernel->most_threads, "resident_threads", kernel->most_resident);
}

static PyObject *kernel_occupancy(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                                  PyObject *keywords) {
    static const char *const names[] = {"block", "shared", NULL};
    static const gk_signature signature = {"occupancy", names, 1, 2};
    kernel_object *self = (kernel_object *)object;
    gk_call call;
    gk_launch launch = {.grid = {1, 1, 1}};
    int blocks = 0;
    PyObject *values[2];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0 ||
        gk_begin(self->state, &call, self->name_text) < 0 ||
        gk_take_sides(&call, "block", values[0], launch.block) < 0 ||
        gk_take_shared(&call, values[1], &launch.shared_bytes) < 0)
        return NULL;
    launch.kernel = kernel_here(self, &call);
    if (!launch.kernel || gk_check_launch(&call, &launch) < 0)
        return NULL;
    int threads = (int)(launch.block[0] * launch.block[1] * launch.block[2]);
    if (gk_call_blame(&call, call.backend->kernel_occupancy(call.backend, launch.kernel, threads,
                                                            launch.shared_bytes, &blocks,
                                                            &call.error)) != GK_OK)
        return gk_raise(self->state, &call.error);
    return PyLong_FromLong(blocks);
}

static PyObject *kernel_suggest(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                                PyObject *keywords) {
    static const char *const names[] = {"shared", NULL};
    static const gk_signature signature = {"suggest_block", names, 0, 1};
    kernel_object *self = (kernel_object *)object;
    gk_call call;
    int threads = 0;
    size_t shared;
    PyObject *value;
    if (gk_parse(&signature, arguments, count, keywords, &value) < 0 ||
        gk_begin(self->state, &call, self->name_text) < 0 ||
        gk_take_shared(&call, value, &shared) < 0)
        return NULL;
    const gk_kernel *kernel = kernel_here(self, &call);
    if (!kernel)
        return NULL;
    if (gk_call_blame(&call, call.backend->kernel_suggest(call.backend, kernel, shared, &threads,
                                                          &call.error)) != GK_OK)
        return gk_raise(self->state, &call.error);
    return PyLong_FromLong(threads);
}

static PyMethodDef methods[] = {
    {"examine", (PyCFunction)(void (*)(void))kernel_examine, METH_VARARGS | METH_KEYWORDS,
     "examine($self, grid, block, /, *arguments, shared=0, stream=None)\n--\n\n"
     "Check a call and launch nothing. Gives the number of the device, and of each array (memory,\n"
     "is_in, is_out), None of other arguments and of arrays without elements. The memory is "
     "bytes:\n"
     "a memoryview, valid as long as the argument, or a DeviceArray. Raises what the call raises."},
    {"facts", kernel_facts, METH_NOARGS,
     "facts($self, /)\n--\n\nWhat the driver tells of the kernel on this thread's device."},
    {"active_blocks", GK_FAST(kernel_occupancy),
     "active_blocks($self, block, /, shared=0)\n--\n\n"
     "How many blocks of so many threads a multiprocessor runs side by side; `shared` bytes of\n"
     "dynamic shared memory each. Raises ValueError for a block that the kernel cannot have."},
    {"map", GK_FAST(kernel_map),
     "map($self, a_block, block, shape, dtype, arguments, /, out=None, stream=None)\n--\n\n"
     "A NumPy array of that shape of what the kernel makes of host arrays, element for element, "
     "in\n"
     "chunks that overlap: its parameters are those of `arguments`, the result, and how many\n"
     "elements there are; a block takes `a_block`."},
    {"suggest_block", GK_FAST(kernel_suggest),
     "suggest_block($self, shared=0)\n--\n\n"
     "The threads a block at which a multiprocessor is fullest, each block with `shared` bytes of\n"
     "dynamic shared memory."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"name", T_OBJECT_EX, offsetof(kernel_object, name), READONLY,
     "The kernel as it was asked for, its template arguments among it."},
    {"symbol", T_OBJECT_EX, offsetof(kernel_object, symbol), READONLY,
     "Its name in the machine code."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Kernel(image, symbol, name, parameters, /)\n--\n\n"
                "A kernel of a compiled module: kernel(grid, block, *arguments, shared=0, "
                "stream=None)."},
    {Py_tp_new, kernel_new},
    {Py_tp_dealloc, kernel_deallocate},
    {Py_tp_traverse, kernel_traverse},
    {Py_tp_call, kernel_call},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec gk_kernel_spec = {
    .name = "gpukern._core.Kernel",
    .basicsize = sizeof(kernel_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
