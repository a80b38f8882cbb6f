/* Event: a moment in a stream's work, for timing what runs on the device. */
#ifndef GK_EVENT_H
#define GK_EVENT_H

#include <Python.h>

extern PyType_Spec gk_event_spec;

#endif
