#include "binding/kernels/image.h"

#include <stdbool.h>

#include "binding/arrays/device_object.h"
#include "binding/arrays/dtypes.h"
#include "binding/values.h"
#include "ops/user_kernel.h"

typedef struct image_object {
    PyObject ob_base;
    gk_state *state;
    PyObject *module; /* keeps the state: a collection at exit may clear the type first */
    PyObject *code;   /* bytes; owned, or NULL */
    bool is_kept;
    gk_device *devices[GK_MOST_DEVICES];
    gk_module *modules[GK_MOST_DEVICES]; /* NULL until first wanted */
} image_object;

static PyObject *image_new(PyTypeObject *type, PyObject *positional, PyObject *named) {
    PyObject *code = PyTuple_Size(positional) == 1 ? PyTuple_GetItem(positional, 0) : NULL;
    if (!code || !PyBytes_Check(code) || (named && PyDict_Size(named) > 0)) {
        PyErr_SetString(PyExc_TypeError, "Image: takes the bytes of a cubin, a fatbin or PTX");
        return NULL;
    }
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    image_object *self = (image_object *)allocate(type, 0);
    if (!self)
        return NULL;
    self->state = PyType_GetModuleState(type);
    self->module = Py_NewRef(self->state->module);
    self->code = Py_NewRef(code);
    return (PyObject *)self;
}

static void image_deallocate(PyObject *object) {
    image_object *self = (image_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *module = self->module;
    PyObject_GC_UnTrack(object);
    for (int i = 0; i < GK_MOST_DEVICES && !self->is_kept; i++) {
        gk_backend *backend = self->modules[i] ? gk_device_usable(self->devices[i]) : NULL;
        if (backend)
            backend->module_free(backend, self->modules[i]);
    }
    Py_XDECREF(self->code);
    PyObject_GC_Del(object);
    Py_DECREF(type);
    Py_XDECREF(module);
}

static int image_traverse(PyObject *object, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((image_object *)object)->module);
    return 0;
}

void gk_image_keep(PyObject *image) {
    ((image_object *)image)->is_kept = true;
}

/* Two threads may load at once: the first one's module stays. */
static int load(image_object *self, gk_call *call) {
    gk_backend *backend = call->backend;
    int place = backend->ordinal;
    gk_module *loaded = NULL;
    gk_status status;
    char *code;
    Py_ssize_t bytes;
    if (PyBytes_AsStringAndSize(self->code, &code, &bytes) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    status = gk_call_blame(
        call, backend->module_load(backend, code, (size_t)bytes, &loaded, &call->error));
    Py_END_ALLOW_THREADS;
    if (status != GK_OK) {
        gk_raise(self->state, &call->error);
        return -1;
    }
    if (self->modules[place]) {
        gk_backend *own = call->device->backend; /* what gives back does not fail */
        own->module_free(own, loaded);
        return 0;
    }
    self->devices[place] = call->device;
    self->modules[place] = loaded;
    return 0;
}

int gk_image_kernel(gk_state *state, gk_call *call, PyObject *image, const char *symbol,
                    gk_kernel *kernel) {
    image_object *self = (image_object *)image;
    gk_backend *backend = call->backend;
    gk_module **slot = &self->modules[backend->ordinal];
    gk_status status;
    if (!*slot && load(self, call) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    status =
        gk_call_blame(call, backend->module_kernel(backend, *slot, symbol, kernel, &call->error));
    Py_END_ALLOW_THREADS;
    if (status == GK_OK)
        return 0;
    gk_raise(state, &call->error);
    return -1;
}

/* The sizes of a kernel's parameters, as the module tells them. */
static PyObject *image_parameters(PyObject *object, PyObject *symbol) {
    image_object *self = (image_object *)object;
    gk_call call;
    gk_kernel kernel = {0};
    size_t bytes = 0;
    const char *text = PyUnicode_Check(symbol) ? PyUnicode_AsUTF8AndSize(symbol, NULL) : NULL;
    if (!text) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "parameters: symbol has to be a text");
        return NULL;
    }
    if (gk_begin(self->state, &call, "compile") < 0 ||
        gk_image_kernel(self->state, &call, object, text, &kernel) < 0)
        return NULL;
    PyObject *sizes = PyList_New(0);
    for (int i = 0; i < GK_MOST_PARAMETERS && sizes; i++) {
        gk_backend *backend = call.backend;
        if (gk_call_blame(&call, backend->kernel_parameter(backend, &kernel, i, &bytes,
                                                           &call.error)) != GK_OK) {
            Py_DECREF(sizes);
            return gk_raise(self->state, &call.error);
        }
        if (bytes == 0)
            break;
        PyObject *size = PyLong_FromSize_t(bytes);
        if (!size || PyList_Append(sizes, size) < 0)
            Py_CLEAR(sizes);
        Py_XDECREF(size);
    }
    return sizes;
}

/* The variable of that name on the call's device. -1: raised. */
static int find_variable(image_object *self, gk_call *call, PyObject *symbol, void **device,
                         size_t *bytes) {
    gk_backend *backend = call->backend;
    gk_module **slot = &self->modules[backend->ordinal];
    gk_status status;
    const char *text = PyUnicode_AsUTF8AndSize(symbol, NULL);
    if (!text || (!*slot && load(self, call) < 0))
        return -1;
    Py_BEGIN_ALLOW_THREADS;
    status = gk_call_blame(
        call, backend->module_symbol(backend, *slot, text, device, bytes, &call->error));
    Py_END_ALLOW_THREADS;
    if (status == GK_OK)
        return 0;
    gk_raise(self->state, &call->error);
    return -1;
}

static PyObject *image_symbol(PyObject *object, PyObject *symbol) {
    image_object *self = (image_object *)object;
    gk_call call;
    void *device;
    size_t bytes;
    if (!PyUnicode_Check(symbol)) {
        PyErr_SetString(PyExc_TypeError, "symbol: symbol has to be a text");
        return NULL;
    }
    if (gk_begin(self->state, &call, "symbol") < 0 ||
        find_variable(self, &call, symbol, &device, &bytes) < 0)
        return NULL;
    return Py_BuildValue("(Kn)", (unsigned long long)(uintptr_t)device, (Py_ssize_t)bytes);
}

/* The variable as an array, which keeps the image and so the module. */
static PyObject *image_array(PyObject *object, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *keywords) {
    static const char *const names[] = {"symbol", "dtype", "shape", NULL};
    static const gk_signature signature = {"symbol", names, 3, 3};
    image_object *self = (image_object *)object;
    gk_call call;
    gk_array view;
    PyObject *values[3];
    size_t bytes;
    gk_clear_view(&view);
    if (gk_parse(&signature, arguments, count, keywords, values) < 0)
        return NULL;
    if (!PyUnicode_Check(values[0])) {
        PyErr_SetString(PyExc_TypeError, "symbol: symbol has to be a text");
        return NULL;
    }
    if (gk_dtype_from_object(self->state, "symbol", values[1], &view.dtype) < 0 ||
        gk_shape_from_object("symbol", values[2], &view) < 0 ||
        gk_begin(self->state, &call, "symbol") < 0 ||
        find_variable(self, &call, values[0], &view.data, &bytes) < 0)
        return NULL;
    if (!gk_is_addressable(&view) || gk_bytes(&view) > bytes) {
        PyErr_Format(PyExc_ValueError, "symbol: %U has %zu bytes, and %s of %s is more", values[0],
                     bytes, gk_shape_text(&view).text, gk_dtype_name(view.dtype));
        return NULL;
    }
    gk_make_contiguous(&view);
    return gk_device_array_lent(self->state, &call, &view, object);
}

static PyMethodDef methods[] = {
    {"symbol", image_symbol, METH_O,
     "symbol($self, symbol, /)\n--\n\nThe address and the bytes of a variable, on this thread's "
     "device."},
    {"array", GK_FAST(image_array),
     "array($self, symbol, dtype, shape, /)\n--\n\nThe memory of a variable as a DeviceArray, "
     "which "
     "keeps the image."},
    {"parameters", image_parameters, METH_O,
     "parameters($self, symbol, /)\n--\n\nThe bytes of each parameter of a kernel."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Image(code, /)\n--\n\nMachine code or PTX for kernels, loaded where it is used."},
    {Py_tp_new, image_new},
    {Py_tp_dealloc, image_deallocate},
    {Py_tp_traverse, image_traverse},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec gk_image_spec = {
    .name = "gpukern._core.Image",
    .basicsize = sizeof(image_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
