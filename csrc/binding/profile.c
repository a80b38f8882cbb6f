#include "binding/profile.h"

#include "binding/values.h"

void gk_profile_begin(const gk_state *state, gk_call *call, gk_profiled *profiled) {
    if (!state->profile)
        return;
    *profiled = (gk_profiled){.start = gk_seconds()};
    call->phases = &profiled->phases;
}

static PyObject *shape_list(const gk_array *operands, int operand_count) {
    PyObject *shapes = PyList_New(operand_count);
    for (int i = 0; i < operand_count && shapes; i++) {
        PyObject *shape = gk_shape_tuple(&operands[i]);
        if (!shape || PyList_SetItem(shapes, i, shape) < 0)
            Py_CLEAR(shapes);
    }
    return shapes;
}

int gk_profile_end(gk_state *state, gk_call *call, const gk_profiled *profiled,
                   const gk_array *operands, int operand_count) {
    if (!call->phases || !state->profile)
        return 0;
    const gk_phases *phases = &profiled->phases;
    double wall = gk_seconds() - profiled->start;
    double host = wall - phases->allocate - phases->host_to_device - phases->kernel -
                  phases->device_to_host + phases->overlapped;
    PyObject *shapes = shape_list(operands, operand_count);
    if (!shapes)
        return -1;
    PyObject *entry = Py_BuildValue(
        "{s:s,s:z,s:s,s:N,s:d,s:d,s:d,s:d,s:d,s:d,s:d,s:n,s:n}", "op", call->operation, "variant",
        call->ran ? call->ran->variant : NULL, "dtype",
        operand_count ? gk_dtype_name(operands[0].dtype) : "", "shapes", shapes, "allocate",
        phases->allocate, "host_to_device", phases->host_to_device, "kernel", phases->kernel,
        "device_to_host", phases->device_to_host, "overlapped", phases->overlapped, "host",
        host > 0.0 ? host : 0.0, "wall", wall, "bytes_in", (Py_ssize_t)phases->bytes_in,
        "bytes_out", (Py_ssize_t)phases->bytes_out);
    int failed = entry ? PyList_Append(state->profile, entry) : -1;
    Py_XDECREF(entry);
    return failed;
}
