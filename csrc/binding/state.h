/* What one instance of the Python module owns. */
#ifndef GK_STATE_H
#define GK_STATE_H

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>

#include "device/backend.h"

typedef struct gk_call gk_call;
typedef struct gk_engine gk_engine;
typedef struct gk_error gk_error;

/* Names that are looked up in other libraries' objects and dicts, interned once. */
#define GK_NAMES(X)                                                                                \
    X(INTERFACE, "__cuda_array_interface__")                                                       \
    X(DLPACK, "__dlpack__")                                                                        \
    X(DLPACK_DEVICE, "__dlpack_device__")                                                          \
    X(EXCHANGE, "__dlpack_c_exchange_api__")                                                       \
    X(GRADIENTS, "requires_grad")                                                                  \
    X(VERSION, "version")                                                                          \
    X(SHAPE, "shape")                                                                              \
    X(TYPESTR, "typestr")                                                                          \
    X(STRIDES, "strides")                                                                          \
    X(DATA, "data")                                                                                \
    X(MASK, "mask")                                                                                \
    X(STREAM, "stream")

typedef enum gk_name {
#define GK_ENUMERATE(name, text) GK_NAME_##name,
    GK_NAMES(GK_ENUMERATE)
#undef GK_ENUMERATE
        GK_NAME_COUNT,
} gk_name;

/* What a type of another library promises. */
typedef struct gk_foreign_type {
    PyTypeObject *type; /* owned */
    bool has_interface, has_dlpack, has_gradients;
    const struct gk_dl_exchange *exchange; /* or NULL */
} gk_foreign_type;

enum { GK_FOREIGN_TYPES = 4 };

typedef struct gk_state {
    PyObject *module;  /* this module; not owned, and owned by every object that uses the state */
    gk_engine *engine; /* owned */
    PyObject *cuda_error;
    PyObject *device_lost_error;
    PyObject *simulator_warning;
    PyTypeObject *device_array_type;
    PyTypeObject *event_type;
    PyTypeObject *stream_type;
    PyTypeObject *graph_type;
    PyTypeObject *image_type, *kernel_type;
    PyTypeObject *in_type, *out_type, *inout_type;
    PyObject *bfloat16; /* ml_dtypes' dtype, once one has been seen or asked for; else NULL */
    PyObject *profile;  /* the list that a gpukern.profile() fills; else NULL */
    PyObject *names[GK_NAME_COUNT];
    gk_foreign_type foreign_types[GK_FOREIGN_TYPES]; /* the last few that were seen */
    int next_foreign_type;
    PyMethodDef *operation_methods; /* owned */
    bool simulator_shown;           /* whether the line that says so has been given */
} gk_state;

/* Raise the Python exception that fits the error; always returns NULL. */
PyObject *gk_raise(const gk_state *state, const gk_error *error);

/* Open the device of that number for a call, with the GIL, and say once that it is the simulator.
   -1: raised; then there is nothing to end. */
int gk_begin_on(gk_state *state, gk_call *call, int ordinal, const char *operation);
/* The same on the device that the thread has chosen. */
int gk_begin(gk_state *state, gk_call *call, const char *operation);

/* Where cuBLAS and the tables of a device may be, from the Python side, a path a line; called
   without the GIL. */
void gk_locate_cublas(void *context, char *candidates, size_t size);
void gk_locate_tables(void *context, const char *device, char *paths, size_t size);
#endif
