/* What the environment asks of the simulator. */
#ifndef GK_SIM_SETTINGS_H
#define GK_SIM_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct gk_sim_settings {
    uint64_t seed;  /* GPUKERN_SIM_SEED: of the order of threads and blocks */
    uint64_t lazy;  /* GPUKERN_SIM_LAZY: of the order of streams; 0: work runs at once */
    unsigned cores; /* GPUKERN_SIM_THREADS; 0: all */
    int devices;    /* GPUKERN_SIM_DEVICES */
    size_t memory;  /* GPUKERN_SIM_MEMORY, or what is fit */
} gk_sim_settings;

/* GK_VALUE_ERROR where one is no number; the others are as they are by default. */
gk_status gk_sim_settings_read(gk_sim_settings *settings, gk_error *error);

#endif
