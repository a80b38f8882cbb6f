#include "binding/arrays/host_arrays.h"

#include "base/memory.h"
#include "binding/arrays/dtypes.h"
#include "binding/arrays/numpy_api.h"
#include "binding/values.h"
#include "engine/pool.h"

/* Smaller results live where NumPy puts them; above this, page faults cost more than the copy. */
enum { PINNED_RESULT_BYTES = 256 << 10 };

int gk_planted_host_fault(gk_state *state, const gk_call *call) {
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
    if (refuse_unfillable(call, like) < 0 || gk_planted_host_fault(state, call) < 0)
        return NULL;
    PyArray_Descr *descr = (PyArray_Descr *)gk_dtype_object(state, like->dtype);
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
    PyArray_Descr *descr = (PyArray_Descr *)gk_dtype_object(state, like->dtype);
    if (!descr)
        return NULL;
    PyObject *array = lend_memory(call, descr, like, shape);
    Py_DECREF((PyObject *)descr);
    if (!array && !PyErr_Occurred())
        refuse_pinned(call, like);
    return array;
}

void gk_view_host(PyObject *object, gk_dtype dtype, gk_array *array) {
    PyArrayObject *source = (PyArrayObject *)object;
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

int gk_refuse_masked(const gk_call *call, const char *name, PyObject *object) {
    if (PyArray_CheckExact(object) || !PyObject_HasAttrString(object, "mask"))
        return 0;
    PyErr_Format(PyExc_TypeError, "%s: %s is a masked array; use .filled(...) or .compressed()",
                 call->operation, name);
    return -1;
}

int gk_take_host(gk_call *call, const char *name, PyObject *object, gk_array *array,
                 PyObject **keeper) {
    PyArrayObject *source = (PyArrayObject *)object;
    gk_dtype dtype;
    if (gk_refuse_masked(call, name, object) < 0)
        return -1;
    if (!gk_dtype_of((PyObject *)PyArray_DESCR(source), &dtype)) {
        PyErr_Format(PyExc_TypeError,
                     "%s: %s has dtype %S, which is not supported; use %s, for instance with "
                     ".astype(...)",
                     call->operation, name, (PyObject *)PyArray_DESCR(source),
                     gk_dtype_list().text);
        return -1;
    }
    *keeper = Py_NewRef(object);
    gk_view_host(object, dtype, array);
    return 0;
}

PyObject *gk_as_scalar(PyObject *array) {
    return PyArray_Check(array) ? PyArray_Return((PyArrayObject *)array) : array;
}
