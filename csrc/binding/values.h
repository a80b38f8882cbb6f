/* Python's own values, arguments and exceptions, as C takes them; nothing of NumPy. */
#ifndef GK_VALUES_H
#define GK_VALUES_H

#include <Python.h>

#include "base/array.h"
#include "device/backend.h"

/* A fast function, as a table of methods has it: the function and how it is called. */
typedef PyObject *const *gk_arguments;
#define GK_FAST(name) (PyCFunction)(void (*)(void)) name, METH_FASTCALL | METH_KEYWORDS

/* How a function takes its arguments: the first `required` by position only, up to `positional` by
   position or name, the rest by name only. */
typedef struct gk_signature {
    const char *function;
    const char *const *names; /* ends in NULL */
    int required;
    int positional;
} gk_signature;

/* Sort the arguments of a fast call into `values` (borrowed; NULL where not given). */
int gk_parse(const gk_signature *signature, PyObject *const *arguments, Py_ssize_t count,
             PyObject *keywords, PyObject **values);

/* The same of a type's constructor. */
int gk_parse_new(const gk_signature *signature, PyObject *positional, PyObject *named,
                 PyObject **values);

/* The same of a function that takes no arguments. */
int gk_parse_none(const char *function, PyObject *const *arguments, Py_ssize_t count,
                  PyObject *keywords);

/* A whole number, of what is one: a truth value is none, whatever Python makes of it. */
PyObject *gk_whole_number(PyObject *object);

/* Raise that the argument at `index` is missing; always returns -1. */
int gk_refuse_missing(const gk_signature *signature, Py_ssize_t index);

/* Put the operation's name before what NumPy or Python raised, in the built-in exception that it is
   a kind of; always returns -1. */
int gk_name_failure(const char *operation);

/* A tuple of the lengths. */
PyObject *gk_lengths_tuple(const int64_t *lengths, int count);
PyObject *gk_shape_tuple(const gk_array *array);

/* None (0), an integer handle, another library's stream, or an object with __cuda_stream__. 0 and 1
   are the legacy default stream, 2 is the default stream of the calling thread. */
int gk_stream_from_object(const char *function, PyObject *object, gk_stream *stream);

#endif
