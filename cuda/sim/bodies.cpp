// One family of kernels as simulator bodies. Compiled once a family, with
// -DGK_FAMILY=sum -DGK_FAMILY_FILE='"sum.cu"'; defines gk_sim_bodies_sum.
#include "device.cuh"
#include "sim.h"
#include "sim_call.h"

#define GK_PASTE(a, b)  a##b
#define GK_CONCAT(a, b) GK_PASTE(a, b)
#define GK_NAMESPACE    GK_CONCAT(gk_family_, GK_FAMILY)
#define GK_BODIES       GK_CONCAT(gk_sim_bodies_, GK_FAMILY)

// Two families may each have a helper of one name; without a namespace the linker would take one of
// the two for both. System headers come in through device.cuh, in front of it.
namespace GK_NAMESPACE {
#include GK_FAMILY_FILE
}

// The rows once more, this time as entries of the table.
#define GK_ROWS_ONLY
#undef GK_ROW
#define GK_ROW(op, variant, dtype, symbol, ...)                                                    \
    {#symbol, gk_sim_call<&GK_NAMESPACE::symbol>::run, gk_sim_call<&GK_NAMESPACE::symbol>::sizes},

extern "C" {
extern const gk_sim_body GK_BODIES[] __attribute__((visibility("hidden")));
const gk_sim_body GK_BODIES[] = {
#include GK_FAMILY_FILE
    {nullptr, nullptr, nullptr}};
}
