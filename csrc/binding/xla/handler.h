/* The function that XLA calls for an operation of gpukern's, as JAX registers it. */
#ifndef GK_XLA_HANDLER_H
#define GK_XLA_HANDLER_H

#include <Python.h>

/* xla_target(on_gpu): the function in a capsule, for buffers on a GPU or on the host. */
PyObject *gk_xla_target(PyObject *module, PyObject *on_gpu);

#endif
