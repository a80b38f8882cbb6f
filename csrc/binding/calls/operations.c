#include "binding/calls/operations.h"

#include <stdlib.h>

#include "binding/calls/invoke.h"
#include "binding/values.h"

enum { MOST_VALUES = GK_MAX_OPERANDS + GK_MAX_PARAMETERS + 2 };

/* The names of all that the operation takes: operands, which are by position only, parameters, and
   the two options of every operation. Returns how many parameters there are. */
static int name_arguments(const gk_operation *operation, const char **names) {
    int count = 0, parameters = 0;
    for (int i = 0; i < operation->operand_count; i++)
        names[count++] = operation->operands[i];
    for (; operation->parameters[parameters].name; parameters++)
        names[count++] = operation->parameters[parameters].name;
    names[count++] = "variant";
    names[count++] = "stream";
    names[count] = NULL;
    return parameters;
}

PyObject *gk_call_operation(gk_state *state, const gk_operation *operation, PyObject *self,
                            PyObject *const *arguments, Py_ssize_t count, PyObject *keywords) {
    const char *names[MOST_VALUES + 1];
    PyObject *values[MOST_VALUES];
    int operands = operation->operand_count, parameters = name_arguments(operation, names);
    int known = self ? 1 : 0;
    const gk_signature signature = {operation->name, names + known, operands - known,
                                    operands - known + parameters};
    values[0] = self;
    if (gk_parse(&signature, arguments, count, keywords, values + known) < 0)
        return NULL;
    gk_options options = {.parameters = values + operands,
                          .variant = values[operands + parameters],
                          .stream = values[operands + parameters + 1]};
    for (int i = 0; i < parameters; i++)
        if (operation->parameters[i].kind == GK_OUT)
            options.out = values[operands + i];
    return gk_invoke(state, operation, values, &options);
}

#define GK_FUNCTION(name, ...)                                                                     \
    static PyObject *name##_of(PyObject *module, PyObject *const *arguments, Py_ssize_t count,     \
                               PyObject *keywords) {                                               \
        return gk_call_operation(PyModule_GetState(module), gk_op_##name, NULL, arguments, count,  \
                                 keywords);                                                        \
    }
GK_OPERATIONS(GK_FUNCTION)

int gk_add_operations(PyObject *module, gk_state *state) {
    const struct {
        const gk_operation *operation;
        PyCFunction function;
    } functions[] = {
#define GK_ENTRY(name, ...) {gk_op_##name, (PyCFunction)(void (*)(void))name##_of},
        GK_OPERATIONS(GK_ENTRY)
#undef GK_ENTRY
    };
    enum { COUNT = sizeof functions / sizeof functions[0] };
    PyMethodDef *methods = calloc(COUNT + 1, sizeof *methods); /* the last one ends the list */
    if (!methods)
        return PyErr_NoMemory() ? 0 : -1;
    for (int i = 0; i < COUNT; i++)
        methods[i] = (PyMethodDef){functions[i].operation->name, functions[i].function,
                                   METH_FASTCALL | METH_KEYWORDS, functions[i].operation->doc};
    state->operation_methods = methods;
    return PyModule_AddFunctions(module, methods);
}
