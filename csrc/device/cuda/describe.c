/* What the driver tells of itself and of its devices; no context is created for it. */
#include <stdio.h>
#include <string.h>

#include "device/cuda/attributes.h"
#include "device/cuda/backend.h"
#include "device/cuda/driver.h"

void gk_cuda_report(gk_driver_report *report) {
    gk_driver driver;
    memset(report, 0, sizeof *report);
    gk_driver_open(&driver, &report->problem);
    snprintf(report->path, sizeof report->path, "%s", driver.path);
    report->version = driver.version;
    if (driver.status == CUDA_ERROR_NOT_INITIALIZED)
        return;
    snprintf(report->status, sizeof report->status, "%s",
             gk_driver_error_name(&driver, driver.status));
    if (driver.status != CUDA_SUCCESS)
        return;
    CUdevice device;
    int capability;
    gk_driver_device(&driver, 0, &device, &capability, &report->problem);
    if (driver.cuDeviceGetCount(&report->devices) != CUDA_SUCCESS)
        report->devices = 0;
}

/* Free memory can be asked for only inside a context: read it where somebody has one already. */
static size_t free_memory(const gk_driver *driver, CUdevice device) {
    unsigned flags = 0;
    int active = 0;
    size_t available = 0, total = 0;
    CUcontext context = NULL, popped = NULL;
    if (driver->cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || !active ||
        driver->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
        return 0;
    if (driver->cuCtxPushCurrent(context) == CUDA_SUCCESS) {
        if (driver->cuMemGetInfo(&available, &total) != CUDA_SUCCESS)
            available = 0;
        (void)driver->cuCtxPopCurrent(&popped);
    }
    (void)driver->cuDevicePrimaryCtxRelease(device);
    return available;
}

static void visit_attributes(const gk_driver *driver, CUdevice device, gk_attribute_visitor visit,
                             void *context) {
    int value;
    /* An attribute that this driver does not know any more is left out, not guessed. */
#define GK_VISIT(name)                                                                             \
    if (driver->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_##name, device) == CUDA_SUCCESS)  \
        visit(context, #name, value);
    GK_DEVICE_ATTRIBUTES(GK_VISIT)
#undef GK_VISIT
}

static void write_uuid(const CUuuid *uuid, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "GPU-");
    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                                 (unsigned char)uuid->bytes[i]);
}

gk_status gk_cuda_describe(int ordinal, gk_device_summary *summary, gk_attribute_visitor visit,
                           void *context, gk_error *error) {
    gk_driver driver;
    CUdevice device;
    CUuuid uuid;
    int major = 0, minor = 0;
    memset(summary, 0, sizeof *summary);
    gk_status status = gk_driver_open(&driver, error);
    if (status != GK_OK)
        return status;
    CUresult result = driver.cuDeviceGet(&device, ordinal);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetName(summary->name, sizeof summary->name, device);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetUuid(&uuid, device);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceTotalMem(&summary->memory_total, device);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                             device);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                             device);
    if (result != CUDA_SUCCESS)
        return gk_fail(error, GK_CUDA_ERROR, "device_info: device %d could not be read: %s",
                       ordinal, gk_driver_error_name(&driver, result));
    summary->capability = 10 * major + minor;
    summary->memory_free = free_memory(&driver, device);
    write_uuid(&uuid, summary->uuid, sizeof summary->uuid);
    visit_attributes(&driver, device, visit, context);
    return GK_OK;
}
