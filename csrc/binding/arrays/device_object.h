/* What a DeviceArray is: an array in device memory, owned by a Python object or a view of another
   one's. Its type and methods are in calls/device_array.c. */
#ifndef GK_DEVICE_OBJECT_H
#define GK_DEVICE_OBJECT_H

#include <Python.h>

#include "base/array.h"
#include "binding/state.h"
#include "engine/call.h"

typedef struct gk_device_array {
    PyObject ob_base;
    gk_array array;
    gk_device *device;
    gk_stream stream;        /* its home: see gk_call_wait */
    PyObject *owner;         /* of memory that this array shows; NULL: it is the array's own */
    uint64_t capture;        /* of a Stream of ours that made it, or 0 */
    PyObject *stream_keeper; /* holds that stream open, or the capture's; or NULL */
    gk_state *state;
    PyObject *module; /* keeps the state: a collection at exit may clear the type first */
    PyObject *weak_references;
} gk_device_array;

bool gk_is_device_array(const gk_state *state, PyObject *object);
/* Whether it is made by what is being captured: it has no values, and may have none for long. */
bool gk_is_being_captured(const gk_device_array *array);
/* The stream that work elsewhere has to wait for. */
gk_stream gk_producer_of(const gk_device_array *array);
/* The number of the device that its memory is on, whichever the thread has chosen. */
int gk_device_number(const gk_device_array *array);

/* Raise that argument `name` is on that device and the call is not; always -1. */
int gk_refuse_place(const gk_call *call, const char *name, int there);

/* A new array of that shape and dtype on the call's stream, its values undefined. */
PyObject *gk_device_array_new(gk_state *state, gk_call *call, const gk_array *like);
/* The same memory seen as `view`. */
PyObject *gk_device_array_view(gk_device_array *source, const gk_array *view);
/* Memory of others, on the call's stream; `owner` keeps it alive. */
PyObject *gk_device_array_lent(gk_state *state, const gk_call *call, const gk_array *lent,
                               PyObject *owner);

/* Of the type. */
void gk_device_array_deallocate(PyObject *self);
int gk_device_array_traverse(PyObject *self, visitproc visit, void *arg);

#endif
