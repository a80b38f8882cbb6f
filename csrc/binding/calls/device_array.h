/* DeviceArray, the type: attributes, operators and methods. */
#ifndef GK_DEVICE_ARRAY_H
#define GK_DEVICE_ARRAY_H

#include <Python.h>

extern PyType_Spec gk_device_array_spec;

#endif
