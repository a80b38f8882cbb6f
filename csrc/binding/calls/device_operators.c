#include "binding/calls/device_operators.h"

#include "binding/arrays/device_object.h"
#include "binding/arrays/operands.h"
#include "binding/calls/invoke.h"

static gk_state *state_of(PyObject *self) {
    return ((gk_device_array *)self)->state;
}

static PyObject *operate(const gk_operation *operation, PyObject *left, PyObject *right) {
    static const gk_options defaults = {0};
    /* The type cannot be subclassed, so the side that is ours is ours exactly. */
    bool ours = PyType_GetSlot(Py_TYPE(left), Py_tp_dealloc) == (void *)gk_device_array_deallocate;
    gk_state *state = state_of(ours ? left : right);
    int yields = gk_yields(state, ours ? right : left);
    if (yields < 0)
        return NULL;
    if (yields)
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *operands[] = {left, right};
    return gk_invoke(state, operation, operands, &defaults);
}

/* Into the memory of `self`, which keeps its dtype and shape or says why it cannot. */
static PyObject *operate_in_place(const gk_operation *operation, PyObject *self, PyObject *other) {
    const gk_options into_self = {.out = self, .out_name = "the array on the left"};
    int yields = gk_yields(state_of(self), other);
    if (yields < 0)
        return NULL;
    if (yields)
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *operands[] = {self, other};
    return gk_invoke(state_of(self), operation, operands, &into_self);
}

#define GK_UNARY(slot, operation)                                                                  \
    PyObject *gk_operator_##slot(PyObject *self) {                                                 \
        static const gk_options defaults = {0};                                                    \
        return gk_invoke(state_of(self), gk_op_##operation, &self, &defaults);                     \
    }
#define GK_BINARY(slot, operation)                                                                 \
    PyObject *gk_operator_##slot(PyObject *left, PyObject *right) {                                \
        return operate(gk_op_##operation, left, right);                                            \
    }                                                                                              \
    PyObject *gk_operator_inplace_##slot(PyObject *self, PyObject *other) {                        \
        return operate_in_place(gk_op_##operation, self, other);                                   \
    }
GK_UNARY_SLOTS(GK_UNARY)
GK_BINARY_SLOTS(GK_BINARY)

/* comparisons ---------------------------------------------------------------------------------- */

/* Of what is no operand the other side may know more. Where it does not, Python would compare by
   identity: a False for every list of the same values. */
static PyObject *ask_other(PyObject *self, PyObject *other, int how, const char *operation) {
    richcmpfunc its = (richcmpfunc)PyType_GetSlot(Py_TYPE(other), Py_tp_richcompare);
    PyObject *answer = its ? its(other, self, how) : Py_NewRef(Py_NotImplemented);
    if (answer != Py_NotImplemented)
        return answer;
    Py_DECREF(answer);
    PyErr_Format(PyExc_TypeError,
                 "%s: a DeviceArray is compared with a NumPy array, a DeviceArray, an object with "
                 "__cuda_array_interface__ or __dlpack__ or a number, not %S; for identity "
                 "use `is`",
                 operation, (PyObject *)Py_TYPE(other));
    return NULL;
}

PyObject *gk_operator_compare(PyObject *self, PyObject *other, int how) {
    const gk_operation *const operations[] = {
        [Py_LT] = gk_op_less,      [Py_LE] = gk_op_less_equal, [Py_EQ] = gk_op_equal,
        [Py_NE] = gk_op_not_equal, [Py_GT] = gk_op_greater,    [Py_GE] = gk_op_greater_equal,
    };
    if (gk_is_operand(state_of(self), other) || (how != Py_EQ && how != Py_NE))
        return operate(operations[how], self, other);
    return ask_other(self, other, how, operations[how]->name);
}

int gk_operator_contains(PyObject *self, PyObject *other) {
    static const gk_options defaults = {0};
    PyObject *equal = gk_operator_compare(self, other, Py_EQ);
    if (!equal)
        return -1;
    bool ours = gk_is_device_array(state_of(self), equal);
    PyObject *any = NULL;
    int found = 0;
    if (!ours)
        found = PyObject_IsTrue(equal);
    else if (gk_count(&((gk_device_array *)equal)->array) > 0)
        any = gk_invoke(state_of(self), gk_op_max, &equal, &defaults);
    if (any)
        found = PyObject_IsTrue(any);
    Py_XDECREF(any);
    Py_DECREF(equal);
    return PyErr_Occurred() ? -1 : found;
}
