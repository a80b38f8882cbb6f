#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GK_QUOTE(name)  #name
#define GK_SYMBOL(name) GK_QUOTE(name) /* after cuda.h has mapped the name to its version */

/* Where the driver's library is: the loader's own search, then WSL's folder. */
static const char *const names[] = {"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};

static gk_status load(gk_driver *driver, gk_error *error) {
    char reason[512] = "";
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !driver->library; i++) {
        driver->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        const char *said = driver->library ? NULL : dlerror();
        if (i == 0 && said)
            snprintf(reason, sizeof reason, "%s", said);
    }
    if (!driver->library)
        return gk_fail(
            error, GK_CUDA_ERROR,
            "there is no NVIDIA driver on this machine (libcuda.so.1 could not be loaded: %s); "
            "install driver r580 or newer",
            reason);
    struct link_map *loaded;
    if (dlinfo(driver->library, RTLD_DI_LINKMAP, &loaded) == 0)
        snprintf(driver->path, sizeof driver->path, "%s", loaded->l_name);
    return GK_OK;
}

static gk_status missing(const char *name, const gk_driver *driver, gk_error *error) {
    return gk_fail(
        error, GK_CUDA_ERROR,
        "the driver library %s has no %s: it is a stub or belongs to an older driver; "
        "install driver r580 or newer and keep other libcuda.so.1 out of LD_LIBRARY_PATH",
        driver->path, name);
}

static gk_status check_version(gk_driver *driver, gk_error *error) {
    *(void **)&driver->cuDriverGetVersion = dlsym(driver->library, "cuDriverGetVersion");
    if (!driver->cuDriverGetVersion)
        return missing("cuDriverGetVersion", driver, error);
    CUresult result = driver->cuDriverGetVersion(&driver->version);
    if (result != CUDA_SUCCESS)
        return gk_fail(error, GK_CUDA_ERROR,
                       "the driver library %s does not tell its version (%s): it is a stub for "
                       "linking; keep it out of LD_LIBRARY_PATH",
                       driver->path, gk_driver_error_name(driver, result));
    if (driver->version < GK_DRIVER_NEEDED)
        return gk_fail(error, GK_CUDA_ERROR,
                       "the NVIDIA driver supports CUDA %d.%d and gpukern's kernels need %d.%d; "
                       "install driver r580 or newer",
                       driver->version / 1000, driver->version % 1000 / 10, GK_DRIVER_NEEDED / 1000,
                       GK_DRIVER_NEEDED % 1000 / 10);
    return GK_OK;
}

/* What an older driver has of the newer functions, and what stands for them. */
static gk_status resolve_older(gk_driver *driver, gk_error *error) {
#define GK_LOOK(name) *(void **)&driver->name = dlsym(driver->library, GK_SYMBOL(name));
    GK_NEWER_DRIVER_FUNCTIONS(GK_LOOK)
#undef GK_LOOK
    if (!driver->cuEventElapsedTime) /* before 12.8 it took the same and told the same */
        *(void **)&driver->cuEventElapsedTime = dlsym(driver->library, "cuEventElapsedTime");
    *(void **)&driver->older_capture_info = dlsym(driver->library, "cuStreamGetCaptureInfo_v2");
    if (!driver->cuEventElapsedTime)
        return missing("cuEventElapsedTime", driver, error);
    if (!driver->cuStreamGetCaptureInfo && !driver->older_capture_info)
        return missing("cuStreamGetCaptureInfo_v2", driver, error);
    return GK_OK;
}

static gk_status resolve(gk_driver *driver, gk_error *error) {
#define GK_RESOLVE(name)                                                                           \
    *(void **)&driver->name = dlsym(driver->library, GK_SYMBOL(name));                             \
    if (!driver->name)                                                                             \
        return missing(GK_SYMBOL(name), driver, error);
    GK_DRIVER_FUNCTIONS(GK_RESOLVE)
    if (!gk_driver_takes_machine_code(driver->version))
        return resolve_older(driver, error);
    GK_NEWER_DRIVER_FUNCTIONS(GK_RESOLVE)
#undef GK_RESOLVE
    return GK_OK;
}

static gk_status initialize(gk_driver *driver, gk_error *error) {
    driver->status = driver->cuInit(0);
    if (driver->status == CUDA_SUCCESS)
        return GK_OK;
    const char *name = gk_driver_error_name(driver, driver->status);
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (driver->status == CUDA_ERROR_NO_DEVICE && visible)
        return gk_fail(error, GK_CUDA_ERROR,
                       "no GPU is visible (%s): CUDA_VISIBLE_DEVICES is \"%s\"; unset it or name a "
                       "device",
                       name, visible);
    if (driver->status == CUDA_ERROR_NO_DEVICE)
        return gk_fail(error, GK_CUDA_ERROR,
                       "the driver is installed but sees no GPU (%s); in a container, start it "
                       "with the GPU passed through",
                       name);
    return gk_fail(error, GK_CUDA_ERROR,
                   "the driver did not start (cuInit: %s); run `gpukern doctor` for the cure",
                   name);
}

gk_status gk_driver_open(gk_driver *driver, gk_error *error) {
    memset(driver, 0, sizeof *driver);
    driver->status = CUDA_ERROR_NOT_INITIALIZED;
    gk_status status = load(driver, error);
    if (status == GK_OK)
        status = check_version(driver, error);
    if (status == GK_OK)
        status = resolve(driver, error);
    if (status == GK_OK)
        status = initialize(driver, error);
    return status;
}

bool gk_driver_takes_machine_code(int version) {
    return version >= CUDA_VERSION / 1000 * 1000;
}

CUresult gk_driver_load_function(const gk_driver *driver, CUfunction function) {
    int registers;
    if (driver->cuFuncLoad)
        return driver->cuFuncLoad(function);
    /* Before 12.4: to tell of the code, the driver loads it. */
    return driver->cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
}

CUresult gk_driver_captured_graph(const gk_driver *driver, CUstream stream,
                                  CUstreamCaptureStatus *status, cuuint64_t *number,
                                  CUgraph *graph) {
    if (driver->cuStreamGetCaptureInfo)
        return driver->cuStreamGetCaptureInfo(stream, status, number, graph, NULL, NULL, NULL);
    return driver->older_capture_info(stream, status, number, graph, NULL, NULL);
}

const char *gk_driver_error_name(const gk_driver *driver, CUresult result) {
    const char *name = NULL;
    if (driver->cuGetErrorName && driver->cuGetErrorName(result, &name) == CUDA_SUCCESS && name)
        return name;
    switch (result) {
    case CUDA_ERROR_STUB_LIBRARY:
        return "CUDA_ERROR_STUB_LIBRARY";
    case CUDA_ERROR_NO_DEVICE:
        return "CUDA_ERROR_NO_DEVICE";
    default:
        return "an unknown error";
    }
}

gk_status gk_driver_device(const gk_driver *driver, int ordinal, CUdevice *device, int *capability,
                           gk_error *error) {
    int count = 0, major = 0, minor = 0;
    CUresult result = driver->cuDeviceGetCount(&count);
    if (result == CUDA_SUCCESS && count == 0)
        return gk_fail(error, GK_CUDA_ERROR,
                       "the driver works but shows no GPU; look at CUDA_VISIBLE_DEVICES");
    if (result == CUDA_SUCCESS && ordinal >= count)
        return gk_fail(error, GK_VALUE_ERROR, "there is no device %d: %d %s visible", ordinal,
                       count, count == 1 ? "is" : "are");
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGet(device, ordinal);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                              *device);
    if (result == CUDA_SUCCESS)
        result = driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                              *device);
    if (result != CUDA_SUCCESS)
        return gk_fail(error, GK_CUDA_ERROR, "device %d could not be asked what it is: %s", ordinal,
                       gk_driver_error_name(driver, result));
    *capability = 10 * major + minor;
    if (*capability < GK_LEAST_CAPABILITY)
        return gk_fail(error, GK_CUDA_ERROR,
                       "the GPU has compute capability %d.%d and gpukern needs %d.%d (Turing) or "
                       "newer",
                       major, minor, GK_LEAST_CAPABILITY / 10, GK_LEAST_CAPABILITY % 10);
    return GK_OK;
}
