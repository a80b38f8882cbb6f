/* DeviceArray: an array in device memory, owned by a Python object or a view of another one's. */
#ifndef GK_DEVICE_ARRAY_H
#define GK_DEVICE_ARRAY_H

#include "binding/arrays/operands.h"
#include "engine/transfer.h"

typedef struct gk_device_array {
    PyObject ob_base;
    gk_array array;
    gk_device *device;
    gk_stream stream;        /* its home: see gk_call_wait */
    PyObject *owner;         /* of memory that this array shows; NULL: it is the array's own */
    PyObject *stream_keeper; /* holds that stream open; or NULL */
    gk_state *state;
    PyObject *module; /* keeps the state: a collection at exit may clear the type first */
    PyObject *weak_references;
} gk_device_array;

extern PyType_Spec gk_device_array_spec;

bool gk_is_device_array(const gk_state *state, PyObject *object);

/* A new array of that shape and dtype on the call's stream, its values undefined. */
PyObject *gk_device_array_new(gk_state *state, gk_call *call, const gk_array *like);
/* The memory that a DLPack producer lends, as an array, or a copy where `copy` asks for one or the
   layout is not ours. */
PyObject *gk_device_array_from_dlpack(gk_state *state, PyObject *source, PyObject *copy);
/* A copy in device memory of a host or device array. */
PyObject *gk_device_array_copy(gk_state *state, PyObject *source, PyObject *stream);

/* Run the call where the array is ordered. -1: raised. */
int gk_device_array_go_home(gk_device_array *self, gk_call *call);
/* Its values in a new NumPy array, or in the one that is given. */
PyObject *gk_device_array_to_host(gk_device_array *self, PyObject *out);
PyObject *gk_device_array_repr(PyObject *self);

#endif
