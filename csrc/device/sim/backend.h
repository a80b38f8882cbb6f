/* The device of a machine that has none: the same kernels on the CPU (cuda/sim). */
#ifndef GK_BACKEND_SIM_H
#define GK_BACKEND_SIM_H

#include "device/backend.h"
#include "device/reports.h"

#define GK_SIM_MODEL "simulator (CPU)"

/* GK_VALUE_ERROR if a setting (settings.h) is wrong, or there is no device `ordinal`. */
gk_status gk_backend_sim_open(gk_backend **backend, int ordinal, gk_error *error);

/* The limits that the simulator enforces, under the driver's names (CU_DEVICE_ATTRIBUTE_ left out).
 */
void gk_backend_sim_describe(int ordinal, gk_device_summary *summary, gk_attribute_visitor visit,
                             void *context);

#endif
