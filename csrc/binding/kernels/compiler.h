/* NVRTC for Python. */
#ifndef GK_BINDING_COMPILER_H
#define GK_BINDING_COMPILER_H

#include <Python.h>

#include "binding/state.h"

/* (library, name, source, options, headers, expressions), the last three tuples of texts, of the
   headers name and text by turns; gives (compiled, image, log, symbols). */
PyObject *gk_compile(gk_state *state, PyObject *arguments);
PyObject *gk_nvrtc_report(gk_state *state, PyObject *library);

#endif
