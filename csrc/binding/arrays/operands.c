#include "binding/arrays/operands.h"

#include <numpy/arrayobject.h>
#include <string.h>

#include "base/memory.h"
#include "base/pack.h"
#include "binding/arrays/device_object.h"
#include "binding/arrays/foreign.h"
#include "binding/values.h"
#include "engine/call.h"
#include "engine/pool.h"
#include "engine/transfer.h"

/* Smaller results live where NumPy puts them; above this, page faults cost more than the copy. */
enum { PINNED_RESULT_BYTES = 256 << 10 };

int gk_args_init(void) {
    return _import_array() < 0 ? -1 : 0; /* import_array() would print what is raised, too */
}

/* dtypes and shapes ---------------------------------------------------------------------------- */

/* bfloat16 is a type that ml_dtypes registers with NumPy, so it is known by name, not by number. */
static bool is_bfloat16(PyArray_Descr *descr) {
    if (descr->type_num < NPY_USERDEF || PyDataType_ELSIZE(descr) != 2)
        return false;
    PyObject *name = PyType_GetName(descr->typeobj);
    bool same = name && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0;
    Py_XDECREF(name);
    PyErr_Clear();
    return same;
}

/* By kind and size: C has several integer types of one size, and NumPy a number for each. */
static bool dtype_of(PyArray_Descr *descr, gk_dtype *dtype) {
    size_t size = (size_t)PyDataType_ELSIZE(descr);
    for (int i = 0; i < GK_DTYPE_COUNT && descr->type_num < NPY_USERDEF; i++) {
        *dtype = (gk_dtype)i;
        if (i != GK_bfloat16 && gk_dtype_letter(*dtype) == descr->kind &&
            gk_dtype_size(*dtype) == size)
            return true;
    }
    *dtype = GK_bfloat16;
    return is_bfloat16(descr);
}

/* ml_dtypes is imported when a bfloat16 array has to be made, not before. */
static PyArray_Descr *bfloat16_descr(gk_state *state) {
    PyArray_Descr *descr = NULL;
    if (!state->bfloat16) {
        PyObject *module = PyImport_ImportModule("ml_dtypes");
        PyObject *type = module ? PyObject_GetAttrString(module, "bfloat16") : NULL;
        if (type && PyArray_DescrConverter(type, &descr))
            state->bfloat16 = (PyObject *)descr;
        Py_XDECREF(type);
        Py_XDECREF(module);
    }
    return (PyArray_Descr *)Py_XNewRef(state->bfloat16);
}

static PyArray_Descr *new_descr(gk_state *state, gk_dtype dtype) {
    static const int numbers[GK_DTYPE_COUNT] = {
#define GK_NUMBER(name, short_name, type, bytes, text, number, ...) [GK_##name] = number,
        GK_DTYPES(GK_NUMBER, )
#undef GK_NUMBER
    };
    return dtype == GK_bfloat16 ? bfloat16_descr(state) : PyArray_DescrFromType(numbers[dtype]);
}

PyObject *gk_dtype_object(gk_state *state, gk_dtype dtype) {
    return (PyObject *)new_descr(state, dtype);
}

/* What NumPy makes no dtype of, where that is not a failure of another kind. */
static int refuse_dtype(const char *function, PyObject *object) {
    if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError))
        PyErr_Format(PyExc_TypeError, "%s: dtype %R is none that NumPy knows; use %s", function,
                     object, gk_dtype_list().text);
    return -1;
}

int gk_dtype_from_object(gk_state *state, const char *function, PyObject *object, gk_dtype *dtype) {
    if (PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, "bfloat16") == 0) {
        *dtype = GK_bfloat16; /* NumPy knows the name only once ml_dtypes has been imported */
        PyArray_Descr *descr = bfloat16_descr(state);
        Py_XDECREF((PyObject *)descr);
        return descr ? 0 : -1;
    }
    PyArray_Descr *descr = NULL;
    if (!PyArray_DescrConverter(object, &descr))
        return refuse_dtype(function, object);
    bool known = dtype_of(descr, dtype) && PyArray_ISNBO(descr->byteorder);
    if (!known)
        PyErr_Format(PyExc_TypeError, "%s: dtype %R is not supported; use %s", function, object,
                     gk_dtype_list().text);
    Py_DECREF(descr);
    return known ? 0 : -1;
}

int gk_shape_from_object(const char *function, PyObject *object, gk_array *array) {
    npy_intp shape[GK_MAX_DIMENSIONS];
    int ndim = PyArray_IntpFromSequence(object, shape, GK_MAX_DIMENSIONS);
    if (ndim < 0 && !PyErr_ExceptionMatches(PyExc_TypeError))
        return gk_name_failure(function);
    if (ndim < 0) {
        PyErr_Format(PyExc_TypeError,
                     "%s: shape has to be a length or a tuple of lengths, whole numbers, not %R",
                     function, object);
        return -1;
    }
    if (ndim > GK_MAX_DIMENSIONS) {
        PyErr_Format(PyExc_ValueError, "%s: shape has %d dimensions, and the most are %d", function,
                     ndim, GK_MAX_DIMENSIONS);
        return -1;
    }
    array->ndim = ndim;
    for (int i = 0; i < ndim; i++) {
        array->shape[i] = shape[i];
        if (shape[i] < 0) {
            PyErr_Format(PyExc_ValueError, "%s: shape %S has a negative length; lengths are from 0",
                         function, object);
            return -1;
        }
    }
    return 0;
}

/* host arrays ---------------------------------------------------------------------------------- */

static int planted_host_fault(gk_state *state, const gk_call *call) {
    if (!gk_engine_fault_due(state->engine))
        return 0;
    PyErr_Format(PyExc_MemoryError, "%s: planted fault in a host allocation", call->operation);
    return -1;
}

/* A kernel that overcommits hands out addresses for any size, and kills the process that fills
   them. Smaller arrays are not worth the look. */
static int refuse_unfillable(const gk_call *call, const gk_array *like) {
    size_t bytes = gk_bytes(like);
    if (bytes < (size_t)1 << 30)
        return 0;
    size_t most = gk_memory_most();
    if (bytes <= most)
        return 0;
    PyErr_Format(
        PyExc_MemoryError,
        "%s: the result takes %zu bytes, and this machine or its container has %zu bytes of "
        "memory and swap",
        call->operation, bytes, most);
    return -1;
}

void *gk_host_data(PyObject *array) {
    return PyArray_DATA((PyArrayObject *)array);
}

/* What keeps a pool's block for an array: the base of the array. */
static const char lent_name[] = "gpukern.pinned memory";

static void give_back(PyObject *capsule) {
    gk_pool_give(PyCapsule_GetContext(capsule), PyCapsule_GetPointer(capsule, lent_name));
}

/* An array in pinned memory that is used again when it dies: no page faults, no staging. NULL with
   nothing raised where there is none to be had. */
static PyObject *lend_memory(gk_call *call, PyArray_Descr *descr, const gk_array *like,
                             npy_intp *shape) {
    gk_pool *pool = call->device->pool;
    void *memory;
    Py_BEGIN_ALLOW_THREADS;
    memory = gk_pool_take(pool, gk_bytes(like));
    Py_END_ALLOW_THREADS;
    if (!memory)
        return NULL;
    PyObject *capsule = PyCapsule_New(memory, lent_name, give_back);
    if (!capsule || PyCapsule_SetContext(capsule, pool) < 0) {
        gk_pool_give(pool, memory);
        return NULL;
    }
    Py_INCREF((PyObject *)descr); /* the constructor takes one */
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, like->ndim, shape, NULL, memory,
                                           NPY_ARRAY_CARRAY, NULL);
    if (!array) {
        Py_DECREF(capsule);
        return NULL;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)array, capsule) < 0)
        Py_CLEAR(array);
    return array;
}

static void shape_of(const gk_array *like, npy_intp *shape) {
    for (int i = 0; i < like->ndim; i++)
        shape[i] = (npy_intp)like->shape[i];
}

PyObject *gk_new_host_array(gk_state *state, gk_call *call, const gk_array *like) {
    npy_intp shape[GK_MAX_DIMENSIONS];
    PyObject *array = NULL;
    shape_of(like, shape);
    if (refuse_unfillable(call, like) < 0 || planted_host_fault(state, call) < 0)
        return NULL;
    PyArray_Descr *descr = new_descr(state, like->dtype);
    if (!descr)
        return NULL;
    if (gk_bytes(like) >= PINNED_RESULT_BYTES)
        array = lend_memory(call, descr, like, shape);
    if (array) {
        Py_DECREF((PyObject *)descr);
        return array;
    }
    PyErr_Clear();
    array = PyArray_NewFromDescr(&PyArray_Type, descr, like->ndim, shape, NULL, NULL, 0, NULL);
    if (!array)
        gk_name_failure(call->operation);
    return array;
}

static void refuse_pinned(const gk_call *call, const gk_array *like) {
    gk_pool_report report = gk_pool_describe(call->device->pool);
    PyErr_Format(PyExc_MemoryError,
                 "%s: %zu bytes of pinned memory are more than there are: the limit is %zu bytes, "
                 "and arrays and buffers hold %zu; gpukern.limits(pinned_memory=...) changes it",
                 call->operation, gk_bytes(like), report.limit, report.used);
}

PyObject *gk_new_pinned_array(gk_state *state, gk_call *call, const gk_array *like) {
    npy_intp shape[GK_MAX_DIMENSIONS];
    shape_of(like, shape);
    if (gk_bytes(like) == 0)
        return gk_new_host_array(state, call, like);
    PyArray_Descr *descr = new_descr(state, like->dtype);
    if (!descr)
        return NULL;
    PyObject *array = lend_memory(call, descr, like, shape);
    Py_DECREF((PyObject *)descr);
    if (!array && !PyErr_Occurred())
        refuse_pinned(call, like);
    return array;
}

static void view_host(PyArrayObject *source, gk_dtype dtype, gk_array *array) {
    gk_clear_view(array);
    array->place = GK_HOST;
    array->dtype = dtype;
    array->data = PyArray_DATA(source);
    array->readonly = !PyArray_ISWRITEABLE(source);
    array->swapped = PyArray_ISBYTESWAPPED(source);
    array->ndim = PyArray_NDIM(source);
    for (int i = 0; i < array->ndim; i++) {
        array->shape[i] = PyArray_DIM(source, i);
        array->strides[i] = PyArray_STRIDE(source, i);
    }
}

/* To take a masked array as its data would give what its mask hides. */
static int refuse_masked(const gk_call *call, const char *name, PyObject *object) {
    if (PyArray_CheckExact(object) || !PyObject_HasAttrString(object, "mask"))
        return 0;
    PyErr_Format(PyExc_TypeError, "%s: %s is a masked array; use .filled(...) or .compressed()",
                 call->operation, name);
    return -1;
}

/* As it is, whatever its layout: it is packed as it goes to the device. */
static int take_host(gk_call *call, const char *name, PyObject *object, gk_array *array,
                     PyObject **keeper) {
    PyArrayObject *source = (PyArrayObject *)object;
    gk_dtype dtype;
    if (refuse_masked(call, name, object) < 0)
        return -1;
    if (!dtype_of(PyArray_DESCR(source), &dtype)) {
        PyErr_Format(PyExc_TypeError,
                     "%s: %s has dtype %S, which is not supported; use %s, for instance with "
                     ".astype(...)",
                     call->operation, name, (PyObject *)PyArray_DESCR(source),
                     gk_dtype_list().text);
        return -1;
    }
    *keeper = Py_NewRef(object);
    view_host(source, dtype, array);
    return 0;
}

/* operands ------------------------------------------------------------------------------------- */

static bool is_python_scalar(PyObject *object) {
    return !PyArray_IsScalar(object, Generic) &&
           (PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object));
}

/* -1: in no device's memory; -2: raised. */
static int place_of(gk_state *state, const char *operation, const char *name, PyObject *object) {
    if (gk_is_device_array(state, object))
        return gk_device_number((const gk_device_array *)object);
    bool host = PyArray_Check(object) || PyArray_IsScalar(object, Generic) ||
                is_python_scalar(object) || Py_IsNone(object);
    int devices = gk_engine_devices(state->engine);
    /* Where there is one device alone, nobody has to be asked. */
    if (host || devices == 1 || !gk_is_foreign(state, object))
        return -1;
    int place = gk_foreign_place(state, operation, name, object);
    return devices && place >= devices ? -1 : place; /* refused when it is taken */
}

int gk_device_of(gk_state *state, const char *operation, const char *const *names,
                 PyObject *const *objects, int count, PyObject *out) {
    int place = -1;
    for (int i = 0; i < count && place == -1; i++)
        place = place_of(state, operation, names[i], objects[i]);
    if (place == -1 && out)
        place = place_of(state, operation, "out", out);
    if (place == -1)
        return gk_engine_current(state->engine);
    return place < 0 ? -1 : place;
}

bool gk_is_sequence(PyObject *object) {
    if (PyArray_Check(object))
        return PyArray_NDIM((PyArrayObject *)object) > 0;
    return !PyIndex_Check(object) && !PyUnicode_Check(object);
}

bool gk_is_operand(gk_state *state, PyObject *object) {
    return gk_is_device_array(state, object) || PyArray_Check(object) ||
           PyArray_IsScalar(object, Generic) || is_python_scalar(object) ||
           gk_is_foreign(state, object);
}

/* Our own arrays need no dict and no question to the driver. */
static void take_device(PyObject *object, gk_array *array, PyObject **keeper) {
    const gk_device_array *source = (const gk_device_array *)object;
    gk_copy_view(array, &source->array);
    array->producer = source->stream ? source->stream : GK_LEGACY_STREAM;
    *keeper = Py_NewRef(object);
}

static int refuse(const gk_call *call, const char *name, PyObject *object) {
    bool sequence = PyList_Check(object) || PyTuple_Check(object);
    bool convertible = strcmp(name, "out") != 0 && (sequence || is_python_scalar(object));
    PyErr_Format(PyExc_TypeError,
                 "%s: %s has to be a NumPy array, a DeviceArray or an object with "
                 "__cuda_array_interface__ or __dlpack__, not %S%s",
                 call->operation, name, (PyObject *)Py_TYPE(object),
                 convertible ? "; numpy.array(...) makes an array of it" : "");
    return -1;
}

static int take_array(gk_state *state, gk_call *call, const char *name, PyObject *object,
                      gk_array *array, PyObject **keeper) {
    if (gk_is_device_array(state, object)) {
        const gk_device_array *source = (const gk_device_array *)object;
        if (source->device != call->device)
            return gk_refuse_place(call, name, gk_device_number(source));
        take_device(object, array, keeper);
        return 0;
    }
    if (PyArray_Check(object))
        return take_host(call, name, object, array, keeper);
    if (PyArray_IsScalar(object, Generic)) {
        PyObject *scalar = PyArray_FromScalar(object, NULL);
        int failed = scalar ? take_host(call, name, scalar, array, keeper) : -1;
        Py_XDECREF(scalar);
        return failed;
    }
    if (gk_is_foreign(state, object))
        return gk_take_foreign(state, call, name, object, array, keeper);
    return refuse(call, name, object);
}

/* A Python scalar takes the dtype of the array beside it, where that loses nothing of its kind. */
static int take_scalar(gk_state *state, gk_call *call, const char *name, PyObject *object,
                       gk_dtype dtype, gk_array *array, PyObject **keeper) {
    bool whole = PyLong_Check(object) && !PyBool_Check(object);
    if (PyComplex_Check(object) || (PyFloat_Check(object) && !gk_is_float(dtype)) ||
        (whole && gk_dtype_kind(dtype) == GK_BOOLEAN)) {
        PyErr_Format(PyExc_TypeError, "%s: %s is the %S %R beside an array of %s; convert one",
                     call->operation, name, (PyObject *)Py_TYPE(object), object,
                     gk_dtype_name(dtype));
        return -1;
    }
    if (planted_host_fault(state, call) < 0)
        return -1;
    PyArray_Descr *descr = new_descr(state, dtype);
    *keeper = descr ? PyArray_FromAny(object, descr, 0, 0, NPY_ARRAY_CARRAY, NULL) : NULL;
    if (!*keeper)
        return gk_name_failure(call->operation);
    view_host((PyArrayObject *)*keeper, dtype, array);
    return 0;
}

int gk_take_value(gk_state *state, gk_call *call, const char *name, PyObject *object,
                  gk_dtype dtype, gk_array *array, PyObject **keeper) {
    if (!gk_is_device_array(state, object) && is_python_scalar(object))
        return take_scalar(state, call, name, object, dtype, array, keeper);
    return take_array(state, call, name, object, array, keeper);
}

int gk_take_flag(const char *function, const char *name, PyObject *object, bool *flag) {
    if (PyBool_Check(object) || PyLong_Check(object) || PyArray_IsScalar(object, Bool) ||
        PyArray_IsScalar(object, Integer)) {
        int is_true = PyObject_IsTrue(object);
        *flag = is_true == 1;
        return is_true < 0 ? -1 : 0;
    }
    PyErr_Format(PyExc_TypeError, "%s: %s has to be True or False, not %R", function, name, object);
    return -1;
}

/* A Python integer beside integers: where it lies, and its bits where the dtype holds it. */
static int take_whole_bound(PyObject *number, gk_dtype dtype, gk_bound *bound) {
    int overflow, width = 8 * (int)gk_dtype_size(dtype);
    bool is_signed = gk_dtype_kind(dtype) == GK_SIGNED;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (value == -1 && PyErr_Occurred())
        return -1;
    bound->is = GK_BOUNDED;
    bound->value = (uint64_t)value;
    if (overflow > 0 && !is_signed && width == 64) { /* it may still be below 2^64 */
        bound->value = PyLong_AsUnsignedLongLong(number);
        overflow = PyErr_Occurred() ? 1 : 0;
        PyErr_Clear();
        bound->is = overflow ? GK_ABOVE_ALL : GK_BOUNDED;
        return 0;
    }
    long long least = is_signed ? (long long)(INT64_MIN >> (64 - width)) : 0;
    uint64_t greatest = (is_signed ? INT64_MAX : UINT64_MAX) >> (64 - width);
    if (overflow < 0 || (!overflow && value < least))
        bound->is = GK_BELOW_ALL;
    else if (overflow > 0 || (value > 0 && (uint64_t)value > greatest))
        bound->is = GK_ABOVE_ALL;
    return 0;
}

int gk_take_bound(gk_state *state, gk_call *call, const char *name, PyObject *object,
                  gk_dtype dtype, gk_bound *bound) {
    gk_array number;
    PyObject *keeper = NULL;
    *bound = (gk_bound){.is = GK_UNBOUNDED};
    if (!object || Py_IsNone(object))
        return 0;
    if (is_python_scalar(object) && PyLong_Check(object) && !gk_is_float(dtype))
        return take_whole_bound(object, dtype, bound);
    if (is_python_scalar(object)) {
        if (take_scalar(state, call, name, object, dtype, &number, &keeper) < 0)
            return -1;
    } else if (PyArray_IsScalar(object, Generic)) {
        if (take_array(state, call, name, object, &number, &keeper) < 0)
            return -1;
    } else {
        PyErr_Format(PyExc_TypeError,
                     "%s: %s has to be a number or None, not %S; for bounds that are arrays use "
                     "gpukern.minimum(gpukern.maximum(a, low), high)",
                     call->operation, name, (PyObject *)Py_TYPE(object));
        return -1;
    }
    bool same = number.dtype == dtype;
    if (same) {
        bound->is = GK_BOUNDED;
        gk_pack(&bound->value, &number, 0, 1);
    } else {
        PyErr_Format(PyExc_TypeError, "%s: %s is of dtype %s, and a of %s; convert one",
                     call->operation, name, gk_dtype_name(number.dtype), gk_dtype_name(dtype));
    }
    Py_DECREF(keeper);
    return same ? 0 : -1;
}

int gk_take_operands(gk_state *state, gk_call *call, const char *const *names,
                     PyObject *const *objects, int count, gk_array *arrays, PyObject **keepers) {
    int array = -1;
    for (int i = 0; i < count; i++)
        keepers[i] = NULL;
    for (int i = 0; i < count; i++) {
        if (!gk_is_device_array(state, objects[i]) && is_python_scalar(objects[i]))
            continue;
        if (take_array(state, call, names[i], objects[i], &arrays[i], &keepers[i]) < 0)
            goto fail;
        array = i;
    }
    for (int i = 0; i < count; i++) {
        if (keepers[i])
            continue;
        if (array < 0) { /* scalars alone: there is no dtype to take */
            refuse(call, names[i], objects[i]);
            goto fail;
        }
        if (take_scalar(state, call, names[i], objects[i], arrays[array].dtype, &arrays[i],
                        &keepers[i]) < 0)
            goto fail;
    }
    return 0;
fail:
    gk_drop_operands(keepers, count);
    return -1;
}

void gk_drop_operands(PyObject **keepers, int count) {
    for (int i = 0; i < count; i++)
        Py_CLEAR(keepers[i]);
}

/* results -------------------------------------------------------------------------------------- */

static int check_output(const gk_call *call, const char *name, const gk_array *out,
                        const gk_array *expected) {
    if (gk_repeats_elements(out)) {
        PyErr_Format(
            PyExc_ValueError,
            "%s: %s is a broadcast view, of which several elements share one place; pass an "
            "array of its own",
            call->operation, name);
        return -1;
    }
    if (out->dtype != expected->dtype) {
        PyErr_Format(PyExc_TypeError, "%s: %s has dtype %s, and the result is %s", call->operation,
                     name, gk_dtype_name(out->dtype), gk_dtype_name(expected->dtype));
        return -1;
    }
    if (!gk_same_shape(out, expected)) {
        PyErr_Format(PyExc_ValueError, "%s: %s has shape %s, and the result has shape %s",
                     call->operation, name, gk_shape_text(out).text, gk_shape_text(expected).text);
        return -1;
    }
    if (out->readonly) {
        PyErr_Format(PyExc_ValueError,
                     "%s: %s is read-only, and has to be an array that can be written",
                     call->operation, name);
        return -1;
    }
    return 0;
}

/* Whether results may go straight to the user's array, as they come: a part of one is worth less
   than a second pass over all of them. A call may begin anew where memory runs out, so no operand
   may lie there. */
static bool is_written_directly(const gk_array *out, const gk_array *operands, int count) {
    if (!operands || out->swapped || !gk_is_contiguous(out))
        return false;
    for (int i = 0; i < count; i++)
        if (operands[i].place == GK_HOST && gk_overlaps(out, &operands[i]))
            return false;
    return true;
}

static int take_host_output(gk_state *state, gk_call *call, const char *name, PyObject *out,
                            const gk_array *expected, const gk_array *operands, int count,
                            gk_output *output) {
    PyArrayObject *array = (PyArrayObject *)out;
    gk_dtype dtype;
    if (refuse_masked(call, name, out) < 0)
        return -1;
    if (!dtype_of(PyArray_DESCR(array), &dtype)) {
        PyErr_Format(PyExc_TypeError, "%s: %s has dtype %S, and the result is %s", call->operation,
                     name, (PyObject *)PyArray_DESCR(array), gk_dtype_name(expected->dtype));
        return -1;
    }
    view_host(array, dtype, &output->array);
    if (check_output(call, name, &output->array, expected) < 0)
        return -1;
    if (is_written_directly(&output->array, operands, count))
        return 0;
    output->target = output->array;
    output->bridge = gk_new_host_array(state, call, expected);
    if (!output->bridge)
        return -1;
    view_host((PyArrayObject *)output->bridge, dtype, &output->array);
    return 0;
}

int gk_take_output(gk_state *state, gk_call *call, const char *name, PyObject *out,
                   const gk_array *expected, const gk_array *operands, int count,
                   gk_output *output) {
    int failed;
    output->bridge = output->keeper = NULL;
    output->object = Py_NewRef(out);
    if (!gk_is_device_array(state, out) && PyArray_Check(out)) {
        failed = take_host_output(state, call, name, out, expected, operands, count, output);
    } else if (gk_is_device_array(state, out) || gk_is_foreign(state, out)) {
        failed = take_array(state, call, name, out, &output->array, &output->keeper);
        if (!failed)
            failed = check_output(call, name, &output->array, expected);
    } else {
        failed = refuse(call, name, out);
    }
    if (failed)
        gk_drop_output(output);
    return failed;
}

int gk_new_output(gk_state *state, gk_call *call, const gk_array *expected, gk_output *output) {
    output->bridge = output->keeper = NULL;
    output->object = gk_new_host_array(state, call, expected);
    if (!output->object)
        return -1;
    view_host((PyArrayObject *)output->object, expected->dtype, &output->array);
    return 0;
}

int gk_finish_output(const gk_call *call, gk_output *output) {
    if (!output->bridge)
        return 0;
    if (PyArray_ISBYTESWAPPED((PyArrayObject *)output->object))
        return PyArray_CopyInto((PyArrayObject *)output->object, (PyArrayObject *)output->bridge);
    Py_BEGIN_ALLOW_THREADS;
    gk_copy_host(call->device, &output->target, &output->array);
    Py_END_ALLOW_THREADS;
    return 0;
}

void gk_drop_output(gk_output *output) {
    Py_CLEAR(output->object);
    Py_CLEAR(output->bridge);
    Py_CLEAR(output->keeper);
}

PyObject *gk_as_scalar(PyObject *array) {
    return PyArray_Check(array) ? PyArray_Return((PyArrayObject *)array) : array;
}
