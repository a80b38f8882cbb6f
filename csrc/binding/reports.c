#include "binding/reports.h"

#include "binding/arrays/operands.h"
#include "device/registry.h"
#include "engine/call.h"
#include "ops/matmul.h"

static const char *text_or_none(const char *text) {
    return text && *text ? text : NULL;
}

static PyObject *one_row(const gk_row *row, gk_backend *backend) {
    gk_error why = {0};
    bool runs;
    Py_BEGIN_ALLOW_THREADS; /* cuBLAS may be looked for, and that needs the GIL */
    runs = gk_row_runs(row, backend, &why);
    Py_END_ALLOW_THREADS;
    return Py_BuildValue("{s:s,s:s,s:s,s:z,s:s,s:i,s:i,s:(i,i),s:i,s:O,s:O,s:z}", "op",
                         gk_op_name(row->op), "variant", row->variant, "dtype",
                         gk_dtype_name(row->dtype), "symbol", row->symbol, "note", row->note,
                         "minimum_capability", gk_row_capability(row), "threads", row->threads,
                         "tile", row->tile_rows, row->tile_columns, "alignment", row->alignment,
                         "named", row->named ? Py_True : Py_False, "runs",
                         runs ? Py_True : Py_False, "why", runs ? NULL : why.text);
}

PyObject *gk_report_rows(gk_state *state) {
    gk_call call;
    size_t count;
    const gk_row *rows = gk_rows(&count);
    if (gk_begin(state, &call, "variants") < 0)
        return NULL;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; i < count && list; i++) {
        PyObject *row = one_row(&rows[i], call.backend);
        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyObject *gk_report_matmul_row(gk_state *state, PyObject *const *objects, bool by_rule) {
    static const char *const names[] = {"a", "b"};
    gk_call call;
    gk_array arrays[2];
    PyObject *keepers[2];
    size_t count;
    const gk_row *row = NULL;
    int ordinal = gk_device_of(state, "variants", names, objects, 2, NULL);
    if (ordinal < 0 || gk_begin_on(state, &call, ordinal, "variants") < 0 ||
        gk_take_operands(state, &call, names, objects, 2, arrays, keepers, NULL) < 0)
        return NULL;
    gk_status status;
    Py_BEGIN_ALLOW_THREADS; /* as for a call: a library may be looked for */
    status = gk_call_blame(&call, gk_matmul_row(&call, arrays, by_rule, &row));
    gk_call_end(&call);
    Py_END_ALLOW_THREADS;
    gk_drop_operands(keepers, 2);
    if (status != GK_OK)
        return gk_raise(state, &call.error);
    if (!row)
        Py_RETURN_NONE;
    return PyLong_FromSsize_t(row - gk_rows(&count));
}

/* The visitor has no way to stop, so a failure is left raised and seen afterwards. */
static void add_attribute(void *context, const char *name, int value) {
    PyObject *number = PyErr_Occurred() ? NULL : PyLong_FromLong(value);
    if (number)
        (void)PyDict_SetItemString(context, name, number);
    Py_XDECREF(number);
}

static PyObject *device_dict(int ordinal, const gk_device_summary *summary, PyObject *attributes) {
    if (PyErr_Occurred())
        return NULL;
    return Py_BuildValue("{s:i,s:s,s:z,s:i,s:n,s:n,s:O}", "ordinal", ordinal, "name", summary->name,
                         "uuid", text_or_none(summary->uuid), "capability", summary->capability,
                         "memory_total", (Py_ssize_t)summary->memory_total, "memory_free",
                         (Py_ssize_t)summary->memory_free, "attributes", attributes);
}

static PyObject *describe_device(const gk_state *state, const gk_device *open, int ordinal) {
    gk_device_summary summary = {0};
    gk_error error = {0};
    PyObject *attributes = PyDict_New();
    if (!attributes)
        return NULL;
    PyObject *device = NULL;
    if (gk_device_describe(open, ordinal, &summary, add_attribute, attributes, &error) == GK_OK)
        device = device_dict(ordinal, &summary, attributes);
    else
        gk_raise(state, &error);
    Py_DECREF(attributes);
    return device;
}

PyObject *gk_report_devices(gk_state *state) {
    gk_call call;
    int count;
    if (gk_begin(state, &call, "device_info") < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    count = gk_device_count(call.device);
    Py_END_ALLOW_THREADS;
    PyObject *list = PyList_New(0);
    for (int i = 0; i < count && list; i++) {
        PyObject *device = describe_device(state, call.device, i);
        if (!device || PyList_Append(list, device) < 0)
            Py_CLEAR(list);
        Py_XDECREF(device);
    }
    return list;
}

PyObject *gk_report_driver(void) {
    gk_driver_report report;
    Py_BEGIN_ALLOW_THREADS;
    gk_describe_driver(&report);
    Py_END_ALLOW_THREADS;
    bool works = report.problem.status == GK_OK;
    PyObject *version = report.version ? PyLong_FromLong(report.version) : Py_NewRef(Py_None);
    if (!version)
        return NULL;
    return Py_BuildValue("{s:z,s:N,s:z,s:i,s:z}", "library", text_or_none(report.path), "version",
                         version, "status", text_or_none(report.status), "devices", report.devices,
                         "problem", works ? NULL : report.problem.text);
}

PyObject *gk_report_cublas(gk_state *state) {
    gk_call call;
    gk_cublas_report report;
    if (gk_begin(state, &call, "cublas_report") < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    gk_device_describe_cublas(call.device, &report);
    Py_END_ALLOW_THREADS;
    PyObject *version = report.version ? PyLong_FromLong(report.version) : Py_NewRef(Py_None);
    if (!version)
        return NULL;
    return Py_BuildValue("{s:z,s:N,s:z}", "library", text_or_none(report.path), "version", version,
                         "problem", text_or_none(report.problem.text));
}

static PyObject *split(const char *words) {
    PyObject *text = PyUnicode_FromString(words);
    PyObject *list = text ? PyUnicode_Split(text, NULL, -1) : NULL;
    Py_XDECREF(text);
    return list;
}

PyObject *gk_report_build(void) {
#define GK_FAMILY(name) #name " "
    PyObject *families = split(
#include "gk_families.h"
    );
#undef GK_FAMILY
    gk_build_report built = gk_describe_build();
    PyObject *architectures = split(built.architectures);
    PyObject *machine_code = split(built.machine_code), *ptx = split(built.ptx);
    if (!families || !architectures || !machine_code || !ptx) {
        Py_XDECREF(families);
        Py_XDECREF(architectures);
        Py_XDECREF(machine_code);
        Py_XDECREF(ptx);
        return NULL;
    }
    return Py_BuildValue("{s:s,s:N,s:N,s:N,s:s,s:s,s:N}", "version", GK_VERSION, "architectures",
                         architectures, "machine_code", machine_code, "ptx", ptx, "nvcc",
                         GK_NVCC_VERSION, "compiler", "gcc " __VERSION__, "families", families);
}
