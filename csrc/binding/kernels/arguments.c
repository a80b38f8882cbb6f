#include "binding/kernels/arguments.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/pack.h"
#include "binding/arrays/device_object.h"
#include "binding/arrays/foreign.h"
#include "binding/arrays/operands.h"
#include "binding/kernels/direction.h"

/* what a parameter takes ----------------------------------------------------------------------- */

/* "int32", or for lack of one word "an integer of 4 bytes". */
typedef struct described {
    char text[64];
} described;

static described describe(gk_made_of made_of, size_t bytes) {
    described it;
    int bits = 8 * (int)bytes;
    const char *format = "%d bytes";
    int number = (int)bytes;
    switch (made_of) {
    case GK_OF_SIGNED:
        format = "int%d", number = bits;
        break;
    case GK_OF_UNSIGNED:
        format = "uint%d", number = bits;
        break;
    case GK_OF_CHAR:
        format = "int8 or uint8";
        break;
    case GK_OF_BOOL:
        format = "bool";
        break;
    case GK_OF_FLOAT:
        format = "float%d", number = bits;
        break;
    case GK_OF_BFLOAT:
        format = "bfloat16";
        break;
    case GK_OF_POINTER:
        format = "uint64, as addresses";
        break;
    case GK_OF_BYTES:
        format = "structures of %d bytes";
        break;
    case GK_OF_ANYTHING:
    case GK_OF_UNKNOWN:
    case GK_MADE_OF_COUNT:
        break;
    }
    (void)snprintf(it.text, sizeof it.text, format, number);
    return it;
}

/* The dtype of a number or an element; the first of two. */
static gk_dtype dtype_of(gk_made_of made_of, size_t bytes) {
    for (int i = 0; i < GK_DTYPE_COUNT; i++) {
        const gk_kernel_parameter like = {.points_to = made_of, .scalar_bytes = bytes};
        if (gk_points_to(&like, (gk_dtype)i))
            return (gk_dtype)i;
    }
    return GK_uint8;
}

static bool is_number(gk_made_of made_of) {
    return made_of >= GK_OF_SIGNED && made_of <= GK_OF_CHAR;
}

static bool is_python_number(PyObject *object) {
    return PyLong_Check(object) || PyFloat_CheckExact(object) || PyComplex_CheckExact(object);
}

/* numbers -------------------------------------------------------------------------------------- */

static int refuse_range(const gk_call *call, const gk_kernel_parameter *parameter,
                        PyObject *object) {
    described type = describe(parameter->made_of, parameter->bytes);
    PyErr_Format(PyExc_TypeError, "%s: %s cannot hold %R, which is not within %s", call->operation,
                 parameter->text, object, type.text);
    return -1;
}

static int refuse_number(const gk_call *call, const gk_kernel_parameter *parameter,
                         PyObject *object) {
    described type = describe(parameter->made_of, parameter->bytes);
    PyErr_Format(PyExc_TypeError, "%s: %s takes a number, of %s, and was given %R", call->operation,
                 parameter->text, type.text, (PyObject *)Py_TYPE(object));
    return -1;
}

static bool is_unsigned(gk_made_of made_of) {
    return made_of == GK_OF_UNSIGNED || made_of == GK_OF_BOOL || made_of == GK_OF_POINTER;
}

/* Whether an integer, of which `bits` are the lowest 64, is one of the parameter's. A char holds
   what either kind of byte does, and a size alone says nothing of a sign. */
static bool holds(const gk_kernel_parameter *parameter, uint64_t bits, bool is_negative) {
    unsigned width = 8 * (unsigned)parameter->bytes;
    bool both = parameter->made_of == GK_OF_CHAR || parameter->made_of == GK_OF_UNKNOWN;
    if (parameter->made_of == GK_OF_BOOL)
        return bits <= 1;
    if (is_negative)
        return !is_unsigned(parameter->made_of) && (int64_t)bits < 0 &&
               (int64_t)bits >= INT64_MIN >> (64 - width);
    uint64_t most =
        (both || is_unsigned(parameter->made_of) ? UINT64_MAX : INT64_MAX) >> (64 - width);
    return bits <= most;
}

static int take_int(const gk_call *call, const gk_kernel_parameter *parameter, PyObject *object,
                    gk_kernel_argument *argument) {
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (value == -1 && PyErr_Occurred())
        return -1;
    argument->number = (uint64_t)value;
    if (overflow > 0) { /* it may still be below 2^64 */
        argument->number = PyLong_AsUnsignedLongLong(object);
        overflow = PyErr_Occurred() ? 1 : 0;
        PyErr_Clear();
        value = 0;
    }
    if (overflow || !holds(parameter, argument->number, value < 0))
        return refuse_range(call, parameter, object);
    return 0;
}

static int take_float(const gk_call *call, const gk_kernel_parameter *parameter, PyObject *object,
                      gk_kernel_argument *argument) {
    double value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return -1;
        PyErr_Clear();
        return refuse_range(call, parameter, object);
    }
    if (parameter->bytes == sizeof(double)) {
        memcpy(&argument->number, &value, sizeof value);
        return 0;
    }
    float narrow = (float)value;
    if (isinf(narrow) && !isinf(value))
        return refuse_range(call, parameter, object);
    memcpy(&argument->number, &narrow, sizeof narrow);
    return 0;
}

/* A number that is in memory, of a dtype of its own. */
static int take_typed(const gk_call *call, const gk_kernel_parameter *parameter, PyObject *object,
                      const gk_array *given, gk_kernel_argument *argument) {
    size_t bytes = gk_dtype_size(given->dtype);
    gk_kind kind = gk_dtype_kind(given->dtype);
    const gk_kernel_parameter like = {.points_to = parameter->made_of,
                                      .scalar_bytes = parameter->bytes};
    bool other_sign = kind == GK_SIGNED || kind == GK_UNSIGNED;
    bool integer = parameter->made_of == GK_OF_SIGNED || parameter->made_of == GK_OF_UNSIGNED;
    bool fits = parameter->made_of == GK_OF_UNKNOWN || gk_points_to(&like, given->dtype) ||
                (integer && other_sign);
    if (!fits || bytes != parameter->bytes) {
        described type = describe(parameter->made_of, parameter->bytes);
        PyErr_Format(PyExc_TypeError,
                     "%s: %s takes %s, and was given %s; convert it, or pass a number of Python's",
                     call->operation, parameter->text, type.text, gk_dtype_name(given->dtype));
        return -1;
    }
    gk_pack(&argument->number, given, 0, 1); /* it may be of the other byte order */
    uint64_t top = (uint64_t)1 << (8 * bytes - 1);
    bool is_mixed = integer && (kind == GK_SIGNED) != (parameter->made_of == GK_OF_SIGNED);
    return is_mixed && (argument->number & top) ? refuse_range(call, parameter, object) : 0;
}

/* A number of NumPy's, or of Python's in a dtype that C has no conversion to. */
static int take_converted(gk_state *state, gk_call *call, const gk_kernel_parameter *parameter,
                          PyObject *object, gk_kernel_argument *argument, gk_holding *holding) {
    gk_array given;
    gk_dtype dtype = dtype_of(parameter->made_of, parameter->bytes);
    if (gk_take_value(state, call, parameter->text, object, dtype, &given, &holding->keeper) < 0)
        return -1;
    if (given.place == GK_HOST && given.ndim == 0)
        return take_typed(call, parameter, object, &given, argument);
    return refuse_number(call, parameter, object);
}

static int take_number(gk_state *state, gk_call *call, const gk_kernel_parameter *parameter,
                       PyObject *object, gk_kernel_argument *argument, gk_holding *holding) {
    bool is_float = parameter->made_of == GK_OF_FLOAT || parameter->made_of == GK_OF_BFLOAT;
    bool is_whole = PyLong_Check(object);
    argument->number = 0;
    argument->value = &argument->number;
    if (is_whole && !is_float)
        return take_int(call, parameter, object, argument);
    if ((is_whole || PyFloat_CheckExact(object)) && is_float && parameter->bytes > 2)
        return take_float(call, parameter, object, argument);
    if ((is_python_number(object) && !is_float) || PyComplex_CheckExact(object) ||
        !gk_is_operand(state, object))
        return refuse_number(call, parameter, object);
    return take_converted(state, call, parameter, object, argument, holding);
}

/* structures ----------------------------------------------------------------------------------- */

static int take_structure(gk_call *call, const gk_kernel_parameter *parameter, PyObject *object,
                          gk_kernel_argument *argument, gk_holding *holding) {
    Py_ssize_t given = -1;
    if (PyObject_CheckBuffer(object)) {
        if (PyObject_GetBuffer(object, &holding->buffer, PyBUF_C_CONTIGUOUS) < 0)
            return -1;
        holding->has_buffer = true;
        given = holding->buffer.len;
        argument->value = holding->buffer.buf;
    }
    if (given == (Py_ssize_t)parameter->bytes)
        return 0;
    if (given < 0)
        PyErr_Format(
            PyExc_TypeError,
            "%s: %s takes %zu bytes, a scalar of a structured dtype, a ctypes structure or "
            "bytes, and was given %R",
            call->operation, parameter->text, parameter->bytes, (PyObject *)Py_TYPE(object));
    else
        PyErr_Format(PyExc_TypeError,
                     "%s: %s takes %zu bytes, and was given %zd; with NumPy, "
                     "numpy.dtype([...], align=True) lays fields out as C does",
                     call->operation, parameter->text, parameter->bytes, given);
    return -1;
}

/* arrays --------------------------------------------------------------------------------------- */

static int refuse_array(const gk_call *call, const gk_kernel_parameter *parameter,
                        PyObject *object) {
    const char *cure = PyList_Check(object) || PyTuple_Check(object)
                           ? "; numpy.array(..., dtype) makes an array of it"
                       : is_python_number(object) ? "; an array of one element holds a number"
                                                  : "";
    PyErr_Format(PyExc_TypeError,
                 "%s: %s is a pointer and takes an array (NumPy's, a DeviceArray or an object with "
                 "__cuda_array_interface__ or __dlpack__), and was given %R%s",
                 call->operation, parameter->text, (PyObject *)Py_TYPE(object), cure);
    return -1;
}

static int refuse_dtype(const gk_call *call, const gk_kernel_parameter *parameter,
                        const char *given) {
    described type = describe(parameter->points_to, parameter->scalar_bytes);
    PyErr_Format(PyExc_TypeError,
                 "%s: %s takes an array of %s, and was given one of %s; convert it with "
                 ".astype(...), or look at it as another with .view(...)",
                 call->operation, parameter->text, type.text, given);
    return -1;
}

/* Structures, and complex numbers as vectors of two: what the engine has no dtype for. */
static bool is_of_records(const gk_kernel_parameter *parameter, const Py_buffer *view) {
    size_t item = (size_t)view->itemsize;
    const char *format = view->format ? view->format : "B";
    bool record = strchr(format, '{') != NULL;
    if (parameter->points_to == GK_OF_ANYTHING || parameter->points_to == GK_OF_UNKNOWN)
        return true;
    if (parameter->points_to == GK_OF_BYTES)
        return (record && item == parameter->pointee_bytes) || item == 1;
    return parameter->points_to == GK_OF_FLOAT && format[0] == 'Z' &&
           item == 2 * parameter->scalar_bytes && item == parameter->pointee_bytes;
}

static int refuse_strides(const gk_call *call, const gk_kernel_parameter *parameter,
                          gk_place place) {
    PyErr_Format(PyExc_ValueError,
                 "%s: %s is not contiguous, and a kernel sees memory, not strides; make a copy of "
                 "it with %s",
                 call->operation, parameter->text,
                 place == GK_HOST ? "numpy.ascontiguousarray(...)" : ".copy()");
    return -1;
}

/* Why an object gave no buffer that is contiguous: it may lie otherwise. What has none at all is
   said where all arrays are taken. */
static int no_buffer(const gk_call *call, const gk_kernel_parameter *parameter, PyObject *object) {
    Py_buffer view;
    if (PyErr_ExceptionMatches(PyExc_MemoryError))
        return -1;
    PyErr_Clear();
    if (PyObject_GetBuffer(object, &view, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return 0;
    }
    bool is_record = is_of_records(parameter, &view);
    PyBuffer_Release(&view);
    return is_record ? refuse_strides(call, parameter, GK_HOST) : 0;
}

/* 1: taken; 0: to be taken as other arrays are, with nothing held; -1: raised. */
static int take_records(const gk_call *call, const gk_kernel_parameter *parameter, PyObject *object,
                        gk_array *array, gk_holding *holding) {
    Py_buffer *view = &holding->buffer;
    bool vector = parameter->points_to == GK_OF_FLOAT &&
                  parameter->pointee_bytes == 2 * parameter->scalar_bytes;
    bool record = parameter->points_to == GK_OF_BYTES || parameter->points_to == GK_OF_ANYTHING;
    if ((!vector && !record) || !PyObject_CheckBuffer(object) ||
        PyObject_HasAttrString(object, "mask")) /* which is refused like any masked array */
        return 0;
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return no_buffer(call, parameter, object);
    if (!is_of_records(parameter, view)) {
        PyBuffer_Release(view);
        return 0;
    }
    holding->has_buffer = true;
    gk_clear_view(array);
    array->place = GK_HOST;
    array->dtype = GK_uint8;
    array->data = view->buf;
    array->readonly = view->readonly;
    array->ndim = 1;
    array->shape[0] = view->len;
    array->strides[0] = 1;
    return 1;
}

int gk_take_plain_array(gk_state *state, gk_call *call, const gk_kernel_parameter *parameter,
                        PyObject *object, gk_array *array, gk_holding *holding) {
    if (is_python_number(object) || !gk_is_operand(state, object))
        return refuse_array(call, parameter, object);
    if (gk_take_value(state, call, parameter->text, object, GK_float32, array, &holding->keeper) <
        0)
        return -1;
    /* A scalar was copied, and what the kernel writes would be lost. */
    if (array->place == GK_HOST && holding->keeper != object)
        return refuse_array(call, parameter, object);
    if (!gk_points_to(parameter, array->dtype))
        return refuse_dtype(call, parameter, gk_dtype_name(array->dtype));
    return 0;
}

/* What the kernel would not see as the source means it. */
static int check_layout(const gk_call *call, const gk_kernel_parameter *parameter,
                        const gk_array *array) {
    size_t bytes = gk_bytes(array), pointee = parameter->pointee_bytes;
    if (gk_count(array) > 0 && !gk_is_contiguous(array))
        return refuse_strides(call, parameter, array->place);
    if (array->swapped) {
        PyErr_Format(PyExc_ValueError,
                     "%s: %s is of the other byte order; .astype(dtype.newbyteorder('=')) makes it "
                     "of this one",
                     call->operation, parameter->text);
        return -1;
    }
    if (pointee > 1 && bytes % pointee) {
        PyErr_Format(PyExc_ValueError,
                     "%s: %s points to elements of %zu bytes, and the array has %zu, which is no "
                     "multiple",
                     call->operation, parameter->text, pointee, bytes);
        return -1;
    }
    size_t alignment = parameter->alignment;
    if (array->place == GK_DEVICE && alignment > 1 && (uintptr_t)array->data % alignment &&
        bytes > 0) {
        PyErr_Format(PyExc_ValueError,
                     "%s: %s has to lie at a multiple of %zu bytes, and the array begins %zu "
                     "behind one; make a copy of it with .copy()",
                     call->operation, parameter->text, alignment,
                     (size_t)((uintptr_t)array->data % alignment));
        return -1;
    }
    return 0;
}

static int check_written(const gk_call *call, const gk_kernel_parameter *parameter,
                         const gk_kernel_argument *argument, gk_directed given) {
    if (given.is_said && given.is_out && parameter->readonly) {
        PyErr_Format(PyExc_TypeError,
                     "%s: %s is const, and was given as one that the kernel writes; pass the array "
                     "itself",
                     call->operation, parameter->text);
        return -1;
    }
    if (!argument->is_out || !argument->array.readonly || gk_count(&argument->array) == 0)
        return 0;
    PyErr_Format(PyExc_ValueError,
                 "%s: %s may be written, and the array is read-only; gpukern.In(array) says that "
                 "it is not, as const does in the source",
                 call->operation, parameter->text);
    return -1;
}

static int take_pointer(gk_state *state, gk_call *call, const gk_kernel_parameter *parameter,
                        PyObject *object, gk_kernel_argument *argument, gk_holding *holding) {
    gk_directed given = gk_direction_of(state, object);
    argument->is_array = true;
    argument->is_in = given.is_said ? given.is_in : true;
    argument->is_out = given.is_said ? given.is_out : !parameter->readonly;
    if (Py_IsNone(given.object)) { /* a null pointer */
        gk_clear_view(&argument->array);
        argument->array.ndim = 1;
        argument->array.shape[0] = 0;
        argument->array.place = GK_HOST;
        argument->array.dtype = GK_uint8;
        argument->is_out = false;
        return 0;
    }
    int taken = take_records(call, parameter, given.object, &argument->array, holding);
    if (taken == 0)
        taken =
            gk_take_plain_array(state, call, parameter, given.object, &argument->array, holding);
    if (taken < 0 || check_layout(call, parameter, &argument->array) < 0)
        return -1;
    return check_written(call, parameter, argument, given);
}

/* Of a module that was not compiled here the size alone is known: what is given says the rest. */
static int take_unknown(gk_state *state, gk_call *call, const gk_kernel_parameter *parameter,
                        PyObject *object, gk_kernel_argument *argument, gk_holding *holding) {
    gk_directed given = gk_direction_of(state, object);
    bool is_array = given.is_said || Py_IsNone(object) || gk_is_device_array(state, object) ||
                    gk_is_foreign(state, object);
    if (PyFloat_CheckExact(object) || PyComplex_CheckExact(object)) {
        PyErr_Format(PyExc_TypeError,
                     "%s: of %s the module tells no more than the size; say which number it is "
                     "with numpy.float32(...) or numpy.float64(...)",
                     call->operation, parameter->text);
        return -1;
    }
    if (PyLong_Check(object) && parameter->bytes <= 8)
        return take_number(state, call, parameter, object, argument, holding);
    if (!is_array && PyObject_CheckBuffer(object)) { /* a scalar is a structure of its bytes */
        PyObject *ndim = PyObject_GetAttrString(object, "ndim");
        if (!ndim && !PyErr_ExceptionMatches(PyExc_AttributeError))
            return -1;
        is_array = ndim && PyObject_IsTrue(ndim) == 1;
        Py_XDECREF(ndim);
        PyErr_Clear();
    }
    const gk_kernel_parameter pointer = {.text = parameter->text, .points_to = GK_OF_ANYTHING};
    if (is_array && parameter->bytes == sizeof(void *))
        return take_pointer(state, call, &pointer, object, argument, holding);
    return take_structure(call, parameter, object, argument, holding);
}

int gk_take_kernel_argument(gk_state *state, gk_call *call, const gk_kernel_parameter *parameter,
                            PyObject *object, gk_kernel_argument *argument, gk_holding *holding) {
    if (parameter->made_of == GK_OF_UNKNOWN)
        return take_unknown(state, call, parameter, object, argument, holding);
    if (parameter->made_of == GK_OF_POINTER)
        return take_pointer(state, call, parameter, object, argument, holding);
    if (is_number(parameter->made_of))
        return take_number(state, call, parameter, object, argument, holding);
    return take_structure(call, parameter, object, argument, holding);
}

void gk_let_go(gk_holding *holdings, int count) {
    for (int i = 0; i < count; i++) {
        if (holdings[i].has_buffer)
            PyBuffer_Release(&holdings[i].buffer);
        Py_XDECREF(holdings[i].keeper);
    }
}
