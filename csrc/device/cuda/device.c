/* What every call of the driver needs: the context around it, and the sentence for what came of it.
 */
#include "device/cuda/device.h"

#include <stdio.h>

enum {
    FULL = 64 << 20, /* bytes: with fewer free a device is full, */
    FULL_HINT = 96,  /* and this takes so many to say */
};

/* After these the context answers every call with the same error until the process ends. */
static bool is_sticky(CUresult result) {
    switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return true;
    default:
        return false;
    }
}

static gk_status lose(gk_cuda *cuda, CUresult result, gk_error *error) {
    pthread_mutex_lock(&cuda->lock);
    if (!atomic_load(&cuda->is_lost)) {
        const char *kernel = atomic_load(&cuda->last_launch);
        gk_fail(&cuda->lost, GK_DEVICE_LOST,
                "the device was lost: %s after %s%s; no call can succeed in this process any more, "
                "so start a new one (with gpukern.strict() a fault is blamed on its own call)",
                gk_driver_error_name(&cuda->driver, result),
                kernel ? "the last kernel that gpukern launched, " : "work of another library",
                kernel ? kernel : "");
        atomic_store(&cuda->is_lost, true);
    }
    pthread_mutex_unlock(&cuda->lock);
    *error = cuda->lost;
    return GK_DEVICE_LOST;
}

/* Whether the driver has no name for what went wrong, and the device is full: it says so where a
   launch finds no memory for what it needs itself. */
static bool may_lack_memory(gk_cuda *cuda, CUresult result, size_t *available) {
    size_t total;
    CUresult asked = result;
    if (result == CUDA_ERROR_UNKNOWN)
        GK_IN_CONTEXT(cuda, asked, cuda->driver.cuMemGetInfo(available, &total));
    return asked == CUDA_SUCCESS && *available < FULL;
}

gk_status gk_cuda_check(gk_cuda *cuda, CUresult result, const char *doing, gk_error *error) {
    if (result == CUDA_SUCCESS)
        return GK_OK;
    if (is_sticky(result) || atomic_load(&cuda->is_lost))
        return lose(cuda, result, error);
    const char *text = NULL, *hint = "";
    char full[FULL_HINT];
    size_t available = 0;
    if (cuda->driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
        text = "no description";
    if (may_lack_memory(cuda, result, &available)) {
        (void)snprintf(full, sizeof full,
                       "; the device is full, which may be why: %zu bytes of its memory are free",
                       available);
        hint = full;
    } else if (result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
               result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) {
        hint =
            "; to be part of a CUDA graph a call needs stream=, the stream that is being captured";
    }
    return gk_fail(error, GK_CUDA_ERROR, "%s failed: %s (%s)%s", doing,
                   gk_driver_error_name(&cuda->driver, result), text, hint);
}

gk_status gk_cuda_check_made(gk_cuda *cuda, CUresult result, const char *doing, gk_error *error) {
    gk_status status = gk_cuda_check(cuda, result, doing, error);
    if (status == GK_CUDA_ERROR && result == CUDA_ERROR_OUT_OF_MEMORY)
        status = error->status = GK_MEMORY_ERROR;
    return status;
}

CUresult gk_cuda_enter(const gk_cuda *cuda, bool *pushed) {
    CUcontext current = NULL;
    *pushed = false;
    CUresult result = cuda->driver.cuCtxGetCurrent(&current);
    if (result != CUDA_SUCCESS || current == cuda->context)
        return result;
    result = cuda->driver.cuCtxPushCurrent(cuda->context);
    *pushed = result == CUDA_SUCCESS;
    return result;
}

void gk_cuda_leave(const gk_cuda *cuda, bool pushed) {
    CUcontext popped;
    if (pushed)
        (void)cuda->driver.cuCtxPopCurrent(&popped); /* fails only where the context is gone */
}
