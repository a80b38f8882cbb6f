/* What the simulator says that it is. */
#include "base/memory.h"
#include "device/sim/backend.h"
#include "device/sim/settings.h"
#include "sim/sim.h"

void gk_backend_sim_describe(int ordinal, gk_device_summary *summary, gk_attribute_visitor visit,
                             void *context) {
    gk_sim_settings settings;
    gk_error ignored;
    (void)ordinal; /* they are all alike */
    (void)gk_sim_settings_read(&settings, &ignored);
    *summary = (gk_device_summary){
        .name = GK_SIM_MODEL,
        .capability = GK_SIM_CAPABILITY,
        .memory_total = settings.memory,
        .memory_free = gk_memory_free(),
    };
    if (summary->memory_free > summary->memory_total)
        summary->memory_free = summary->memory_total;
    const struct {
        const char *name;
        int value;
    } attributes[] = {
        {"MAX_THREADS_PER_BLOCK", GK_SIM_MAX_THREADS},
        {"MAX_BLOCK_DIM_X", GK_SIM_MAX_THREADS},
        {"MAX_BLOCK_DIM_Y", GK_SIM_MAX_THREADS},
        {"MAX_BLOCK_DIM_Z", GK_SIM_MAX_BLOCK_Z},
        {"MAX_GRID_DIM_X", GK_SIM_MAX_GRID_X},
        {"MAX_GRID_DIM_Y", GK_SIM_MAX_GRID_YZ},
        {"MAX_GRID_DIM_Z", GK_SIM_MAX_GRID_YZ},
        {"MAX_SHARED_MEMORY_PER_BLOCK", GK_SIM_MAX_SHARED},
        {"WARP_SIZE", GK_SIM_WARP},
        {"MULTIPROCESSOR_COUNT", (int)gk_sim_cores(settings.cores)},
        {"COMPUTE_CAPABILITY_MAJOR", GK_SIM_CAPABILITY / 10},
        {"COMPUTE_CAPABILITY_MINOR", GK_SIM_CAPABILITY % 10},
    };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        visit(context, attributes[i].name, attributes[i].value);
}
