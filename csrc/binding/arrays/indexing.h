/* NumPy's basic indexing and reshaping, of views: what they do to data, shape and strides. */
#ifndef GK_INDEXING_H
#define GK_INDEXING_H

#include <Python.h>

#include "base/array.h"

/* The part of `array` that integers, slices, Ellipsis and None, one or a tuple of them, pick out.
   -1: raised. */
int gk_index_view(const gk_array *array, PyObject *key, gk_array *view);

/* The shape that the arguments of a reshape ask for, lengths or one sequence of them, of which one
   may be -1: as many elements as `array` has. -1: raised. */
int gk_reshape_shape(const gk_array *array, PyObject *const *arguments, Py_ssize_t count,
                     gk_array *shaped);

/* The array with its axes in reverse. */
void gk_reversed_view(const gk_array *array, gk_array *view);
/* The array with its axes in the order that the arguments of a transpose name, integers or one
   sequence of them; in reverse where they are none or None. -1: raised. */
int gk_transposed_view(const gk_array *array, PyObject *const *arguments, Py_ssize_t count,
                       gk_array *view);

#endif
