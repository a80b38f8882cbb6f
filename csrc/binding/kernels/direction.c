#include "binding/kernels/direction.h"

#include <stddef.h>
#include <structmember.h>

#include "binding/values.h"

typedef struct direction_object {
    PyObject ob_base;
    PyObject *array; /* owned */
} direction_object;

gk_directed gk_direction_of(const gk_state *state, PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    bool is_in = type == state->in_type, is_out = type == state->out_type,
         is_both = type == state->inout_type;
    if (!is_in && !is_out && !is_both)
        return (gk_directed){.object = object};
    return (gk_directed){.object = ((direction_object *)object)->array,
                         .is_said = true,
                         .is_in = is_in || is_both,
                         .is_out = is_out || is_both};
}

static PyObject *make(PyTypeObject *type, const char *name, PyObject *positional, PyObject *named) {
    static const char *const names[] = {"array", NULL};
    const gk_signature signature = {name, names, 1, 1};
    PyObject *array;
    if (gk_parse_new(&signature, positional, named, &array) < 0)
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    direction_object *self = (direction_object *)allocate(type, 0);
    if (self)
        self->array = Py_NewRef(array);
    return (PyObject *)self;
}

static void direction_deallocate(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_XDECREF(((direction_object *)object)->array);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* Nothing is cleared, as in a tuple: the array is there first, and others close a cycle. */
static int direction_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((direction_object *)object)->array);
    return 0;
}

static PyMemberDef members[] = {
    {"array", T_OBJECT_EX, offsetof(direction_object, array), READONLY, "The array."},
    {NULL, 0, 0, 0, NULL},
};

#define GK_DIRECTION(lower, title, text)                                                           \
    static PyObject *lower##_new(PyTypeObject *type, PyObject *positional, PyObject *named) {      \
        return make(type, #title, positional, named);                                              \
    }                                                                                              \
    static PyType_Slot lower##_slots[] = {                                                         \
        {Py_tp_doc, #title "(array, /)\n--\n\n" text},                                             \
        {Py_tp_new, lower##_new},                                                                  \
        {Py_tp_dealloc, direction_deallocate},                                                     \
        {Py_tp_traverse, direction_traverse},                                                      \
        {Py_tp_members, members},                                                                  \
        {0, NULL},                                                                                 \
    };                                                                                             \
    PyType_Spec gk_##lower##_spec = {                                                              \
        .name = "gpukern." #title,                                                                 \
        .basicsize = sizeof(direction_object),                                                     \
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,                                          \
        .slots = lower##_slots,                                                                    \
    };

GK_DIRECTION(in, In,
             "An argument of a compiled kernel that is read and not written: a NumPy array goes "
             "to the\ndevice and is not copied back.")
GK_DIRECTION(out, Out,
             "An argument of a compiled kernel that is written and not read: a NumPy array does "
             "not go to\nthe device, and all of it is copied back. What the kernel does not write "
             "is undefined.")
GK_DIRECTION(inout, InOut,
             "An argument of a compiled kernel that is read and written: a NumPy array goes to "
             "the device\nand back.")
