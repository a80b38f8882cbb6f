#define _GNU_SOURCE /* memfd_create, dlinfo, dl_iterate_phdr */
#include "device/sim/user_modules.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of a multiprocessor of capability 7.5. */
enum { MOST_RESIDENT = 1024, MOST_BLOCKS = 16, SHARED_BYTES = 65536, SUGGESTED = 256 };

struct gk_module {
    gk_simulated_data data; /* among those of the device, for a variable is memory of it */
    void *handle;
    int file; /* open as long as the module: the loader knows it by its name, which has the number
               */
    gk_sim_module about;
    size_t count;
    gk_simulated_kernel *kernels;
    const gk_sim_variable *variables;
};

/* loading -------------------------------------------------------------------------------------- */

static gk_status write_all(int file, const char *from, size_t bytes, gk_error *error) {
    while (bytes > 0) {
        ssize_t written = write(file, from, bytes);
        if (written <= 0)
            return gk_fail(error, GK_MEMORY_ERROR, "out of memory for a module");
        from += written;
        bytes -= (size_t)written;
    }
    return GK_OK;
}

static gk_status open_image(gk_module *module, const void *image, size_t bytes, gk_error *error) {
    char path[64];
    module->file = memfd_create("gpukern kernels", MFD_CLOEXEC);
    if (module->file < 0)
        return gk_fail(error, GK_MEMORY_ERROR, "the system has no file for a module");
    if (write_all(module->file, image, bytes, error) != GK_OK)
        return error->status;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", module->file);
    module->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module->handle) {
        const char *why = dlerror();
        return gk_fail(error, GK_CUDA_ERROR, "the module is none of the simulator's: %s",
                       why ? why : "it cannot be loaded");
    }
    return GK_OK;
}

typedef struct search {
    uintptr_t base;
    gk_sim_span found;
} search;

static int span_of(struct dl_phdr_info *info, size_t size, void *context) {
    search *sought = context;
    (void)size;
    if (info->dlpi_addr != sought->base)
        return 0;
    sought->found = (gk_sim_span){UINTPTR_MAX, 0};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        uintptr_t low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t high = low + info->dlpi_phdr[i].p_memsz;
        if (low < sought->found.low)
            sought->found.low = low;
        if (high > sought->found.high)
            sought->found.high = high;
    }
    return 1;
}

static const gk_sim_body *describe(gk_module *module) {
    struct link_map *map = NULL;
    *(void **)&module->about.dynamic_shared = dlsym(module->handle, "gk_sim_module_dynamic");
    module->about.lines = dlsym(module->handle, "gk_sim_module_lines");
    const gk_sim_body *bodies = dlsym(module->handle, "gk_sim_module_bodies");
    module->variables = dlsym(module->handle, "gk_sim_module_variables");
    if (!module->variables || !module->about.dynamic_shared || !module->about.lines || !bodies ||
        dlinfo(module->handle, RTLD_DI_LINKMAP, &map) != 0 || !gk_sim_module_shared(&module->about))
        return NULL;
    search sought = {.base = map->l_addr};
    dl_iterate_phdr(span_of, &sought);
    module->about.data = sought.found;
    return bodies;
}

static gk_status take_kernels(gk_module *module, gk_error *error) {
    const gk_sim_body *bodies = describe(module);
    if (!bodies)
        return gk_fail(error, GK_CUDA_ERROR, "the module is none of the simulator's");
    size_t shared = module->about.shared_bytes - GK_SIM_DYNAMIC_BYTES;
    if (shared > GK_SIM_MAX_SHARED)
        return gk_fail(error, GK_CUDA_ERROR,
                       "the module declares %zu bytes of shared memory, and a block has %d", shared,
                       GK_SIM_MAX_SHARED);
    while (bodies[module->count].symbol)
        module->count++;
    module->kernels = calloc(module->count + 1, sizeof *module->kernels);
    if (!module->kernels)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for a module");
    for (size_t i = 0; i < module->count; i++)
        module->kernels[i] = (gk_simulated_kernel){bodies[i], &module->about};
    return GK_OK;
}

static void unload(gk_module *module) {
    free(module->kernels);
    if (module->handle)
        dlclose(module->handle);
    if (module->file >= 0)
        close(module->file);
    free(module);
}

gk_status gk_simulated_module_load(gk_backend *backend, const void *image, size_t bytes,
                                   gk_module **loaded, gk_error *error) {
    gk_module *module = calloc(1, sizeof *module);
    if (!module)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for a module");
    gk_status status = open_image(module, image, bytes, error);
    if (status == GK_OK)
        status = take_kernels(module, error);
    if (status != GK_OK) {
        unload(module);
        return status;
    }
    module->data.span = module->about.data;
    gk_simulated_add_data((gk_simulated *)backend, &module->data);
    *loaded = module;
    return GK_OK;
}

/* What is queued may still be of its kernels. */
void gk_simulated_module_free(gk_backend *backend, gk_module *module) {
    gk_simulated_settle((gk_simulated *)backend);
    gk_simulated_remove_data((gk_simulated *)backend, &module->data);
    unload(module);
}

/* kernels -------------------------------------------------------------------------------------- */

static const char *kept_name(gk_simulated *sim, const char *name) {
    (void)gk_lock_take(&sim->events);
    gk_simulated_name *at = sim->names;
    while (at && strcmp(at->text, name) != 0)
        at = at->next;
    if (!at && (at = malloc(sizeof *at + strlen(name) + 1))) {
        strcpy(at->text, name);
        at->next = sim->names;
        sim->names = at;
    }
    gk_lock_give(&sim->events);
    return at ? at->text : NULL;
}

gk_status gk_simulated_module_kernel(gk_backend *backend, gk_module *module, const char *symbol,
                                     gk_kernel *kernel, gk_error *error) {
    gk_simulated_kernel *found = module->kernels;
    while (found->body.symbol && strcmp(found->body.symbol, symbol) != 0)
        found++;
    if (!found->body.symbol)
        return gk_fail(error, GK_VALUE_ERROR, "the module has no kernel %s", symbol);
    int shared = (int)(module->about.shared_bytes - GK_SIM_DYNAMIC_BYTES);
    *kernel = (gk_kernel){
        .name = kept_name((gk_simulated *)backend, kernel->name ? kernel->name : symbol),
        .function = found,
        .shared_bytes = shared,
        .most_dynamic = GK_SIM_MAX_SHARED - shared,
        .most_threads = GK_SIM_MAX_THREADS,
        .most_block_threads = GK_SIM_MAX_THREADS,
        .most_resident = MOST_RESIDENT,
        .most_block = {GK_SIM_MAX_THREADS, GK_SIM_MAX_THREADS, GK_SIM_MAX_BLOCK_Z},
        .most_grid = {GK_SIM_MAX_GRID_X, GK_SIM_MAX_GRID_YZ, GK_SIM_MAX_GRID_YZ},
    };
    return kernel->name ? GK_OK
                        : gk_fail(error, GK_MEMORY_ERROR, "out of host memory for a kernel");
}

gk_status gk_simulated_module_symbol(gk_backend *backend, gk_module *module, const char *symbol,
                                     void **device, size_t *bytes, gk_error *error) {
    const gk_sim_variable *found = module->variables;
    (void)backend;
    while (found->symbol && strcmp(found->symbol, symbol) != 0)
        found++;
    if (!found->symbol)
        return gk_fail(error, GK_VALUE_ERROR, "the module has no variable %s", symbol);
    *device = (void *)(uintptr_t)found->at;
    *bytes = found->bytes;
    return GK_OK;
}

gk_status gk_simulated_kernel_parameter(gk_backend *backend, const gk_kernel *kernel, int number,
                                        size_t *bytes, gk_error *error) {
    const gk_simulated_kernel *known = kernel->function;
    int count = 0;
    (void)backend, (void)error;
    while (known->body.sizes[count])
        count++;
    *bytes = number < count ? known->body.sizes[number] : 0;
    return GK_OK;
}

gk_status gk_simulated_kernel_occupancy(gk_backend *backend, const gk_kernel *kernel, int threads,
                                        size_t shared_bytes, int *blocks, gk_error *error) {
    size_t shared = (size_t)kernel->shared_bytes + shared_bytes;
    int warps = (threads + GK_SIM_WARP - 1) / GK_SIM_WARP;
    (void)backend, (void)error;
    *blocks = MOST_RESIDENT / (warps * GK_SIM_WARP);
    if (*blocks > MOST_BLOCKS)
        *blocks = MOST_BLOCKS;
    if (shared && (size_t)*blocks > SHARED_BYTES / shared)
        *blocks = (int)(SHARED_BYTES / shared);
    return GK_OK;
}

/* As many threads as fill it where shared memory leaves room for as many blocks: for one there
   always is. */
gk_status gk_simulated_kernel_suggest(gk_backend *backend, const gk_kernel *kernel,
                                      size_t shared_bytes, int *threads, gk_error *error) {
    int blocks, most = 0;
    for (int size = SUGGESTED; size <= GK_SIM_MAX_THREADS; size *= 2) {
        (void)gk_simulated_kernel_occupancy(backend, kernel, size, shared_bytes, &blocks, error);
        if (blocks * size > most) {
            most = blocks * size;
            *threads = size;
        }
    }
    return GK_OK;
}
