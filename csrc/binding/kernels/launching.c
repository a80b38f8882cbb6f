#include "binding/kernels/launching.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binding/arrays/device_object.h"
#include "binding/arrays/dtypes.h"
#include "binding/arrays/operands.h"
#include "binding/arrays/outputs.h"
#include "binding/kernels/arguments.h"
#include "binding/kernels/direction.h"
#include "binding/kernels/image.h"
#include "binding/kernels/kernel_object.h"
#include "binding/kernels/launch_shape.h"
#include "binding/profile.h"
#include "binding/signals.h"
#include "binding/stream.h"
#include "binding/values.h"
#include "engine/transfer.h"
#include "ops/user_map.h"

/* What a call of it takes in memory. */
typedef struct launching {
    gk_launch launch;
    size_t a_block; /* elements, of a launch in chunks; else 0 */
    gk_kernel_argument *arguments;
    gk_holding *holdings;
} launching;

static int refuse_count(const gk_kernel_object *self, Py_ssize_t given) {
    char list[512] = "";
    size_t used = 0;
    for (int i = 0; i < self->count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                 self->names[i]);
    const char *several = self->count == 1 ? "" : "s";
    if (given < 0) /* not even those two */
        PyErr_Format(PyExc_TypeError,
                     "%s: takes a grid, a block and %d argument%s, (%s), and was given %zd in all",
                     self->name_text, self->count, several, list, given + 2);
    else
        PyErr_Format(PyExc_TypeError,
                     "%s: takes %d argument%s after grid and block, (%s), and was given %zd",
                     self->name_text, self->count, several, list, given);
    return -1;
}

static int read_named(const gk_kernel_object *self, PyObject *named, PyObject **shared,
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
static int ordinal_of(const gk_kernel_object *self, PyObject *positional) {
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
static int check_apart(const gk_kernel_object *self, const gk_kernel_argument *arguments) {
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

static int take_all(gk_kernel_object *self, gk_call *call, PyObject *positional, launching *it) {
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

static int run(gk_kernel_object *self, gk_call *call, launching *it) {
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

static int end_profile(gk_kernel_object *self, gk_call *call, const gk_profiled *profiled,
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
static int prepare(gk_kernel_object *self, gk_call *call, PyObject *positional, PyObject *shared,
                   PyObject *stream, launching *it) {
    if (gk_take_stream(self->state, call, stream) < 0 ||
        gk_take_sides(call, "grid", PyTuple_GetItem(positional, 0), it->launch.grid) < 0 ||
        gk_take_sides(call, "block", PyTuple_GetItem(positional, 1), it->launch.block) < 0 ||
        gk_take_shared(call, shared, &it->launch.shared_bytes) < 0 ||
        gk_kernel_for(self, call, &it->launch) < 0)
        return -1;
    return take_all(self, call, positional, it);
}

static PyObject *launch_on(gk_kernel_object *self, gk_call *call, PyObject *positional,
                           PyObject *shared, PyObject *stream, launching *it) {
    gk_profiled profiled;
    gk_profile_begin(self->state, call, &profiled);
    if (prepare(self, call, positional, shared, stream, it) < 0 || run(self, call, it) < 0 ||
        end_profile(self, call, &profiled, it) < 0)
        return NULL;
    return Py_NewRef(Py_None);
}

/* The bytes of an array that a launch would be given: of the host's, or of a device's. */
static PyObject *memory_of(gk_kernel_object *self, const gk_call *call, PyObject *object,
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
static PyObject *examined(gk_kernel_object *self, const gk_call *call, PyObject *object,
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

static PyObject *examine_on(gk_kernel_object *self, gk_call *call, PyObject *positional,
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

typedef PyObject *doing(gk_kernel_object *self, gk_call *call, PyObject *positional,
                        PyObject *shared, PyObject *stream, launching *it);

/* To be given back either way. */
static int make_room(const gk_kernel_object *self, launching *it) {
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

static void give_room(const gk_kernel_object *self, launching *it) {
    if (it->holdings)
        gk_let_go(it->holdings, self->count);
    PyMem_Free(it->arguments);
    PyMem_Free(it->holdings);
}

static PyObject *with_arguments(gk_kernel_object *self, PyObject *positional, PyObject *named,
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

PyObject *gk_kernel_call(PyObject *object, PyObject *positional, PyObject *named) {
    return with_arguments((gk_kernel_object *)object, positional, named, launch_on);
}

PyObject *gk_kernel_examine(PyObject *object, PyObject *positional, PyObject *named) {
    return with_arguments((gk_kernel_object *)object, positional, named, examine_on);
}

/* element by element --------------------------------------------------------------------------- */

/* An array that is read, seen in the shape of the result, or a number. */
static int take_mapped(gk_kernel_object *self, gk_call *call, int number, PyObject *object,
                       const gk_array *result, launching *it) {
    gk_kernel_argument *argument = &it->arguments[number];
    const gk_kernel_parameter *parameter = &self->parameters[number];
    gk_holding *holding = &it->holdings[number];
    gk_array given;
    if (parameter->made_of != GK_OF_POINTER)
        return gk_take_kernel_argument(self->state, call, parameter, object, argument, holding);
    if (gk_take_plain_array(self->state, call, parameter, object, &given, holding) < 0)
        return -1;
    if (parameter->readonly && given.place == GK_HOST && gk_broadcasts_to(&given, result)) {
        argument->is_array = argument->is_in = true;
        argument->is_out = false;
        gk_broadcast_view(&given, result, &argument->array);
        return 0;
    }
    PyErr_Format(PyExc_ValueError,
                 "%s: %s has to be const, and an array on the host that can be broadcast to the "
                 "shape of the result, %s",
                 call->operation, self->names[number], gk_shape_text(result).text);
    return -1;
}

/* The result, and how many elements it has. */
static int take_ends(const gk_kernel_object *self, const gk_call *call, const gk_array *result,
                     launching *it) {
    gk_kernel_argument *out = &it->arguments[self->count - 2], *count = out + 1;
    const gk_kernel_parameter *written = &self->parameters[self->count - 2], *last = written + 1;
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

static int map_into(gk_kernel_object *self, gk_call *call, PyObject *given, gk_output *output,
                    launching *it) {
    if (gk_kernel_for(self, call, &it->launch) < 0)
        return -1;
    for (int i = 0; i < self->count - 2; i++)
        if (take_mapped(self, call, i, PyTuple_GetItem(given, i), &output->array, it) < 0)
            return -1;
    if (take_ends(self, call, &output->array, it) < 0 || run(self, call, it) < 0)
        return -1;
    return gk_finish_output(call, output);
}

static int take_mapping(gk_kernel_object *self, gk_call *call, PyObject *const *values,
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

PyObject *gk_kernel_map(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                        PyObject *keywords) {
    static const char *const names[] = {"a_block",   "block", "shape",  "dtype",
                                        "arguments", "out",   "stream", NULL};
    static const gk_signature signature = {"map", names, 5, 7};
    gk_kernel_object *self = (gk_kernel_object *)object;
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
        (is_given
             ? gk_take_output(self->state, &call, "out", values[5], &expected, NULL, 0, &output)
             : gk_new_output(self->state, &call, &expected, &output)) == 0) {
        if (gk_check_on_host(&call, &output) == 0 &&
            map_into(self, &call, values[4], &output, &it) == 0 &&
            end_profile(self, &call, &profiled, &it) == 0)
            result = Py_NewRef(output.object);
        gk_drop_output(&output);
    }
    give_room(self, &it);
    return result;
}
