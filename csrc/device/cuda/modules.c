#include "device/cuda/modules.h"

#include <stdlib.h>
#include <string.h>

#include "device/cuda/images.h"
#include "device/registry.h"

/* One a .cu file. */
enum {
#define GK_FAMILY(name) GK_FAMILY_##name,
#include "gk_families.h"
#undef GK_FAMILY
    GK_FAMILIES,
};

static const char *const families[] = {
#define GK_FAMILY(name) #name,
#include "gk_families.h"
#undef GK_FAMILY
};

typedef struct file_module {
    CUmodule module;
    bool is_of_no_use; /* its machine code is for other GPUs */
} file_module;

typedef struct kernel_name {
    struct kernel_name *next;
    char text[];
} kernel_name;

struct gk_modules {
    kernel_name *names;             /* of users' kernels */
    gk_function *functions;         /* one a row of the registry */
    CUmodule *kernels;              /* a row's own module of PTX, where it took one */
    file_module files[GK_FAMILIES]; /* machine code */
};

gk_modules *gk_modules_new(void) {
    size_t rows;
    gk_rows(&rows);
    gk_modules *modules = calloc(1, sizeof *modules);
    if (!modules)
        return NULL;
    modules->functions = calloc(rows, sizeof *modules->functions);
    modules->kernels = calloc(rows, sizeof *modules->kernels);
    if (modules->functions && modules->kernels)
        return modules;
    gk_modules_free(modules);
    return NULL;
}

static int family_of(const gk_row *row) {
    int family = 0;
    while (strcmp(families[family], row->family) != 0)
        family++; /* every row stands in a family's file, so there is one */
    return family;
}

/* The kernel from the machine code of its file; CUDA_ERROR_NO_BINARY_FOR_GPU if that is none for
   this GPU, which is remembered. In the context and under the lock, as what follows. */
static CUresult from_machine_code(gk_cuda *cuda, const gk_row *row, CUfunction *function) {
    file_module *file = &cuda->modules->files[family_of(row)];
    const void *image = gk_machine_code(row->family);
    if (!image || file->is_of_no_use || !gk_driver_takes_machine_code(cuda->driver.version))
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    CUresult result = CUDA_SUCCESS;
    if (!file->module)
        result = cuda->driver.cuModuleLoadData(&file->module, image);
    file->is_of_no_use = result == CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (result == CUDA_SUCCESS)
        result = cuda->driver.cuModuleGetFunction(function, file->module, row->symbol);
    return result;
}

/* The kernel from its own PTX, which the driver compiles now. */
static CUresult from_ptx(gk_cuda *cuda, const gk_row *row, CUfunction *function) {
    size_t count;
    CUmodule *module = &cuda->modules->kernels[row - gk_rows(&count)];
    const void *image = gk_ptx(row->family, row->symbol, cuda->base.capability);
    if (!image)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    CUresult result = CUDA_SUCCESS;
    if (!*module)
        result = cuda->driver.cuModuleLoadData(module, image);
    if (result == CUDA_SUCCESS)
        result = cuda->driver.cuModuleGetFunction(function, *module, row->symbol);
    return result;
}

/* Two rows may have one kernel, as max and min do: what one of them has loaded serves the other. */
static CUfunction loaded_before(gk_cuda *cuda, const gk_row *row) {
    size_t count;
    const gk_row *rows = gk_rows(&count);
    for (size_t i = 0; i < count; i++) {
        CUfunction handle =
            atomic_load_explicit(&cuda->modules->functions[i].handle, memory_order_relaxed);
        if (handle && strcmp(rows[i].symbol, row->symbol) == 0 &&
            strcmp(rows[i].family, row->family) == 0)
            return handle;
    }
    return NULL;
}

static CUresult shared_of(const gk_cuda *cuda, CUfunction handle, size_t *bytes) {
    int value = 0;
    CUresult result =
        cuda->driver.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, handle);
    *bytes = (size_t)value;
    return result;
}

static CUresult count_places(const gk_cuda *cuda, CUfunction handle, const gk_row *row,
                             gk_function *made) {
    int each = 0;
    CUresult result =
        cuda->driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, handle, row->threads, 0);
    made->places = (size_t)each * cuda->multiprocessors;
    return result == CUDA_SUCCESS ? shared_of(cuda, handle, &made->shared) : result;
}

/* All dynamic shared memory that the row may have, or what this device gives a block: a launch that
   asks for more fails. */
static CUresult allow_shared(const gk_cuda *cuda, CUfunction handle, const gk_row *row) {
    size_t taken = 0, bytes = row->shared_bytes;
    CUresult result = shared_of(cuda, handle, &taken);
    if (result != CUDA_SUCCESS)
        return result;
    if (cuda->most_shared > taken && bytes > cuda->most_shared - taken)
        bytes = cuda->most_shared - taken;
    return cuda->driver.cuFuncSetAttribute(handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                           (int)bytes);
}

/* Code that was made for less than 9.0 does not wait, wherever it runs. */
static CUresult ask_early(gk_cuda *cuda, const gk_row *row, CUfunction handle, gk_function *made) {
    int made_for = 0;
    CUresult result = CUDA_SUCCESS;
    if (row->follows)
        result = cuda->driver.cuFuncGetAttribute(&made_for, CU_FUNC_ATTRIBUTE_PTX_VERSION, handle);
    made->early = made_for >= 90;
    if (result == CUDA_SUCCESS && made->early)
        result = count_places(cuda, handle, row, made);
    return result;
}

static CUresult load(gk_cuda *cuda, const gk_row *row, CUfunction *handle, gk_function *made) {
    *handle = loaded_before(cuda, row);
    if (*handle)
        return ask_early(cuda, row, *handle, made);
    CUresult result = from_machine_code(cuda, row, handle);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
        result = from_ptx(cuda, row, handle);
    if (result == CUDA_SUCCESS) /* now, for a first launch may be one that is captured */
        result = gk_driver_load_function(&cuda->driver, *handle);
    if (result == CUDA_SUCCESS && row->shared_bytes > 0)
        result = allow_shared(cuda, *handle, row);
    return result == CUDA_SUCCESS ? ask_early(cuda, row, *handle, made) : result;
}

gk_status gk_cuda_function(gk_cuda *cuda, const gk_row *row, const gk_function **function,
                           gk_error *error) {
    size_t count;
    gk_function *made = &cuda->modules->functions[row - gk_rows(&count)];
    CUfunction handle = NULL;
    *function = made;
    if (atomic_load_explicit(&made->handle, memory_order_acquire))
        return GK_OK;
    CUresult result = CUDA_SUCCESS;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    pthread_mutex_lock(&cuda->lock);
    if (!atomic_load_explicit(&made->handle, memory_order_relaxed)) {
        GK_IN_CONTEXT(cuda, result, load(cuda, row, &handle, made));
        if (result == CUDA_SUCCESS)
            atomic_store_explicit(&made->handle, handle, memory_order_release);
    }
    pthread_mutex_unlock(&cuda->lock);
    gk_restrict(&cuda->driver, mode);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU &&
        !gk_driver_takes_machine_code(cuda->driver.version))
        return gk_fail(error, GK_CUDA_ERROR,
                       "a driver older than r580 takes PTX alone, and this build of gpukern has "
                       "none for compute capability %d.%d; install driver r580 or newer",
                       cuda->base.capability / 10, cuda->base.capability % 10);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
        return gk_fail(error, GK_CUDA_ERROR,
                       "this build of gpukern has no kernels for compute capability %d.%d; build "
                       "it with GPUKERN_ARCHS=%d",
                       cuda->base.capability / 10, cuda->base.capability % 10,
                       cuda->base.capability);
    return gk_cuda_check_made(cuda, result, "loading the kernel", error);
}

/* Under the lock. */
static kernel_name *keep_name(gk_modules *modules, const char *name) {
    kernel_name *kept = modules->names;
    while (kept && strcmp(kept->text, name) != 0)
        kept = kept->next;
    if (kept)
        return kept;
    size_t bytes = strlen(name) + 1;
    kept = malloc(sizeof *kept + bytes);
    if (!kept)
        return NULL;
    memcpy(kept->text, name, bytes);
    kept->next = modules->names;
    modules->names = kept;
    return kept;
}

const char *gk_cuda_kernel_name(gk_cuda *cuda, const char *name) {
    pthread_mutex_lock(&cuda->lock);
    const kernel_name *kept = keep_name(cuda->modules, name);
    pthread_mutex_unlock(&cuda->lock);
    return kept ? kept->text : NULL;
}

void gk_cuda_unload(gk_cuda *cuda) {
    size_t rows;
    gk_rows(&rows);
    for (size_t i = 0; i < rows; i++)
        if (cuda->modules->kernels[i])
            (void)cuda->driver.cuModuleUnload(cuda->modules->kernels[i]);
    for (int i = 0; i < GK_FAMILIES; i++)
        if (cuda->modules->files[i].module)
            (void)cuda->driver.cuModuleUnload(cuda->modules->files[i].module);
}

void gk_modules_free(gk_modules *modules) {
    if (!modules)
        return;
    while (modules->names) {
        kernel_name *next = modules->names->next;
        free(modules->names);
        modules->names = next;
    }
    free(modules->functions);
    free(modules->kernels);
    free(modules);
}
