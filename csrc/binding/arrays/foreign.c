#include "binding/arrays/foreign.h"

#include "binding/arrays/cuda_interface.h"
#include "binding/arrays/device_object.h"
#include "binding/arrays/dlpack.h"
#include "binding/values.h"

/* Nothing raised where the type has none. */
static PyObject *of_type(gk_state *state, PyTypeObject *type, gk_name name) {
    PyObject *value = PyObject_GetAttr((PyObject *)type, state->names[name]);
    PyErr_Clear();
    return value;
}

static bool type_has(gk_state *state, PyTypeObject *type, gk_name name) {
    PyObject *value = of_type(state, type, name);
    Py_XDECREF(value);
    return value != NULL;
}

/* What a type promises, asked once: a lookup that fails costs an exception that is thrown away. */
static gk_foreign_type type_of(gk_state *state, PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    for (int i = 0; i < GK_FOREIGN_TYPES; i++)
        if (state->foreign_types[i].type == type)
            return state->foreign_types[i];
    PyObject *table = of_type(state, type, GK_NAME_EXCHANGE);
    gk_foreign_type known = {
        .type = type,
        .has_interface = type_has(state, type, GK_NAME_INTERFACE),
        .has_dlpack = type_has(state, type, GK_NAME_DLPACK),
        .has_gradients = type_has(state, type, GK_NAME_GRADIENTS),
        .exchange = table ? gk_dlpack_exchange(table) : NULL,
    };
    Py_XDECREF(table);
    gk_foreign_type *place = &state->foreign_types[state->next_foreign_type];
    PyTypeObject *forgotten = place->type;
    state->next_foreign_type = (state->next_foreign_type + 1) % GK_FOREIGN_TYPES;
    *place = known;
    Py_INCREF((PyObject *)type);
    Py_XDECREF((PyObject *)forgotten);
    return known;
}

/* An object may have the interface though its type has none; a class has it too, unbound. */
bool gk_is_foreign(gk_state *state, PyObject *object) {
    if (PyType_Check(object))
        return false;
    gk_foreign_type type = type_of(state, object);
    return type.exchange || type.has_interface || type.has_dlpack ||
           PyObject_HasAttrString(object, "__cuda_array_interface__");
}

static int interface_place(gk_state *state, PyObject *object) {
    int place = -2;
    PyObject *interface = PyObject_GetAttr(object, state->names[GK_NAME_INTERFACE]);
    if (interface)
        place = gk_engine_place(state->engine, gk_cuda_interface_data(state, interface));
    Py_XDECREF(interface);
    return place;
}

/* Asked in the way in which it is taken afterwards, so that what raises here would raise there. */
int gk_foreign_place(gk_state *state, const char *operation, const char *name, PyObject *object) {
    gk_foreign_type type = type_of(state, object);
    if (type.exchange && type.exchange->show)
        return gk_dlpack_shown_place(type.exchange, object);
    if (type.has_interface || !type.has_dlpack)
        return interface_place(state, object);
    return gk_dlpack_place(state, operation, name, object);
}

/* The pointer comes from another library: ask the driver before a kernel touches it. */
static int check_owned(const gk_state *state, gk_call *call, const char *name,
                       const gk_array *array) {
    gk_status status;
    uintptr_t first, end;
    if (gk_count(array) == 0)
        return 0;
    if (!gk_extent(array, &first, &end)) {
        PyErr_Format(PyExc_ValueError, "%s: the interface of %s has strides that leave the memory",
                     call->operation, name);
        return -1;
    }
    status = call->backend->owns(call->backend, (const void *)first, end - first, &call->error);
    if (status == GK_OK)
        return 0;
    int place = gk_engine_place(state->engine, (const void *)first);
    if (place >= 0 && place != call->device->backend->ordinal)
        return gk_refuse_place(call, name, place);
    gk_fail_in(&call->error, "%s: %s: ", call->operation, name);
    gk_raise(state, &call->error);
    return -1;
}

static int take_interface(gk_state *state, gk_call *call, const char *name, PyObject *object,
                          gk_array *array, PyObject **keeper) {
    PyObject *interface = PyObject_GetAttr(object, state->names[GK_NAME_INTERFACE]);
    if (!interface)
        return -1;
    int failed = gk_read_cuda_interface(state, call, name, interface, array);
    Py_DECREF(interface);
    if (!failed)
        *keeper = Py_NewRef(object);
    return failed;
}

int gk_take_dlpack(gk_state *state, gk_call *call, const char *name, PyObject *object,
                   gk_array *array, PyObject **keeper) {
    gk_foreign_type type = type_of(state, object);
    *keeper = NULL;
    if (!type.exchange && !type.has_dlpack) {
        PyErr_Format(
            PyExc_TypeError,
            "%s: %s has to be an array with __dlpack__, not %S; gpukern.to_device copies a "
            "NumPy array",
            call->operation, name, (PyObject *)Py_TYPE(object));
        return -1;
    }
    int failed = type.exchange ? gk_dlpack_borrow(call, name, type.exchange, object, array, keeper)
                               : gk_dlpack_import(state, call, name, object, array, keeper);
    if (!failed && check_owned(state, call, name, array) == 0)
        return 0;
    Py_CLEAR(*keeper);
    return -1;
}

/* What PyTorch's own interface refuses, and its table of functions does not ask. */
static int refuse_gradients(gk_state *state, const gk_call *call, const char *name,
                            PyObject *object) {
    PyObject *required = PyObject_GetAttr(object, state->names[GK_NAME_GRADIENTS]);
    if (!required)
        return -1;
    int is_required = PyObject_IsTrue(required);
    Py_DECREF(required);
    if (is_required > 0)
        PyErr_Format(PyExc_RuntimeError, "%s: %s requires grad, which would be lost; use .detach()",
                     call->operation, name);
    return is_required == 0 ? 0 : -1;
}

int gk_take_foreign(gk_state *state, gk_call *call, const char *name, PyObject *object,
                    gk_array *array, PyObject **keeper) {
    gk_foreign_type type = type_of(state, object);
    *keeper = NULL;
    if (type.has_gradients && refuse_gradients(state, call, name, object) < 0)
        return -1;
    int failed;
    if (type.exchange && type.exchange->show)
        failed = gk_dlpack_show(call, name, type.exchange, object, array, keeper);
    else if (type.has_interface || !type.has_dlpack)
        failed = take_interface(state, call, name, object, array, keeper);
    else
        failed = gk_dlpack_import(state, call, name, object, array, keeper);
    if (!failed && check_owned(state, call, name, array) == 0)
        return 0;
    Py_CLEAR(*keeper);
    return -1;
}
