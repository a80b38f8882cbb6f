/* Modules of kernels that users compiled. */
#include <stdlib.h>

#include "device/cuda/modules.h"

struct gk_module {
    CUmodule handle;
};

static gk_status check_image(gk_cuda *cuda, CUresult result, gk_error *error) {
    int capability = cuda->base.capability;
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
        return gk_fail(error, GK_CUDA_ERROR,
                       "the module has no code for device %d, whose compute capability is %d.%d; "
                       "compile it with -arch=sm_%d",
                       cuda->base.ordinal, capability / 10, capability % 10, capability);
    if (result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_INVALID_SOURCE)
        return gk_fail(error, GK_CUDA_ERROR, "the module is no cubin, fatbin or PTX (%s)",
                       gk_driver_error_name(&cuda->driver, result));
    if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        return gk_fail(error, GK_CUDA_ERROR,
                       "the module is PTX of a newer toolkit than the driver, which supports CUDA "
                       "%d.%d; compile it to machine code, with -arch=sm_%d",
                       cuda->driver.version / 1000, cuda->driver.version % 1000 / 10, capability);
    return gk_cuda_check(cuda, result, "loading the module", error);
}

gk_status gk_cuda_module_load(gk_backend *base, const void *image, size_t bytes, gk_module **loaded,
                              gk_error *error) {
    (void)bytes; /* what is loaded says it itself */
    gk_cuda *cuda = (gk_cuda *)base;
    gk_module *module = malloc(sizeof *module);
    CUresult result;
    if (!module)
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory for a module");
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuModuleLoadData(&module->handle, image));
    gk_restrict(&cuda->driver, mode);
    gk_status status = check_image(cuda, result, error);
    if (status == GK_OK)
        *loaded = module;
    else
        free(module);
    return status;
}

void gk_cuda_module_free(gk_backend *base, gk_module *module) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    GK_IN_CONTEXT(cuda, result, cuda->driver.cuModuleUnload(module->handle));
    gk_restrict(&cuda->driver, mode);
    (void)result; /* fails only after a fault, which the next call reports */
    free(module);
}

static CUresult read_facts(const gk_cuda *cuda, CUfunction function, gk_kernel *kernel) {
    const struct {
        CUfunction_attribute attribute;
        int *value;
    } facts[] = {
        {CU_FUNC_ATTRIBUTE_NUM_REGS, &kernel->registers},
        {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &kernel->local_bytes},
        {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &kernel->constant_bytes},
        {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &kernel->shared_bytes},
        {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &kernel->most_threads},
    };
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof facts / sizeof facts[0] && result == CUDA_SUCCESS; i++)
        result = cuda->driver.cuFuncGetAttribute(facts[i].value, facts[i].attribute, function);
    return result;
}

static CUresult read_limits(const gk_cuda *cuda, gk_kernel *kernel) {
    const struct {
        CUdevice_attribute attribute;
        int *value;
    } limits[] = {
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &kernel->most_block[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &kernel->most_block[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &kernel->most_block[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &kernel->most_grid[0]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &kernel->most_grid[1]},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &kernel->most_grid[2]},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &kernel->most_block_threads},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &kernel->most_resident},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &kernel->most_dynamic},
    };
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0] && result == CUDA_SUCCESS; i++)
        result =
            cuda->driver.cuDeviceGetAttribute(limits[i].value, limits[i].attribute, cuda->device);
    kernel->most_dynamic -= kernel->shared_bytes;
    return result;
}

/* Its code is on the device from here on, since a first launch may be one that is captured, and it
   may have all the shared memory that the device gives a block. */
static CUresult find_kernel(const gk_cuda *cuda, CUmodule module, const char *symbol,
                            gk_kernel *kernel) {
    CUfunction function = NULL;
    CUresult result = cuda->driver.cuModuleGetFunction(&function, module, symbol);
    if (result == CUDA_SUCCESS)
        result = gk_driver_load_function(&cuda->driver, function);
    if (result == CUDA_SUCCESS)
        result = read_facts(cuda, function, kernel);
    if (result == CUDA_SUCCESS)
        result = read_limits(cuda, kernel);
    if (result == CUDA_SUCCESS && kernel->most_dynamic > 0)
        result = cuda->driver.cuFuncSetAttribute(
            function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel->most_dynamic);
    kernel->function = function;
    return result;
}

gk_status gk_cuda_module_kernel(gk_backend *base, gk_module *module, const char *symbol,
                                gk_kernel *kernel, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    gk_kernel found = {.name = gk_cuda_kernel_name(cuda, symbol)};
    CUresult result;
    if (!found.name)
        return gk_fail(error, GK_MEMORY_ERROR, "out of host memory for a kernel");
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    GK_IN_CONTEXT(cuda, result, find_kernel(cuda, module->handle, symbol, &found));
    gk_restrict(&cuda->driver, mode);
    if (result == CUDA_ERROR_NOT_FOUND)
        return gk_fail(error, GK_VALUE_ERROR, "the module has no kernel %s", symbol);
    gk_status status = gk_cuda_check(cuda, result, "loading the kernel", error);
    if (status == GK_OK)
        *kernel = found;
    return status;
}

gk_status gk_cuda_module_symbol(gk_backend *base, gk_module *module, const char *symbol,
                                void **device, size_t *bytes, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUdeviceptr address = 0;
    size_t size = 0;
    CUresult result;
    CUstreamCaptureMode mode = gk_relax(&cuda->driver);
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuModuleGetGlobal(&address, &size, module->handle, symbol));
    gk_restrict(&cuda->driver, mode);
    if (result == CUDA_ERROR_NOT_FOUND)
        return gk_fail(error, GK_VALUE_ERROR, "the module has no variable %s", symbol);
    gk_status status = gk_cuda_check(cuda, result, "asking for a variable of the module", error);
    if (status == GK_OK) {
        *device = (void *)address;
        *bytes = size;
    }
    return status;
}

gk_status gk_cuda_kernel_parameter(gk_backend *base, const gk_kernel *kernel, int number,
                                   size_t *bytes, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    size_t offset;
    CUresult result;
    if (!cuda->driver.cuFuncGetParamInfo)
        return gk_fail(error, GK_CUDA_ERROR,
                       "the driver is older than r550 and does not tell the parameters of a "
                       "kernel; compile it from its source, or install driver r580 or newer");
    GK_IN_CONTEXT(
        cuda, result,
        cuda->driver.cuFuncGetParamInfo(kernel->function, (size_t)number, &offset, bytes));
    if (result != CUDA_ERROR_INVALID_VALUE)
        return gk_cuda_check(cuda, result, "asking for the parameters of the kernel", error);
    *bytes = 0;
    return GK_OK;
}

gk_status gk_cuda_kernel_occupancy(gk_backend *base, const gk_kernel *kernel, int threads,
                                   size_t shared_bytes, int *blocks, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel->function,
                                                                           threads, shared_bytes));
    return gk_cuda_check(cuda, result, "asking for the occupancy", error);
}

gk_status gk_cuda_kernel_suggest(gk_backend *base, const gk_kernel *kernel, size_t shared_bytes,
                                 int *threads, gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    int least_grid;
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuOccupancyMaxPotentialBlockSize(
                      &least_grid, threads, kernel->function, NULL, shared_bytes, 0));
    return gk_cuda_check(cuda, result, "asking for a size of blocks", error);
}
