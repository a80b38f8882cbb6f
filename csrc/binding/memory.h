/* Memory on the device and pinned memory, as functions of the module. */
#ifndef GK_MEMORY_FUNCTIONS_H
#define GK_MEMORY_FUNCTIONS_H

#include <Python.h>

/* to_device, from_dlpack, empty, empty_pinned, pin, synchronize, release_memory. -1: raised. */
int gk_add_memory(PyObject *module);

#endif
