/* dtypes and shapes, between Python and the engine. */
#ifndef GK_ARRAY_DTYPES_H
#define GK_ARRAY_DTYPES_H

#include "base/array.h"
#include "binding/state.h"

/* Load NumPy's C API; -1: raised. */
int gk_load_numpy(void);

PyObject *gk_dtype_object(gk_state *state, gk_dtype dtype); /* a new numpy.dtype */
/* Whether a numpy.dtype, of either byte order, is one that is supported, and which. */
bool gk_dtype_of(PyObject *object, gk_dtype *dtype);
/* Whatever NumPy makes a dtype of. -1: raised, blaming `function`; so below. */
int gk_dtype_from_object(gk_state *state, const char *function, PyObject *object, gk_dtype *dtype);
int gk_shape_from_object(const char *function, PyObject *object, gk_array *array);

#endif
