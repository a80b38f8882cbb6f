/* gpukern.Stream and gpukern.Graph. */
#ifndef GK_STREAM_H
#define GK_STREAM_H

#include <Python.h>

#include "binding/state.h"
#include "engine/engine.h"

extern PyType_Spec gk_stream_spec;
extern PyType_Spec gk_graph_spec;

/* Which of its captures a Stream of ours is in; 0: in none, or it is something else. */
uint64_t gk_capture_of(const gk_state *state, PyObject *object);

/* The handle of a Stream that it is known to be. */
gk_stream gk_stream_handle(PyObject *stream);

/* The device of a Stream of ours; NULL of something else. */
gk_device *gk_stream_device(const gk_state *state, PyObject *object);

/* The stream that the user names to the call; a Stream of another device is refused, and a number
   that cannot be one, where the device would follow it. -1: raised. */
int gk_read_stream(const gk_state *state, const gk_call *call, PyObject *object, gk_stream *stream);
/* Run the call on the stream that the user names; after gk_profile_begin. -1: raised. */
int gk_take_stream(gk_state *state, gk_call *call, PyObject *object);

#endif
