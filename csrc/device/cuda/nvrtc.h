/* NVRTC, NVIDIA's compiler of CUDA C++ as a library: opened for each compilation, never linked. It
   needs no GPU and no driver. */
#ifndef GK_NVRTC_H
#define GK_NVRTC_H

#include "base/error.h"
#include "device/compiler.h"

/* GK_OK also for a source that does not compile: the log says why. */
gk_status gk_nvrtc_compile(const gk_compiler_job *job, gk_compiled *result, gk_error *error);
void gk_nvrtc_free(gk_compiled *result);

/* 13000 for 13.0. */
gk_status gk_nvrtc_version(const char *library, int *version, gk_error *error);

#endif
