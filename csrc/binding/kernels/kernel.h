/* Kernel: a kernel of a user's module, to be called. */
#ifndef GK_KERNEL_H
#define GK_KERNEL_H

#include <Python.h>

extern PyType_Spec gk_kernel_spec;

#endif
