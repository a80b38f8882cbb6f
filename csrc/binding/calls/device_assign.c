#include "binding/calls/device_assign.h"

#include "binding/arrays/device_object.h"
#include "binding/arrays/indexing.h"
#include "binding/arrays/dtypes.h"
#include "binding/arrays/operands.h"
#include "binding/calls/device_convert.h"
#include "binding/profile.h"
#include "binding/stream.h"
#include "binding/values.h"
#include "ops/assign.h"

/* A call that writes into an array. */
typedef struct assignment {
    gk_state *state;
    gk_call call;
    gk_profiled profiled;
    gk_array self;
    PyObject *keeper; /* of self; owned */
} assignment;

static int begin(assignment *made, PyObject *self, PyObject *stream, const char *operation) {
    made->state = ((gk_device_array *)self)->state;
    if (gk_begin_on(made->state, &made->call, gk_device_number((gk_device_array *)self),
                    operation) < 0)
        return -1;
    gk_profile_begin(made->state, &made->call, &made->profiled);
    if (gk_take_stream(made->state, &made->call, stream) < 0)
        return -1;
    return gk_take_operands(made->state, &made->call, (const char *const[]){"self"}, &self, 1,
                            &made->self, &made->keeper, NULL);
}

static int run(assignment *made, const gk_array *target, const gk_array *source) {
    gk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = gk_assign(&made->call, target, source);
    gk_call_end(&made->call);
    Py_END_ALLOW_THREADS;
    if (status == GK_OK)
        return gk_profile_end(made->state, &made->call, &made->profiled, source, 1);
    gk_raise(made->state, &made->call.error);
    return -1;
}

/* parts ---------------------------------------------------------------------------------------- */

static int assign(assignment *made, const gk_array *target, PyObject *value) {
    gk_array source;
    PyObject *keeper;
    if (target->readonly) {
        PyErr_Format(PyExc_ValueError,
                     "%s: the array is read-only, and has to be one that can be written",
                     made->call.operation);
        return -1;
    }
    if (gk_repeats_elements(target)) {
        PyErr_Format(
            PyExc_ValueError,
            "%s: the array is a broadcast view; several values would share one element; use a "
            "copy, as .copy() makes it",
            made->call.operation);
        return -1;
    }
    if (gk_take_value(made->state, &made->call, "value", value, target->dtype, &source, &keeper) <
        0)
        return -1;
    int failed = -1;
    if (gk_assign_check(&made->call, target, &source) == GK_OK)
        failed = run(made, target, &source);
    else
        gk_raise(made->state, &made->call.error);
    Py_DECREF(keeper);
    return failed;
}

int gk_assign_item(PyObject *self, PyObject *key, PyObject *value) {
    assignment made;
    gk_array target;
    if (!value) {
        PyErr_SetString(PyExc_TypeError,
                        "delitem: the elements of a DeviceArray cannot be deleted; use a slice of "
                        "those that are to stay");
        return -1;
    }
    if (begin(&made, self, NULL, "setitem") < 0)
        return -1;
    int failed = gk_index_view(&made.self, key, &target);
    if (!failed)
        failed = assign(&made, &target, value);
    Py_DECREF(made.keeper);
    return failed;
}

PyObject *gk_method_fill(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords) {
    static const char *const names[] = {"value", "stream", NULL};
    static const gk_signature signature = {"fill", names, 1, 1};
    assignment made;
    PyObject *values[2];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0 ||
        begin(&made, self, values[1], "fill") < 0)
        return NULL;
    int failed = assign(&made, &made.self, values[0]);
    Py_DECREF(made.keeper);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* copies --------------------------------------------------------------------------------------- */

static PyObject *convert(PyObject *self, gk_dtype dtype, PyObject *stream) {
    assignment made;
    gk_array like;
    if (begin(&made, self, stream, "astype") < 0)
        return NULL;
    gk_copy_view(&like, &made.self);
    like.dtype = dtype;
    PyObject *converted = gk_device_array_new(made.state, &made.call, &like);
    if (converted && run(&made, &((gk_device_array *)converted)->array, &made.self) < 0)
        Py_CLEAR(converted);
    Py_DECREF(made.keeper);
    return converted;
}

PyObject *gk_method_astype(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                           PyObject *keywords) {
    static const char *const names[] = {"dtype", "copy", "stream", NULL};
    static const gk_signature signature = {"astype", names, 0, 2};
    gk_device_array *array = (gk_device_array *)self;
    gk_dtype dtype;
    bool copy = true;
    PyObject *values[3];
    if (gk_parse(&signature, arguments, count, keywords, values) < 0)
        return NULL;
    if (!values[0]) {
        gk_refuse_missing(&signature, 0);
        return NULL;
    }
    if (gk_dtype_from_object(array->state, "astype", values[0], &dtype) < 0)
        return NULL;
    if (values[1] && gk_take_flag("astype", "copy", values[1], &copy) < 0)
        return NULL;
    if (!copy && dtype == array->array.dtype)
        return Py_NewRef(self);
    return convert(self, dtype, values[2]);
}

PyObject *gk_method_copied(PyObject *self, PyObject *unused) {
    (void)unused; /* of a deep copy what it has copied so far */
    return gk_device_array_copy("copy", self, NULL);
}

PyObject *gk_method_copy(PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                         PyObject *keywords) {
    static const char *const names[] = {"stream", NULL};
    static const gk_signature signature = {"copy", names, 0, 0};
    PyObject *stream;
    if (gk_parse(&signature, arguments, count, keywords, &stream) < 0)
        return NULL;
    return gk_device_array_copy("copy", self, stream);
}
