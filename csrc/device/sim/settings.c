#include "device/sim/settings.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"

enum { MOST_CORES = 1024, MOST_DEVICES = 8 };

/* A non-negative number from the environment. */
static gk_status number_from(const char *variable, uint64_t *number, gk_error *error) {
    const char *text = getenv(variable);
    if (!text || !*text)
        return GK_OK;
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (*end || errno || *text < '0' || *text > '9')
        return gk_fail(error, GK_VALUE_ERROR, "%s is '%s', not a number of 0 or more", variable,
                       text);
    *number = value;
    return GK_OK;
}

static uint64_t at_most(uint64_t number, uint64_t most) {
    return number < most ? number : most;
}

gk_status gk_sim_settings_read(gk_sim_settings *settings, gk_error *error) {
    /* Half of the memory of the machine, or of the container: arrays on the host need the rest. */
    size_t half = gk_memory_total() / 2;
    uint64_t seed = 1, lazy = 0, cores = 0, devices = 1, memory = 0;
    gk_status status = number_from("GPUKERN_SIM_SEED", &seed, error);
    if (status == GK_OK)
        status = number_from("GPUKERN_SIM_LAZY", &lazy, error);
    if (status == GK_OK)
        status = number_from("GPUKERN_SIM_THREADS", &cores, error);
    if (status == GK_OK)
        status = number_from("GPUKERN_SIM_DEVICES", &devices, error);
    if (status == GK_OK)
        status = number_from("GPUKERN_SIM_MEMORY", &memory, error);
    *settings = (gk_sim_settings){
        .seed = seed,
        .lazy = lazy,
        .cores = (unsigned)at_most(cores, MOST_CORES),
        .devices = devices ? (int)at_most(devices, MOST_DEVICES) : 1,
        .memory = memory ? (size_t)at_most(memory, half) : half,
    };
    return status;
}
