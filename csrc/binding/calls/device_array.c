#include "binding/calls/device_array.h"

#include <structmember.h>
#include <stddef.h>

#include "binding/arrays/cuda_interface.h"
#include "binding/arrays/device_object.h"
#include "binding/arrays/indexing.h"
#include "binding/arrays/operands.h"
#include "binding/calls/device_convert.h"
#include "binding/calls/device_dlpack.h"
#include "binding/calls/device_repr.h"
#include "binding/calls/invoke.h"
#include "binding/values.h"

/* attributes ----------------------------------------------------------------------------------- */

static PyObject *get_shape(PyObject *self, void *closure) {
    (void)closure;
    return gk_shape_tuple(&((gk_device_array *)self)->array);
}

static PyObject *get_ndim(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromLong(((gk_device_array *)self)->array.ndim);
}

static PyObject *get_size(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromSize_t(gk_count(&((gk_device_array *)self)->array));
}

static PyObject *get_nbytes(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromSize_t(gk_bytes(&((gk_device_array *)self)->array));
}

static PyObject *get_itemsize(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromSize_t(gk_dtype_size(((gk_device_array *)self)->array.dtype));
}

static PyObject *get_dtype(PyObject *self, void *closure) {
    (void)closure;
    gk_device_array *array = (gk_device_array *)self;
    return gk_dtype_object(array->state, array->array.dtype);
}

static PyObject *get_interface(PyObject *self, void *closure) {
    (void)closure;
    gk_device_array *array = (gk_device_array *)self;
    return gk_cuda_interface(&array->array, array->stream);
}

static PyObject *get_transposed(PyObject *self, void *closure) {
    (void)closure;
    const gk_array *array = &((gk_device_array *)self)->array;
    gk_array view;
    gk_copy_view(&view, array);
    for (int i = 0; i < array->ndim; i++) {
        view.shape[i] = array->shape[array->ndim - 1 - i];
        view.strides[i] = array->strides[array->ndim - 1 - i];
    }
    return gk_device_array_view((gk_device_array *)self, &view);
}

static PyObject *subscript(PyObject *self, PyObject *key) {
    gk_array view;
    if (gk_index_view(&((gk_device_array *)self)->array, key, &view) < 0)
        return NULL;
    return gk_device_array_view((gk_device_array *)self, &view);
}

static PyObject *reshape(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords) {
    gk_device_array *source = (gk_device_array *)self;
    gk_array shaped;
    if (keywords && PyTuple_Size(keywords) > 0) {
        PyErr_Format(PyExc_TypeError,
                     "reshape: has no argument %R; it is called as reshape(*shape)",
                     PyTuple_GetItem(keywords, 0));
        return NULL;
    }
    if (gk_reshape_shape(&source->array, arguments, count, &shaped) < 0)
        return NULL;
    gk_make_contiguous(&shaped);
    if (gk_is_contiguous(&source->array))
        return gk_device_array_view(source, &shaped);
    PyObject *copy = gk_device_array_copy(source->state, self, NULL);
    if (copy) {
        shaped.data = ((gk_device_array *)copy)->array.data;
        gk_copy_view(&((gk_device_array *)copy)->array, &shaped);
    }
    return copy;
}

static Py_ssize_t length(PyObject *self) {
    const gk_array *array = &((gk_device_array *)self)->array;
    if (array->ndim > 0)
        return (Py_ssize_t)array->shape[0];
    PyErr_SetString(PyExc_TypeError, "len: a 0-d DeviceArray has no length");
    return -1;
}

static int truth(PyObject *self) {
    gk_device_array *array = (gk_device_array *)self;
    if (gk_count(&array->array) != 1) {
        PyErr_Format(PyExc_ValueError,
                     "bool: a DeviceArray of %zu elements has no one truth value; copy it with "
                     ".to_host() and use .any() or .all()",
                     gk_count(&array->array));
        return -1;
    }
    PyObject *host = gk_device_array_to_host(array, NULL);
    int is_true = host ? PyObject_IsTrue(host) : -1;
    Py_XDECREF(host);
    return is_true;
}

/* operators ------------------------------------------------------------------------------------ */

static PyObject *operate(const gk_operation *operation, PyObject *left, PyObject *right) {
    static const gk_options defaults = {0};
    /* The type cannot be subclassed, so the side that is ours is ours exactly. */
    bool ours = PyType_GetSlot(Py_TYPE(left), Py_tp_dealloc) == (void *)gk_device_array_deallocate;
    gk_state *state = ((gk_device_array *)(ours ? left : right))->state;
    if (!gk_is_operand(state, left) || !gk_is_operand(state, right))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *operands[] = {left, right};
    return gk_invoke(state, operation, operands, &defaults);
}

#define GK_BINARY(name)                                                                            \
    static PyObject *operator_##name(PyObject *left, PyObject *right) {                            \
        return operate(gk_op_##name, left, right);                                                 \
    }
#define GK_UNARY(name)                                                                             \
    static PyObject *operator_##name(PyObject *self) {                                             \
        static const gk_options defaults = {0};                                                    \
        return gk_invoke(((gk_device_array *)self)->state, gk_op_##name, &self, &defaults);        \
    }
GK_BINARY(add)
GK_BINARY(subtract)
GK_BINARY(multiply)
GK_BINARY(divide)
GK_BINARY(matmul)
GK_UNARY(negative)
GK_UNARY(abs)

/* the type ------------------------------------------------------------------------------------- */

static PyObject *refuse_new(PyTypeObject *type, PyObject *positional, PyObject *named) {
    (void)type, (void)positional, (void)named;
    PyErr_SetString(PyExc_TypeError, "DeviceArray: is not made by a call of its type; use "
                                     "gpukern.to_device(a) or gpukern.empty(shape, dtype)");
    return NULL;
}

static PyMethodDef methods[] = {
    {"to_host", (PyCFunction)(void (*)(void))gk_method_to_host, METH_FASTCALL | METH_KEYWORDS,
     "to_host($self, out=None)\n--\n\n"
     "Copy the values into a NumPy array.\n\n"
     "out: a NumPy array of the same shape and dtype to copy into; a new one if None.\n"
     "Returns that array, once the copy is complete.\n"
     "Raises TypeError or ValueError for an out that does not fit, MemoryError, CudaError."},
    {"reshape", (PyCFunction)(void (*)(void))reshape, METH_FASTCALL | METH_KEYWORDS,
     "reshape($self, /, *shape)\n--\n\n"
     "The elements in C order in another shape.\n\n"
     "shape: lengths, or one tuple of them; one may be -1, which stands for what is left.\n"
     "Returns a view of the same memory where the array is contiguous, else a copy.\n"
     "Raises ValueError for a shape of another number of elements."},
    {"__array__", (PyCFunction)(void (*)(void))gk_method_array, METH_FASTCALL | METH_KEYWORDS,
     "__array__($self, dtype=None, copy=None)\n--\n\n"
     "The values as a NumPy array: what numpy.asarray calls. Always a copy from the device, so\n"
     "copy=False raises ValueError."},
    {"__dlpack__", (PyCFunction)(void (*)(void))gk_method_dlpack, METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "The memory for torch.from_dlpack and its like, with no copy: a capsule of DLPack 1.0, or\n"
     "of the protocol before it where max_version is below.\n\n"
     "stream: the consumer's, which is made to wait for the array; None or 1: the legacy default\n"
     "    stream; 2: the thread's own; -1: no waiting. What the consumer does on another stream\n"
     "    afterwards is its own to order.\n"
     "copy: True lends a copy.\n"
     "Raises BufferError for a dl_device that the array is not on, and for a read-only array\n"
     "without a max_version."},
    {"__dlpack_device__", gk_method_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\n"
     "(kind, number): kind 2 is CUDA; the simulator's memory is the host's, kind 1."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"shape", get_shape, NULL, "Lengths of the axes, a tuple.", NULL},
    {"ndim", get_ndim, NULL, "Number of axes.", NULL},
    {"size", get_size, NULL, "Number of elements.", NULL},
    {"nbytes", get_nbytes, NULL, "Size of the values in bytes.", NULL},
    {"itemsize", get_itemsize, NULL, "Size of one element in bytes.", NULL},
    {"dtype", get_dtype, NULL, "The numpy.dtype of the elements.", NULL},
    {"T", get_transposed, NULL, "The array with its axes reversed, a view of the same memory.",
     NULL},
    {"__cuda_array_interface__", get_interface, NULL,
     "The memory as PyTorch, CuPy and Numba take it, with no copy (version 3).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(gk_device_array, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "An array in device memory. Made by gpukern.to_device and gpukern.empty, and by\n"
     "operations on device arrays. Indexing with integers, slices, Ellipsis and None, and .T,\n"
     "give views of the same memory. NumPy reads it through __array__ (a copy), other GPU\n"
     "libraries through __cuda_array_interface__ (no copy)."},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, gk_device_array_deallocate},
    {Py_tp_traverse, gk_device_array_traverse},
    {Py_tp_repr, gk_device_array_repr},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {Py_nb_bool, truth},
    {Py_mp_length, length},
    {Py_mp_subscript, subscript},
    {Py_nb_add, operator_add},
    {Py_nb_subtract, operator_subtract},
    {Py_nb_multiply, operator_multiply},
    {Py_nb_true_divide, operator_divide},
    {Py_nb_negative, operator_negative},
    {Py_nb_absolute, operator_abs},
    {Py_nb_matrix_multiply, operator_matmul},
    {0, NULL},
};

PyType_Spec gk_device_array_spec = {
    .name = "gpukern.DeviceArray",
    .basicsize = sizeof(gk_device_array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
