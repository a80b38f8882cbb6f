/* Modules of users' kernels, on the simulator. */
#ifndef GK_SIM_USER_MODULES_H
#define GK_SIM_USER_MODULES_H

#include "device/sim/simulator.h"

/* A kernel of a loaded module: what gk_kernel.function is. */
typedef struct gk_simulated_kernel {
    gk_sim_body body;
    const gk_sim_module *module;
} gk_simulated_kernel;

gk_status gk_simulated_module_load(gk_backend *backend, const void *image, size_t bytes,
                                   gk_module **loaded, gk_error *error);
void gk_simulated_module_free(gk_backend *backend, gk_module *module);
gk_status gk_simulated_module_kernel(gk_backend *backend, gk_module *module, const char *symbol,
                                     gk_kernel *kernel, gk_error *error);
gk_status gk_simulated_module_symbol(gk_backend *backend, gk_module *module, const char *symbol,
                                     void **device, size_t *bytes, gk_error *error);
gk_status gk_simulated_kernel_parameter(gk_backend *backend, const gk_kernel *kernel, int number,
                                        size_t *bytes, gk_error *error);
gk_status gk_simulated_kernel_occupancy(gk_backend *backend, const gk_kernel *kernel, int threads,
                                        size_t shared_bytes, int *blocks, gk_error *error);
gk_status gk_simulated_kernel_suggest(gk_backend *backend, const gk_kernel *kernel,
                                      size_t shared_bytes, int *threads, gk_error *error);

#endif
