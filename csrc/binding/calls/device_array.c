#include "binding/calls/device_array.h"

#include <structmember.h>
#include <stddef.h>

#include "binding/arrays/cuda_interface.h"
#include "binding/arrays/device_object.h"
#include "binding/arrays/indexing.h"
#include "binding/arrays/dtypes.h"
#include "binding/calls/device_assign.h"
#include "binding/calls/device_convert.h"
#include "binding/calls/device_dlpack.h"
#include "binding/calls/device_methods.h"
#include "binding/calls/device_numbers.h"
#include "binding/calls/device_operators.h"
#include "binding/calls/device_repr.h"
#include "binding/values.h"

/* attributes ----------------------------------------------------------------------------------- */

static PyObject *get_shape(PyObject *self, void *closure) {
    (void)closure;
    return gk_shape_tuple(&((gk_device_array *)self)->array);
}

static PyObject *get_strides(PyObject *self, void *closure) {
    (void)closure;
    const gk_array *array = &((gk_device_array *)self)->array;
    return gk_lengths_tuple(array->strides, array->ndim);
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

static PyObject *get_device(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromLong(gk_device_number((gk_device_array *)self));
}

static PyObject *get_interface(PyObject *self, void *closure) {
    (void)closure;
    gk_device_array *array = (gk_device_array *)self;
    return gk_cuda_interface(&array->array, array->stream);
}

static PyObject *get_transposed(PyObject *self, void *closure) {
    (void)closure;
    gk_array view;
    gk_reversed_view(&((gk_device_array *)self)->array, &view);
    return gk_device_array_view((gk_device_array *)self, &view);
}

static PyObject *subscript(PyObject *self, PyObject *key) {
    gk_array view;
    if (gk_index_view(&((gk_device_array *)self)->array, key, &view) < 0)
        return NULL;
    return gk_device_array_view((gk_device_array *)self, &view);
}

/* Element i along the first axis, for iteration. */
static PyObject *item(PyObject *self, Py_ssize_t i) {
    PyObject *index = PyLong_FromSsize_t(i);
    PyObject *part = index ? subscript(self, index) : NULL;
    Py_XDECREF(index);
    return part;
}

static PyObject *iterate(PyObject *self) {
    if (((gk_device_array *)self)->array.ndim > 0)
        return PySeqIter_New(self);
    PyErr_SetString(PyExc_TypeError,
                    "iter: a 0-d DeviceArray has no axis to go along; use .item()");
    return NULL;
}

/* Of a function that takes any number of arguments, and none by name. */
static int refuse_names(const char *function, const char *usage, PyObject *keywords) {
    if (!keywords || PyTuple_Size(keywords) == 0)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s: has no argument %R; it is called as %s", function,
                 PyTuple_GetItem(keywords, 0), usage);
    return -1;
}

static PyObject *reshaped(const char *operation, PyObject *self, PyObject *const *arguments,
                          Py_ssize_t count) {
    gk_device_array *source = (gk_device_array *)self;
    gk_array shaped;
    if (gk_reshape_shape(&source->array, arguments, count, &shaped) < 0)
        return NULL;
    gk_make_contiguous(&shaped);
    if (gk_is_contiguous(&source->array))
        return gk_device_array_view(source, &shaped);
    PyObject *copy = gk_device_array_copy(operation, self, NULL);
    if (copy) {
        shaped.data = ((gk_device_array *)copy)->array.data;
        shaped.readonly = false;
        gk_copy_view(&((gk_device_array *)copy)->array, &shaped);
    }
    return copy;
}

static PyObject *reshape(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords) {
    if (refuse_names("reshape", "reshape(*shape)", keywords) < 0)
        return NULL;
    return reshaped("reshape", self, arguments, count);
}

static PyObject *transpose(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                           PyObject *keywords) {
    gk_array view;
    if (refuse_names("transpose", "transpose(*axes)", keywords) < 0 ||
        gk_transposed_view(&((gk_device_array *)self)->array, arguments, count, &view) < 0)
        return NULL;
    return gk_device_array_view((gk_device_array *)self, &view);
}

static PyObject *flat_view(const char *operation, PyObject *self) {
    PyObject *all = PyLong_FromLong(-1);
    PyObject *flat = all ? reshaped(operation, self, &all, 1) : NULL;
    Py_XDECREF(all);
    return flat;
}

static PyObject *ravel(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                       PyObject *keywords) {
    return gk_parse_none("ravel", arguments, count, keywords) < 0 ? NULL : flat_view("ravel", self);
}

static PyObject *flatten(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords) {
    if (gk_parse_none("flatten", arguments, count, keywords) < 0)
        return NULL;
    PyObject *flat = flat_view("flatten", self);
    /* A view is the one that has an owner. */
    if (!flat || !((gk_device_array *)flat)->owner)
        return flat;
    PyObject *copy = gk_device_array_copy("flatten", flat, NULL);
    Py_DECREF(flat);
    return copy;
}

static Py_ssize_t length(PyObject *self) {
    const gk_array *array = &((gk_device_array *)self)->array;
    if (array->ndim > 0)
        return (Py_ssize_t)array->shape[0];
    PyErr_SetString(PyExc_TypeError, "len: a 0-d DeviceArray has no length");
    return -1;
}

/* the type ------------------------------------------------------------------------------------- */

static PyObject *refuse_new(PyTypeObject *type, PyObject *positional, PyObject *named) {
    (void)type, (void)positional, (void)named;
    PyErr_SetString(PyExc_TypeError, "DeviceArray: is not made by a call of its type; use "
                                     "gpukern.to_device(a) or gpukern.empty(shape, dtype)");
    return NULL;
}

static PyMethodDef methods[] = {
    {"to_host", GK_FAST(gk_method_to_host),
     "to_host($self, out=None)\n--\n\n"
     "Copy the values into a NumPy array.\n\n"
     "out: a NumPy array of the same shape and dtype to copy into; a new one if None.\n"
     "Returns that array, once the copy is complete.\n"
     "Raises TypeError or ValueError for an out that does not fit, MemoryError, CudaError."},
    {"reshape", GK_FAST(reshape),
     "reshape($self, /, *shape)\n--\n\n"
     "The elements in C order in another shape.\n\n"
     "shape: lengths, or one tuple of them; one may be -1, which stands for what is left.\n"
     "Returns a view of the same memory where the array is contiguous, else a copy.\n"
     "Raises ValueError for a shape of another number of elements."},
    {"item", GK_FAST(gk_number_item),
     "item($self)\n--\n\n"
     "The only element as a Python number. It waits for the array's own stream alone.\n"
     "Raises TypeError where there is not one element."},
    {"tolist", GK_FAST(gk_method_tolist),
     "tolist($self)\n--\n\n"
     "The elements as Python numbers in nested lists; of no axes the number itself."},
    {"__bytes__", gk_method_bytes, METH_NOARGS,
     "__bytes__($self)\n--\n\nWhat bytes() makes of NumPy's array: the elements' in C order."},
    {"__complex__", gk_number_complex, METH_NOARGS,
     "__complex__($self)\n--\n\nThe only element, for complex()."},
    {"__round__", (PyCFunction)(void (*)(void))gk_number_round, METH_FASTCALL,
     "__round__($self, ndigits=None, /)\n--\n\nThe only element, rounded as round() rounds it."},
    {"__format__", gk_number_format, METH_O,
     "__format__($self, spec, /)\n--\n\n"
     "The only element as the format asks for; without a format any array as str() shows it."},
    {"transpose", GK_FAST(transpose),
     "transpose($self, /, *axes)\n--\n\n"
     "A view of the same memory with its axes in another order, as .T; gpukern.transpose makes an\n"
     "array in memory of its own.\n\n"
     "axes: each axis once, one by one or as a tuple; none of them: the reverse order.\n"
     "Raises ValueError for another number of axes or one that is named twice."},
    {"astype", GK_FAST(gk_method_astype),
     "astype($self, /, dtype, copy=True, *, stream=None)\n--\n\n"
     "The elements in another dtype, converted on the device: floats to integers towards 0,\n"
     "integers to fewer bits by leaving off the upper ones, to bool whether they are not 0, "
     "floats\n"
     "to narrower ones rounded to nearest. What NaN or a float that does not fit becomes as an\n"
     "integer is undefined, as in C, and differs between devices.\n\n"
     "dtype: what numpy.dtype takes, or 'bfloat16'. copy: False gives the array itself where it\n"
     "has that dtype already. stream: to work on, as for every operation.\n"
     "Returns a contiguous array of the same shape. Raises TypeError for other dtypes,\n"
     "MemoryError, CudaError."},
    {"copy", GK_FAST(gk_method_copy),
     "copy($self, /, *, stream=None)\n--\n\n"
     "The same elements in contiguous memory of their own: gpukern.to_device of the array."},
    {"__copy__", gk_method_copied, METH_NOARGS, "__copy__($self)\n--\n\nWhat copy() gives."},
    {"__deepcopy__", gk_method_copied, METH_O,
     "__deepcopy__($self, memo, /)\n--\n\nWhat copy() gives."},
    {"fill", GK_FAST(gk_method_fill),
     "fill($self, value, /, *, stream=None)\n--\n\n"
     "Write a value into every element, as array[...] = value does.\n\n"
     "value: a number, or an array of a shape that broadcasts to this one's and of a dtype of\n"
     "    the same kind or of one that this one holds: NumPy's \"same_kind\".\n"
     "Raises TypeError for a value that is not taken, ValueError for shapes that do not fit and\n"
     "for a read-only array, MemoryError, CudaError; then nothing has been written."},
    {"ravel", GK_FAST(ravel),
     "ravel($self, /)\n--\n\n"
     "The elements in C order along one axis: a view where the array is contiguous, else a copy."},
    {"flatten", GK_FAST(flatten),
     "flatten($self, /)\n--\n\n"
     "The elements in C order along one axis, in memory of their own."},
#define GK_METHOD(name) {#name, GK_FAST(gk_method_##name), GK_METHOD_DOC_##name},
    GK_OPERATION_METHODS(GK_METHOD)
#undef GK_METHOD
        {"__array__", GK_FAST(gk_method_array),
         "__array__($self, dtype=None, copy=None)\n--\n\n"
         "The values as a NumPy array: what numpy.asarray calls. Always a copy from the device, "
         "so\n"
         "copy=False raises ValueError."},
    {"__array_ufunc__", (PyCFunction)(void (*)(void))gk_method_array_ufunc,
     METH_VARARGS | METH_KEYWORDS,
     "__array_ufunc__($self, ufunc, method, /, *inputs, **named)\n--\n\n"
     "What NumPy's ufuncs and the operators of its arrays do with a DeviceArray: the operation of\n"
     "gpukern, on the device, or a TypeError where there is none."},
    {"__array_function__", (PyCFunction)(void (*)(void))gk_method_array_function,
     METH_VARARGS | METH_KEYWORDS,
     "__array_function__($self, function, types, args, named, /)\n--\n\n"
     "The same for NumPy's other functions: numpy.sum of a DeviceArray is gpukern.sum."},
    {"__dlpack__", GK_FAST(gk_method_dlpack),
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "The memory for torch.from_dlpack and its like, with no copy: a capsule of DLPack 1.0, or\n"
     "of the protocol before it where max_version is below.\n\n"
     "stream: the consumer's, which is made to wait for the array; None or 1: the legacy default\n"
     "    stream; 2: the thread's own; -1: no waiting. What the consumer does on another stream\n"
     "    afterwards is its own to order.\n"
     "dl_device: where the array is, or (1, 0), the host, for a copy there.\n"
     "copy: True lends a copy.\n"
     "Raises BufferError for another dl_device, for copy=False where it takes one, and for a\n"
     "read-only array without a max_version."},
    {"__dlpack_device__", gk_method_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\n"
     "(kind, number): kind 2 is CUDA; the simulator's memory is the host's, kind 1."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"shape", get_shape, NULL, "Lengths of the axes, a tuple.", NULL},
    {"strides", get_strides, NULL,
     "Bytes from one element to the next along each axis, a tuple: a view's are its array's.",
     NULL},
    {"ndim", get_ndim, NULL, "Number of axes.", NULL},
    {"size", get_size, NULL, "Number of elements.", NULL},
    {"nbytes", get_nbytes, NULL, "Size of the values in bytes.", NULL},
    {"itemsize", get_itemsize, NULL, "Size of one element in bytes.", NULL},
    {"dtype", get_dtype, NULL, "The numpy.dtype of the elements.", NULL},
    {"device", get_device, NULL, "The number of the device whose memory it is in, from 0.", NULL},
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
     "An array in device memory. Made by gpukern.to_device, asarray, empty, zeros and the like, "
     "by\n"
     "operations on device arrays, and of other libraries' arrays. Indexing with integers, "
     "slices,\n"
     "Ellipsis and None, and .T, give views of the same memory, and assignments to parts and\n"
     "in-place operators write it. Comparisons are element by element; one element is a number "
     "for\n"
     "float() and its like. NumPy reads an array through __array__ (a copy), other GPU libraries\n"
     "through __cuda_array_interface__ (no copy)."},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, gk_device_array_deallocate},
    {Py_tp_traverse, gk_device_array_traverse},
    {Py_tp_repr, gk_device_array_repr},
    {Py_tp_str, gk_device_array_str},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {Py_tp_richcompare, gk_operator_compare},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_iter, iterate},
    {Py_mp_length, length},
    {Py_sq_length, length}, /* for reversed() */
    {Py_mp_subscript, subscript},
    {Py_mp_ass_subscript, gk_assign_item},
    {Py_sq_item, item},
    {Py_sq_contains, gk_operator_contains},
    {Py_nb_bool, gk_number_bool},
    {Py_nb_int, gk_number_int},
    {Py_nb_float, gk_number_float},
    {Py_nb_index, gk_number_index},
#define GK_SLOT(slot, operation) {Py_nb_##slot, gk_operator_##slot},
    GK_UNARY_SLOTS(GK_SLOT)
#undef GK_SLOT
#define GK_SLOT(slot, operation)                                                                   \
    {Py_nb_##slot, gk_operator_##slot}, {Py_nb_inplace_##slot, gk_operator_inplace_##slot},
        GK_BINARY_SLOTS(GK_SLOT)
#undef GK_SLOT
            {0, NULL},
};

PyType_Spec gk_device_array_spec = {
    .name = "gpukern.DeviceArray",
    .basicsize = sizeof(gk_device_array),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
