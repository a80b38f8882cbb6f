/* NumPy's C API, whose table all files here share; gk_load_numpy fills it. */
#ifndef GK_NUMPY_API_H
#define GK_NUMPY_API_H

#define PY_ARRAY_UNIQUE_SYMBOL gk_numpy_api
#ifndef GK_LOADS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#endif
