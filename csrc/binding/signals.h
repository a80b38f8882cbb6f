/* Ctrl-C in the middle of work that runs without the GIL. */
#ifndef GK_SIGNALS_H
#define GK_SIGNALS_H

#include <Python.h>

#include "engine/call.h"
#include "engine/pipeline.h"

typedef struct gk_listener {
    gk_interruption base;
    PyThreadState *thread;
} gk_listener;

/* Give up the GIL and have the call ask for signals; take the GIL again. */
void gk_listen(gk_listener *listener, gk_call *call);
void gk_listen_end(gk_listener *listener);

#endif
