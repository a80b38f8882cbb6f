#include "device/cuda/nvrtc.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* nvrtc.h comes in a package that a build has no other use for, so the few declarations that are
   used stand here; their values are part of NVRTC's binary interface. */
typedef struct nvrtc_program_data *nvrtc_program;
typedef int nvrtc_status;
enum { COMPILATION_FAILED = 6, CANCELLED = 16 };

#define GK_NVRTC_FUNCTIONS(X)                                                                      \
    X(version, nvrtcVersion, (int *, int *))                                                       \
    X(create, nvrtcCreateProgram,                                                                  \
      (nvrtc_program *, const char *, const char *, int, const char *const *,                      \
       const char *const *))                                                                       \
    X(destroy, nvrtcDestroyProgram, (nvrtc_program *))                                             \
    X(name, nvrtcAddNameExpression, (nvrtc_program, const char *))                                 \
    X(compile, nvrtcCompileProgram, (nvrtc_program, int, const char *const *))                     \
    X(log_size, nvrtcGetProgramLogSize, (nvrtc_program, size_t *))                                 \
    X(log, nvrtcGetProgramLog, (nvrtc_program, char *))                                            \
    X(symbol, nvrtcGetLoweredName, (nvrtc_program, const char *, const char **))                   \
    X(code_size, nvrtcGetCUBINSize, (nvrtc_program, size_t *))                                     \
    X(code, nvrtcGetCUBIN, (nvrtc_program, char *))                                                \
    X(ptx_size, nvrtcGetPTXSize, (nvrtc_program, size_t *))                                        \
    X(ptx, nvrtcGetPTX, (nvrtc_program, char *))

typedef struct gk_nvrtc {
    void *library;
    const char *(*status_text)(nvrtc_status);
#define GK_DECLARE(member, symbol, parameters) nvrtc_status(*member) parameters;
    GK_NVRTC_FUNCTIONS(GK_DECLARE)
#undef GK_DECLARE
    /* From 12.9 on; NULL: a compilation runs to its end. */
    nvrtc_status (*watch)(nvrtc_program, int (*)(void *, void *), void *);
} gk_nvrtc;

static gk_status check(const gk_nvrtc *nvrtc, nvrtc_status result, const char *doing,
                       gk_error *error) {
    if (result == 0)
        return GK_OK;
    return gk_fail(error, GK_CUDA_ERROR, "NVRTC: %s failed: %s", doing, nvrtc->status_text(result));
}

static gk_status open_library(gk_nvrtc *nvrtc, const char *path, gk_error *error) {
    /* It stays loaded: unloading it under other users of the process is not ours to do. */
    nvrtc->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const char *said = nvrtc->library ? NULL : dlerror();
    if (!nvrtc->library)
        return gk_fail(error, GK_CUDA_ERROR, "NVRTC cannot be loaded: %s", said ? said : path);
    *(void **)&nvrtc->status_text = dlsym(nvrtc->library, "nvrtcGetErrorString");
    *(void **)&nvrtc->watch = dlsym(nvrtc->library, "nvrtcSetFlowCallback");
    bool complete = nvrtc->status_text != NULL;
#define GK_RESOLVE(member, symbol, parameters)                                                     \
    *(void **)&nvrtc->member = dlsym(nvrtc->library, #symbol);                                     \
    complete = complete && nvrtc->member != NULL;
    GK_NVRTC_FUNCTIONS(GK_RESOLVE)
#undef GK_RESOLVE
    if (complete)
        return GK_OK;
    dlclose(nvrtc->library);
    return gk_fail(error, GK_CUDA_ERROR, "NVRTC at %s is older than 12.0", path);
}

gk_status gk_nvrtc_version(const char *library, int *version, gk_error *error) {
    gk_nvrtc nvrtc;
    int major = 0, minor = 0;
    gk_status status = open_library(&nvrtc, library, error);
    if (status != GK_OK)
        return status;
    status = check(&nvrtc, nvrtc.version(&major, &minor), "asking for the version", error);
    *version = 1000 * major + 10 * minor;
    dlclose(nvrtc.library);
    return status;
}

static gk_status no_memory(gk_error *error) {
    return gk_fail(error, GK_MEMORY_ERROR, "NVRTC: out of host memory");
}

/* A text or an image: its size is asked for first. */
static gk_status read_part(const gk_nvrtc *nvrtc, nvrtc_program program,
                           nvrtc_status (*size_of)(nvrtc_program, size_t *),
                           nvrtc_status (*copy)(nvrtc_program, char *), char **part, size_t *bytes,
                           gk_error *error) {
    gk_status status = check(nvrtc, size_of(program, bytes), "asking for the result", error);
    if (status != GK_OK || *bytes == 0)
        return status;
    *part = calloc(1, *bytes + 1);
    if (!*part)
        return no_memory(error);
    return check(nvrtc, copy(program, *part), "reading the result", error);
}

static gk_status read_symbols(const gk_nvrtc *nvrtc, nvrtc_program program,
                              const gk_compiler_job *job, gk_compiled *result, gk_error *error) {
    result->symbols = calloc((size_t)job->expression_count + 1, sizeof *result->symbols);
    if (!result->symbols)
        return no_memory(error);
    for (int i = 0; i < job->expression_count; i++) {
        const char *symbol = NULL;
        gk_status status = check(nvrtc, nvrtc->symbol(program, job->expressions[i], &symbol),
                                 "asking for a symbol", error);
        if (status != GK_OK)
            return status;
        result->symbols[i] = strdup(symbol);
        if (!result->symbols[i])
            return no_memory(error);
        result->symbol_count = i + 1;
    }
    return GK_OK;
}

static gk_status read_image(const gk_nvrtc *nvrtc, nvrtc_program program, gk_compiled *result,
                            gk_error *error) {
    gk_status status = read_part(nvrtc, program, nvrtc->code_size, nvrtc->code, &result->image,
                                 &result->bytes, error);
    if (status == GK_OK && result->bytes == 0)
        status = read_part(nvrtc, program, nvrtc->ptx_size, nvrtc->ptx, &result->image,
                           &result->bytes, error);
    return status;
}

typedef struct gk_watcher {
    const gk_compiler_job *job;
    atomic_bool is_over;
} gk_watcher;

/* NVRTC asks now and then whether to go on, on any of its threads, and wants one answer kept to. */
static int cancel(void *context, void *unused) {
    gk_watcher *watcher = context;
    (void)unused;
    if (!atomic_load(&watcher->is_over) && watcher->job->interrupted(watcher->job->context))
        atomic_store(&watcher->is_over, true);
    return atomic_load(&watcher->is_over);
}

static gk_status compile(const gk_nvrtc *nvrtc, nvrtc_program program, const gk_compiler_job *job,
                         gk_compiled *result, gk_error *error) {
    size_t log_bytes;
    gk_watcher watcher = {.job = job};
    gk_status status = GK_OK;
    for (int i = 0; i < job->expression_count && status == GK_OK; i++)
        status = check(nvrtc, nvrtc->name(program, job->expressions[i]), "naming a kernel", error);
    if (status == GK_OK && nvrtc->watch)
        status = check(nvrtc, nvrtc->watch(program, cancel, &watcher), "watching", error);
    if (status != GK_OK)
        return status;
    nvrtc_status compiled = nvrtc->compile(program, job->option_count, job->options);
    if (compiled == CANCELLED || atomic_load(&watcher.is_over)) /* asked at its end, it goes on */
        return error->status = GK_INTERRUPTED;
    status =
        read_part(nvrtc, program, nvrtc->log_size, nvrtc->log, &result->log, &log_bytes, error);
    /* What is wrong with the source or an option stands in the log. */
    if (status != GK_OK || (compiled != 0 && log_bytes > 1))
        return status;
    status = check(nvrtc, compiled, "the compilation", error);
    if (status == GK_OK)
        status = read_symbols(nvrtc, program, job, result, error);
    if (status == GK_OK)
        status = read_image(nvrtc, program, result, error);
    result->compiled = status == GK_OK;
    return status;
}

gk_status gk_nvrtc_compile(const gk_compiler_job *job, gk_compiled *result, gk_error *error) {
    gk_nvrtc nvrtc;
    nvrtc_program program = NULL;
    memset(result, 0, sizeof *result);
    gk_status status = open_library(&nvrtc, job->library, error);
    if (status != GK_OK)
        return status;
    status = check(&nvrtc,
                   nvrtc.create(&program, job->source, job->name, job->header_count, job->headers,
                                job->header_names),
                   "taking the source", error);
    if (status == GK_OK) {
        status = compile(&nvrtc, program, job, result, error);
        (void)nvrtc.destroy(&program);
    }
    dlclose(nvrtc.library);
    if (status != GK_OK)
        gk_nvrtc_free(result);
    return status;
}

void gk_nvrtc_free(gk_compiled *result) {
    for (int i = 0; i < result->symbol_count; i++)
        free(result->symbols[i]);
    free(result->symbols);
    free(result->image);
    free(result->log);
    memset(result, 0, sizeof *result);
}
