#include "binding/calls/invoke.h"

#include <string.h>

#include "binding/arrays/device_object.h"
#include "binding/arrays/host_arrays.h"
#include "binding/arrays/operands.h"
#include "binding/arrays/outputs.h"
#include "binding/calls/parameters.h"
#include "binding/profile.h"
#include "binding/signals.h"
#include "binding/stream.h"
#include "binding/values.h"
#include "engine/call.h"

static bool given(PyObject *object) {
    return object && !Py_IsNone(object);
}

static int take_variant(gk_call *call, PyObject *variant) {
    if (!given(variant))
        return 0;
    if (!PyUnicode_Check(variant)) {
        PyErr_Format(PyExc_TypeError,
                     "%s: variant has to be a name, as gpukern.variants() lists them, not %R",
                     call->operation, variant);
        return -1;
    }
    Py_ssize_t length;
    call->variant = PyUnicode_AsUTF8AndSize(variant, &length);
    if (call->variant && strlen(call->variant) == (size_t)length)
        return 0;
    PyErr_Format(PyExc_ValueError, "%s: unknown variant %A", call->operation, variant);
    return -1;
}

/* Shapes, dtypes and the variant, before any memory is asked for. */
static int infer(gk_state *state, gk_call *call, const gk_operation *operation,
                 const gk_array *arrays, gk_array *expected) {
    /* The first look for a row may load a library, which takes time and the GIL. */
    const gk_wish wish = gk_operation_wish(operation, arrays[0].dtype);
    bool known = gk_row_known(&wish, call->variant, call->backend);
    PyThreadState *released = known ? NULL : PyEval_SaveThread();
    gk_status status = gk_operation_infer(call, operation, arrays, expected);
    if (released)
        PyEval_RestoreThread(released);
    if (status == GK_OK)
        return 0;
    gk_raise(state, &call->error);
    return -1;
}

/* `out` where it is given; else on the device if any operand is there, and on the host if none. */
static int make_output(gk_state *state, gk_call *call, const gk_operation *operation,
                       const gk_array *arrays, const gk_options *options, const gk_array *expected,
                       gk_output *output) {
    const char *name = options->out_name ? options->out_name : "out";
    if (given(options->out))
        return gk_take_output(state, call, name, options->out, expected, arrays,
                              operation->operand_count, output);
    bool on_device = false;
    for (int i = 0; i < operation->operand_count; i++)
        on_device |= arrays[i].place == GK_DEVICE;
    if (!on_device)
        return gk_new_output(state, call, expected, output);
    output->bridge = output->keeper = NULL;
    output->object = gk_device_array_new(state, call, expected);
    if (!output->object)
        return -1;
    gk_copy_view(&output->array, &((gk_device_array *)output->object)->array);
    return 0;
}

static int run(gk_state *state, gk_call *call, const gk_operation *operation,
               const gk_array *arrays, gk_output *output) {
    gk_listener signals;
    gk_listen(&signals, call);
    gk_status status = gk_operation_run(call, operation, arrays, &output->array);
    gk_call_end(call);
    gk_listen_end(&signals);
    if (status == GK_OK)
        return gk_finish_output(call, output);
    gk_raise(state, &call->error);
    return -1;
}

/* The comparisons, and whether each holds of a left side below all of the right one, and above. */
static const struct comparison {
    const gk_operation *const *operation;
    bool below, above;
} comparisons[] = {
    {&gk_op_less, true, false},    {&gk_op_less_equal, true, false},
    {&gk_op_greater, false, true}, {&gk_op_greater_equal, false, true},
    {&gk_op_equal, false, false},  {&gk_op_not_equal, true, true},
};

static const struct comparison *comparison_of(const gk_operation *operation) {
    for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++)
        if (*comparisons[i].operation == operation)
            return &comparisons[i];
    return NULL;
}

/* What gives the answer of one whose array stands in for the number beside it: integers equal
   themselves. */
static const gk_operation *answering(const struct comparison *comparison, int order) {
    return (order < 0 ? comparison->below : comparison->above) ? gk_op_equal : gk_op_not_equal;
}

PyObject *gk_invoke(gk_state *state, const gk_operation *operation, PyObject *const *objects,
                    const gk_options *options) {
    gk_call call;
    gk_profiled profiled;
    PyObject *keepers[GK_MAX_OPERANDS];
    gk_array arrays[GK_MAX_OPERANDS], expected;
    gk_output output;
    PyObject *result = NULL;
    int count = operation->operand_count, order = 0;
    const struct comparison *comparison = comparison_of(operation);
    _Alignas(16) unsigned char parameters[GK_PARAMETER_BYTES];
    int ordinal =
        gk_device_of(state, operation->name, operation->operands, objects, count, options->out);
    if (ordinal < 0 || gk_begin_on(state, &call, ordinal, operation->name) < 0)
        return NULL;
    gk_profile_begin(state, &call, &profiled);
    if (gk_take_stream(state, &call, options->stream) < 0 ||
        take_variant(&call, options->variant) < 0 ||
        gk_take_operands(state, &call, operation->operands, objects, count, arrays, keepers,
                         comparison ? &order : NULL) < 0)
        return NULL;
    if (order)
        operation = answering(comparison, order);
    int failed =
        gk_take_parameters(state, &call, operation, options->parameters, arrays, parameters);
    if (!failed && infer(state, &call, operation, arrays, &expected) == 0 &&
        make_output(state, &call, operation, arrays, options, &expected, &output) == 0) {
        if (gk_check_operands(&call, operation->operands, keepers, count, arrays) == 0 &&
            run(state, &call, operation, arrays, &output) == 0 &&
            gk_profile_end(state, &call, &profiled, arrays, count) == 0)
            result = Py_NewRef(output.object);
        gk_drop_output(&output);
    }
    gk_drop_operands(keepers, count);
    if (result && !given(options->out) && expected.ndim == 0)
        result = gk_as_scalar(result);
    return result;
}
