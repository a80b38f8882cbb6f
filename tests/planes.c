/* The kernels that split float32 into planes, for tests/test_planes.py: launched on the simulator
   with a structure of the test's own. */
#include <stdio.h>

#include "sim.h"

extern const gk_sim_body gk_sim_bodies_matmul_14_planes[];

/* NULL, or what went wrong. */
const char *run_part(const char *symbol, unsigned blocks, unsigned threads, void *work);

const char *run_part(const char *symbol, unsigned blocks, unsigned threads, void *work) {
    static char problem[512];
    gk_sim *sim = gk_sim_open(0, 1);
    const gk_sim_body *body = gk_sim_bodies_matmul_14_planes;
    while (body->symbol && __builtin_strcmp(body->symbol, symbol) != 0)
        body++;
    if (!sim || !body->symbol) {
        snprintf(problem, sizeof problem, "no %s", sim ? symbol : "memory");
        gk_sim_close(sim);
        return problem;
    }
    void *arguments[] = {work};
    const gk_sim_grid grid = {
        .body = body, .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .arguments = arguments};
    bool well = gk_sim_launch(sim, &grid, problem, sizeof problem);
    gk_sim_close(sim);
    return well ? NULL : problem;
}
