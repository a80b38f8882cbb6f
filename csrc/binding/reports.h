/* What the engine tells of itself: its table of kernels, devices, driver, libraries, build. */
#ifndef GK_REPORTS_H
#define GK_REPORTS_H

#include "binding/state.h"

PyObject *gk_report_rows(gk_state *state);
/* The place in that table of the row that would multiply two arrays, or None. */
PyObject *gk_report_matmul_row(gk_state *state, PyObject *const *objects, bool by_rule);
PyObject *gk_report_devices(gk_state *state);
PyObject *gk_report_driver(void);
PyObject *gk_report_cublas(gk_state *state);
PyObject *gk_report_build(void);

#endif
