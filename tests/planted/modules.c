/* Loads kernels of planted images on the fake driver, as the extension does:
     modules CAPABILITY SYMBOL...
   prints a line for each symbol, "ok" or the sentence, then what the driver was asked to do, before
   and after everything is unloaded. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/device.h"
#include "device/cuda/images.h"
#include "device/cuda/modules.h"
#include "device/registry.h"

static const gk_row rows[] = {
    {.variant = "add", .family = "one", .symbol = "gk_add"},
    {.variant = "sub", .family = "one", .symbol = "gk_sub"},
    {.variant = "max", .family = "two", .symbol = "gk_extreme"},
    {.variant = "min", .family = "two", .symbol = "gk_extreme"},
    {.variant = "matmul", .family = "two", .symbol = NULL},
    {.variant = "gone", .family = "two", .symbol = "gk_gone"}, /* no image has it */
};

enum { ROWS = sizeof rows / sizeof rows[0] };

const gk_row *gk_rows(size_t *count) {
    *count = ROWS;
    return rows;
}

static const gk_row *row_of(const char *name) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].variant, name) == 0)
            return &rows[i];
    exit(2);
}

int main(int argc, char **argv) {
    gk_error error = {0};
    gk_cuda cuda = {.base.capability = atoi(argv[1])};
    pthread_mutex_init(&cuda.lock, NULL);
    cuda.modules = gk_modules_new();
    if (!cuda.modules || gk_driver_open(&cuda.driver, &error) != GK_OK)
        return puts(error.text), 1;
    for (int i = 2; i < argc; i++) {
        const gk_function *function;
        const gk_row *row = row_of(argv[i]);
        gk_status status = gk_cuda_function(&cuda, row, &function, &error);
        printf("%s\n", status == GK_OK ? "ok" : error.text);
        printf("%d\n", gk_compiled_for(row->family, cuda.base.capability, false));
    }
    const char *log = dlsym(cuda.driver.library, "fake_modules");
    printf("%s\n", log);
    gk_cuda_unload(&cuda);
    printf("%s\n", log);
    gk_modules_free(cuda.modules);
    pthread_mutex_destroy(&cuda.lock);
    return 0;
}
