/* Grid, block and shared memory of a launch, as a user gives them. */
#ifndef GK_LAUNCH_SHAPE_H
#define GK_LAUNCH_SHAPE_H

#include <Python.h>

#include "engine/call.h"

/* One to three sides: a number, or a sequence of them. -1: raised, blaming `name`. */
int gk_take_sides(const gk_call *call, const char *name, PyObject *object, unsigned *sides);
/* Bytes; NULL stands for none. */
int gk_take_shared(const gk_call *call, PyObject *object, size_t *bytes);

/* Against what the device and the kernel take; says what would fit. */
int gk_check_launch(const gk_call *call, const gk_launch *launch);

#endif
