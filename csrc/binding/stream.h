/* gpukern.Stream and gpukern.Graph. */
#ifndef GK_STREAM_H
#define GK_STREAM_H

#include <Python.h>

extern PyType_Spec gk_stream_spec;
extern PyType_Spec gk_graph_spec;

#endif
