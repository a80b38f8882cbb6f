/* DLPack: memory lent to and by other libraries, with no copy. */
#ifndef GK_DLPACK_H
#define GK_DLPACK_H

#include "binding/arrays/dlpack_abi.h"
#include "binding/state.h"
#include "engine/call.h"

/* The table in a type's capsule; NULL, and nothing raised, where it is of another version. */
const gk_dl_exchange *gk_dlpack_exchange(PyObject *capsule);

/* An object's memory by its type's table, as long as the object lives (`show`) or the keeper does
   (`borrow`); by its __dlpack__ (`import`). -1: raised, blaming argument `name`. The pointer is not
   checked. */
int gk_dlpack_show(gk_call *call, const char *name, const gk_dl_exchange *exchange,
                   PyObject *object, gk_array *array, PyObject **keeper);
int gk_dlpack_borrow(gk_call *call, const char *name, const gk_dl_exchange *exchange,
                     PyObject *object, gk_array *array, PyObject **keeper);
int gk_dlpack_import(gk_state *state, gk_call *call, const char *name, PyObject *object,
                     gk_array *array, PyObject **keeper);

/* The number of the CUDA device that a tensor is on, by its type's table or its __dlpack_device__;
   -1: on another kind of device; -2: raised, blaming argument `name`. */
int gk_dlpack_shown_place(const gk_dl_exchange *exchange, PyObject *object);
int gk_dlpack_place(gk_state *state, const char *operation, const char *name, PyObject *object);

/* What an object lends by __dlpack__, asked with these arguments; without max_version where it
   knows of no versions. NULL: raised. */
PyObject *gk_dlpack_ask(const gk_state *state, PyObject *object, PyObject *named);

/* A new capsule of an array's memory; `owner` lives as long as somebody uses it. */
PyObject *gk_dlpack_export(const gk_array *array, gk_dl_device device, PyObject *owner,
                           bool versioned, bool copied);

/* What a backend's memory is to DLPack. */
gk_dl_device gk_dlpack_device(const gk_backend *backend);

#endif
