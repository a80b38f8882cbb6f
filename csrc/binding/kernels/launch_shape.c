#include "binding/kernels/launch_shape.h"

#include <stdio.h>

#include "binding/values.h"

static int refuse_sides(const gk_call *call, const char *name, PyObject *object) {
    if (Py_IsNone(object))
        PyErr_Format(PyExc_TypeError,
                     "%s: %s is None; kernel.over(n) launches one thread for each of n elements",
                     call->operation, name);
    else
        PyErr_Format(PyExc_TypeError,
                     "%s: %s has to be a whole number, or one to three of them (x, y, z), not %R; "
                     "a kernel is called as kernel(grid, block, *arguments)",
                     call->operation, name, object);
    return -1;
}

static int take_side(const gk_call *call, const char *name, PyObject *object, PyObject *whole,
                     unsigned *side) {
    if (!PyIndex_Check(object) || PyBool_Check(object))
        return refuse_sides(call, name, whole);
    PyObject *number = PyNumber_Index(object);
    if (!number) {
        PyErr_Clear();
        return refuse_sides(call, name, whole);
    }
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (value == -1 && PyErr_Occurred())
        return -1;
    if (overflow || value < 1 || value > UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s: %s is %R, and every side is from 1 to %u",
                     call->operation, name, whole, UINT32_MAX);
        return -1;
    }
    *side = (unsigned)value;
    return 0;
}

int gk_take_sides(const gk_call *call, const char *name, PyObject *object, unsigned *sides) {
    for (int i = 0; i < 3; i++)
        sides[i] = 1;
    bool tuple = PyTuple_Check(object), list = PyList_Check(object);
    if (!tuple && !list)
        return take_side(call, name, object, object, &sides[0]);
    Py_ssize_t count = tuple ? PyTuple_Size(object) : PyList_Size(object);
    if (count < 1 || count > 3)
        return refuse_sides(call, name, object);
    for (Py_ssize_t i = 0; i < count; i++) {
        /* A list may be changed by what an index of its own does. */
        PyObject *item = tuple ? PyTuple_GetItem(object, i) : PyList_GetItem(object, i);
        if (!item)
            return -1;
        Py_INCREF(item);
        int failed = take_side(call, name, item, object, &sides[i]);
        Py_DECREF(item);
        if (failed)
            return -1;
    }
    return 0;
}

int gk_take_shared(const gk_call *call, PyObject *object, size_t *bytes) {
    *bytes = 0;
    if (!object)
        return 0;
    PyObject *number = gk_whole_number(object);
    if (number)
        *bytes = PyLong_AsSize_t(number);
    bool failed = !number || PyErr_Occurred();
    Py_XDECREF(number);
    if (!failed)
        return 0;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "%s: shared is a number of bytes of dynamic shared memory, whole and from 0, not "
                 "%R",
                 call->operation, object);
    return -1;
}

typedef struct sides_text {
    char text[48];
} sides_text;

static sides_text show(const unsigned *sides) {
    sides_text it;
    (void)snprintf(it.text, sizeof it.text, "(%u, %u, %u)", sides[0], sides[1], sides[2]);
    return it;
}

static int check_sides(const gk_call *call, const char *name, const unsigned *sides,
                       const int *most) {
    for (int i = 0; i < 3; i++) {
        if (sides[i] <= (unsigned)most[i])
            continue;
        PyErr_Format(PyExc_ValueError,
                     "%s: %s %s is too long along %c: the device takes %d, %d and %d",
                     call->operation, name, show(sides).text, "xyz"[i], most[0], most[1], most[2]);
        return -1;
    }
    return 0;
}

static int check_threads(const gk_call *call, const gk_launch *launch) {
    const gk_kernel *kernel = launch->kernel;
    unsigned long long threads =
        (unsigned long long)launch->block[0] * launch->block[1] * launch->block[2];
    if (threads <= (unsigned long long)kernel->most_threads)
        return 0;
    if (threads > (unsigned long long)kernel->most_block_threads)
        PyErr_Format(PyExc_ValueError,
                     "%s: block %s has %llu threads, and the device takes %d a block; take more "
                     "blocks of fewer threads",
                     call->operation, show(launch->block).text, threads,
                     kernel->most_block_threads);
    else
        PyErr_Format(PyExc_ValueError,
                     "%s: block %s has %llu threads, and this kernel takes %d, by its "
                     "__launch_bounds__ or its %d registers a thread; kernel.suggest_block() tells "
                     "a good number",
                     call->operation, show(launch->block).text, threads, kernel->most_threads,
                     kernel->registers);
    return -1;
}

int gk_check_launch(const gk_call *call, const gk_launch *launch) {
    const gk_kernel *kernel = launch->kernel;
    /* The threads first: more than 1024 along x are too many whichever way they lie. */
    if (check_threads(call, launch) < 0 ||
        check_sides(call, "block", launch->block, kernel->most_block) < 0 ||
        check_sides(call, "grid", launch->grid, kernel->most_grid) < 0)
        return -1;
    if (launch->shared_bytes <= (size_t)(kernel->most_dynamic > 0 ? kernel->most_dynamic : 0))
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s: shared is %zu bytes, and a block of this kernel may have %d, beside the %d "
                 "that it declares itself",
                 call->operation, launch->shared_bytes, kernel->most_dynamic, kernel->shared_bytes);
    return -1;
}
