#include "binding/signals.h"

/* Between chunks of a long call signals are heard, with the GIL that the call gave up. */
static bool hear_signals(gk_interruption *interruption) {
    gk_listener *self = (gk_listener *)interruption;
    PyEval_RestoreThread(self->thread);
    bool raised = PyErr_CheckSignals() != 0;
    self->thread = PyEval_SaveThread();
    return raised;
}

void gk_listen(gk_listener *listener, gk_call *call) {
    listener->base.wanted = hear_signals;
    call->interruption = &listener->base;
    listener->thread = PyEval_SaveThread();
}

void gk_listen_end(gk_listener *listener) {
    PyEval_RestoreThread(listener->thread);
}
