#include "binding/kernels/kernel.h"

#include <stddef.h>
#include <structmember.h>

#include "binding/kernels/image.h"
#include "binding/kernels/kernel_object.h"
#include "binding/kernels/launch_shape.h"
#include "binding/kernels/launching.h"
#include "binding/values.h"

enum { NUMBERS = 7 };

/* making one ----------------------------------------------------------------------------------- */

static int bad_parameters(void) {
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError,
                        "Kernel: parameters are (text, made_of, bytes, readonly, points_to, "
                        "scalar_bytes, pointee_bytes, alignment) each");
    return -1;
}

static int read_parameter(PyObject *description, gk_kernel_parameter *parameter) {
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

static int read_parameters(gk_kernel_object *self) {
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

const gk_kernel *gk_kernel_here(gk_kernel_object *self, gk_call *call) {
    gk_kernel *slot = &self->loaded[call->backend->ordinal];
    gk_kernel found = {.name = self->name_text};
    if (slot->function)
        return slot;
    if (gk_image_kernel(self->state, call, self->image, self->symbol_text, &found) < 0)
        return NULL;
    *slot = found; /* with the GIL, and every thread would write the same */
    return slot;
}

int gk_kernel_for(gk_kernel_object *self, gk_call *call, gk_launch *launch) {
    launch->kernel = gk_kernel_here(self, call);
    return launch->kernel ? gk_check_launch(call, launch) : -1;
}

static int fill(gk_kernel_object *self, PyObject *positional) {
    gk_call call;
    PyObject *image = PyTuple_GetItem(positional, 0), *symbol = PyTuple_GetItem(positional, 1),
             *name = PyTuple_GetItem(positional, 2), *texts = PyTuple_GetItem(positional, 3);
    if (Py_TYPE(image) != self->state->image_type || !PyUnicode_Check(symbol) ||
        !PyUnicode_Check(name) || !PyTuple_Check(texts) || PyTuple_Size(texts) > GK_MOST_PARAMETERS)
        return bad_parameters();
    self->image = Py_NewRef(image);
    self->symbol = Py_NewRef(symbol);
    self->name = Py_NewRef(name);
    self->texts = Py_NewRef(texts);
    self->symbol_text = PyUnicode_AsUTF8AndSize(symbol, NULL);
    self->name_text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!self->symbol_text || !self->name_text || read_parameters(self) < 0)
        return -1;
    return gk_begin(self->state, &call, self->name_text) == 0 && gk_kernel_here(self, &call) ? 0
                                                                                             : -1;
}

static gk_state *state_of(PyTypeObject *type) {
    /* A subclass in Python has no module state of its own: its first base in C does. */
    while (!PyType_GetModule(type)) {
        PyErr_Clear();
        type = PyType_GetSlot(type, Py_tp_base);
    }
    return PyType_GetModuleState(type);
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *positional, PyObject *named) {
    if (PyTuple_Size(positional) != 4 || (named && PyDict_Size(named) > 0)) {
        PyErr_SetString(PyExc_TypeError, "Kernel: takes an Image, a symbol, a name and parameters; "
                                         "gpukern.compile makes kernels");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    gk_kernel_object *self = (gk_kernel_object *)allocate(type, 0);
    if (!self)
        return NULL;
    self->state = state_of(type);
    self->module = Py_NewRef(self->state->module);
    if (fill(self, positional) == 0)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void kernel_deallocate(PyObject *object) {
    gk_kernel_object *self = (gk_kernel_object *)object;
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
    gk_kernel_object *self = (gk_kernel_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->module);
    Py_VISIT(self->image);
    return 0;
}

/* what is known of it -------------------------------------------------------------------------- */

static PyObject *kernel_facts(PyObject *object, PyObject *unused) {
    gk_kernel_object *self = (gk_kernel_object *)object;
    gk_call call;
    (void)unused;
    if (gk_begin(self->state, &call, self->name_text) < 0)
        return NULL;
    const gk_kernel *kernel = gk_kernel_here(self, &call);
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
    gk_kernel_object *self = (gk_kernel_object *)object;
    gk_call call;
    gk_launch launch = {.grid = {1, 1, 1}};
    int blocks = 0;
    PyObject *values[2];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0 ||
        gk_begin(self->state, &call, self->name_text) < 0 ||
        gk_take_sides(&call, "block", values[0], launch.block) < 0 ||
        gk_take_shared(&call, values[1], &launch.shared_bytes) < 0 ||
        gk_kernel_for(self, &call, &launch) < 0)
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
    gk_kernel_object *self = (gk_kernel_object *)object;
    gk_call call;
    gk_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    int threads = 0;
    PyObject *value;
    if (gk_parse(&signature, arguments, count, keywords, &value) < 0 ||
        gk_begin(self->state, &call, self->name_text) < 0 ||
        gk_take_shared(&call, value, &launch.shared_bytes) < 0 ||
        gk_kernel_for(self, &call, &launch) < 0)
        return NULL;
    if (gk_call_blame(&call,
                      call.backend->kernel_suggest(call.backend, launch.kernel, launch.shared_bytes,
                                                   &threads, &call.error)) != GK_OK)
        return gk_raise(self->state, &call.error);
    return PyLong_FromLong(threads);
}

static PyMethodDef methods[] = {
    {"examine", (PyCFunction)(void (*)(void))gk_kernel_examine, METH_VARARGS | METH_KEYWORDS,
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
    {"map", GK_FAST(gk_kernel_map),
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
    {"name", T_OBJECT_EX, offsetof(gk_kernel_object, name), READONLY,
     "The kernel as it was asked for, its template arguments among it."},
    {"symbol", T_OBJECT_EX, offsetof(gk_kernel_object, symbol), READONLY,
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
    {Py_tp_call, gk_kernel_call},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec gk_kernel_spec = {
    .name = "gpukern._core.Kernel",
    .basicsize = sizeof(gk_kernel_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
