#include "device/cuda/cublas.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "device/cuda/driver.h"

/* cublas_v2.h comes in a package of hundreds of megabytes that a build has no other use for, so the
   few declarations that are used stand here; their values are part of cuBLAS's binary interface. */
typedef struct cublasContext *cublas_handle;
typedef int cublas_status;
enum {
    NOT_INITIALIZED = 1, /* where the device is full, too */
    ALLOC_FAILED = 3,
    NO_TRANSPOSE = 0,
    TRANSPOSE = 1,
    ALGORITHM_DEFAULT = -1,
    REAL_16F = 2,
    REAL_32F = 0,
    REAL_64F = 1,
    REAL_16BF = 14,
    COMPUTE_32F = 68, /* true float32: tf32 only by COMPUTE_32F_FAST_TF32 */
    COMPUTE_64F = 70,
    MATH_NO_REDUCED_PRECISION_REDUCTION = 16, /* split sums of f16 products stay in float32 */
};

#define GK_CUBLAS_FUNCTIONS(X)                                                                     \
    X(create, cublasCreate_v2, (cublas_handle *))                                                  \
    X(destroy, cublasDestroy_v2, (cublas_handle))                                                  \
    X(get_version, cublasGetVersion_v2, (cublas_handle, int *))                                    \
    X(set_stream, cublasSetStream_v2, (cublas_handle, void *))                                     \
    X(set_workspace, cublasSetWorkspace_v2, (cublas_handle, void *, size_t))                       \
    X(set_math_mode, cublasSetMathMode, (cublas_handle, int))                                      \
    X(gemm, cublasGemmEx_64,                                                                       \
      (cublas_handle, int, int, int64_t, int64_t, int64_t, const void *, const void *, int,        \
       int64_t, const void *, int, int64_t, const void *, void *, int, int64_t, int, int))         \
    X(gemm_stack, cublasGemmStridedBatchedEx_64,                                                   \
      (cublas_handle, int, int, int64_t, int64_t, int64_t, const void *, const void *, int,        \
       int64_t, int64_t, const void *, int, int64_t, int64_t, const void *, void *, int, int64_t,  \
       int64_t, int64_t, int, int))

struct gk_cublas {
    void *library;
    char path[512];
    int version;
    cublas_handle handle;
    const char *(*status_text)(cublas_status);
#define GK_DECLARE(member, symbol, parameters) cublas_status(*member) parameters;
    GK_CUBLAS_FUNCTIONS(GK_DECLARE)
#undef GK_DECLARE
};

static gk_status check(gk_cublas *cublas, cublas_status result, const char *doing,
                       gk_error *error) {
    if (result == 0)
        return GK_OK;
    return gk_fail(error, GK_CUDA_ERROR, "cuBLAS: %s failed: %s", doing,
                   cublas->status_text(result));
}

/* Whether a file, by its name, is of a major version that came after the driver. */
static bool is_too_new(const char *path, int driver) {
    const char *version = strstr(path, "libcublas.so.");
    return version && atoi(version + strlen("libcublas.so.")) > driver / 1000;
}

static gk_status load(gk_cublas *cublas, int driver, gk_locator locate, void *context,
                      gk_error *error) {
    char candidates[4096] = "";
    char reason[512] = "no place to look in";
    locate(context, candidates, sizeof candidates);
    char *rest = NULL;
    for (char *name = strtok_r(candidates, "\n", &rest); name && !cublas->library;
         name = strtok_r(NULL, "\n", &rest)) {
        if (is_too_new(name, driver))
            continue;
        cublas->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        const char *said = cublas->library ? NULL : dlerror();
        if (said)
            snprintf(reason, sizeof reason, "%s", said);
    }
    if (!cublas->library)
        return gk_fail(error, GK_CUDA_ERROR,
                       "cuBLAS was not found (%s); `pip install \"gpukern[%s]\"` brings it", reason,
                       gk_driver_takes_machine_code(driver) ? "cublas" : "cublas12");
    *(void **)&cublas->status_text = dlsym(cublas->library, "cublasGetStatusString");
    bool complete = cublas->status_text != NULL;
#define GK_RESOLVE(member, symbol, parameters)                                                     \
    *(void **)&cublas->member = dlsym(cublas->library, #symbol);                                   \
    complete = complete && cublas->member != NULL;
    GK_CUBLAS_FUNCTIONS(GK_RESOLVE)
#undef GK_RESOLVE
    Dl_info where;
    if (cublas->create && dladdr(*(void **)&cublas->create, &where) && where.dli_fname)
        snprintf(cublas->path, sizeof cublas->path, "%s", where.dli_fname);
    if (!complete)
        return gk_fail(error, GK_CUDA_ERROR,
                       "cuBLAS at %s is older than 12.0; `pip install \"gpukern[cublas]\"` brings "
                       "one that fits",
                       cublas->path);
    return GK_OK;
}

static gk_status create(gk_cublas *cublas, size_t available, gk_error *error) {
    const size_t enough = 512 << 20; /* for a handle and the kernels that come with it */
    const cublas_status result = cublas->create(&cublas->handle);
    if (result == ALLOC_FAILED || (result == NOT_INITIALIZED && available < enough))
        return gk_fail(error, GK_MEMORY_ERROR,
                       "cuBLAS: creating a handle failed: %s; %zu MiB of the device are free",
                       cublas->status_text(result), available >> 20);
    return check(cublas, result, "creating a handle", error);
}

static gk_status start(gk_cublas *cublas, size_t available, gk_error *error) {
    gk_status status = create(cublas, available, error);
    if (status == GK_OK)
        status = check(cublas, cublas->get_version(cublas->handle, &cublas->version),
                       "asking for the version", error);
    if (status == GK_OK)
        status = check(cublas,
                       cublas->set_math_mode(cublas->handle, MATH_NO_REDUCED_PRECISION_REDUCTION),
                       "setting the math mode", error);
    return status;
}

gk_status gk_cublas_open(gk_cublas **opened, int driver, size_t available, gk_locator locate,
                         void *context, gk_error *error) {
    gk_cublas *cublas = calloc(1, sizeof *cublas);
    if (!cublas)
        return gk_fail(error, GK_MEMORY_ERROR, "cuBLAS: out of host memory");
    gk_status status = load(cublas, driver, locate, context, error);
    if (status == GK_OK)
        status = start(cublas, available, error);
    if (status != GK_OK) {
        gk_cublas_close(cublas);
        return status;
    }
    *opened = cublas;
    return GK_OK;
}

void gk_cublas_close(gk_cublas *cublas) {
    if (!cublas)
        return;
    if (cublas->handle)
        cublas->destroy(cublas->handle);
    /* The library stays loaded: unloading it under other users of the process is not ours to do. */
    free(cublas);
}

static cublas_status multiply(gk_cublas *cublas, const gk_gemm *gemm) {
    static const struct {
        int type, compute;
    } of_dtype[GK_DTYPE_COUNT] = {
        [GK_float32] = {REAL_32F, COMPUTE_32F},
        [GK_float64] = {REAL_64F, COMPUTE_64F},
        [GK_float16] = {REAL_16F, COMPUTE_32F},
        [GK_bfloat16] = {REAL_16BF, COMPUTE_32F},
    };
    const float one32 = 1.0f, zero32 = 0.0f;
    const double one64 = 1.0, zero64 = 0.0;
    int type = of_dtype[gemm->dtype].type, compute = of_dtype[gemm->dtype].compute;
    bool wide = compute == COMPUTE_64F;
    const void *one = wide ? (const void *)&one64 : &one32;
    const void *zero = wide ? (const void *)&zero64 : &zero32;

    int of_a = gemm->a_transposed ? TRANSPOSE : NO_TRANSPOSE;
    int of_b = gemm->b_transposed ? TRANSPOSE : NO_TRANSPOSE;

    if (gemm->products == 1)
        return cublas->gemm(cublas->handle, of_b, of_a, gemm->n, gemm->m, gemm->k, one, gemm->b,
                            type, gemm->b_leading, gemm->a, type, gemm->a_leading, zero, gemm->c,
                            type, gemm->n, compute, ALGORITHM_DEFAULT);
    return cublas->gemm_stack(cublas->handle, of_b, of_a, gemm->n, gemm->m, gemm->k, one, gemm->b,
                              type, gemm->b_leading, gemm->b_step, gemm->a, type, gemm->a_leading,
                              gemm->a_step, zero, gemm->c, type, gemm->n, gemm->c_step,
                              gemm->products, compute, ALGORITHM_DEFAULT);
}

gk_status gk_cublas_gemm(gk_cublas *cublas, const gk_gemm *gemm, void *workspace, size_t bytes,
                         gk_error *error) {
    gk_status status = check(cublas, cublas->set_stream(cublas->handle, (void *)gemm->stream),
                             "setting the stream", error);
    if (status == GK_OK) /* after the stream, which takes the handle's own one back */
        status = check(cublas, cublas->set_workspace(cublas->handle, workspace, bytes),
                       "setting the workspace", error);
    /* cuBLAS is column-major: a row-major C = A B is, read so, C' = B' A' with nothing moved. */
    if (status == GK_OK)
        status = check(cublas, multiply(cublas, gemm), "the matrix product", error);
    return status;
}

int gk_cublas_version(const gk_cublas *cublas) {
    return cublas->version;
}

const char *gk_cublas_path(const gk_cublas *cublas) {
    return cublas->path;
}
