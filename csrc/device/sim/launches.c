/* Launches on a simulated device: the bodies of all kernels by their symbols, and a launch as a
   step of its stream. */
#include <stdlib.h>
#include <string.h>

#include "device/registry.h"
#include "device/sim/simulator.h"
#include "device/sim/user_modules.h"

#define GK_FAMILY(name)                                                                            \
    extern const gk_sim_body gk_sim_bodies_##name[] __attribute__((visibility("hidden")));
#include "gk_families.h"
#undef GK_FAMILY

/* the table of bodies -------------------------------------------------------------------------- */

static size_t hash(const char *symbol) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    while (*symbol)
        h = (h ^ (unsigned char)*symbol++) * 0x100000001b3u;
    return (size_t)(h ^ (h >> 32));
}

/* The place of the symbol in the table, or the empty one where it would go. */
static const gk_sim_body **place_of(gk_simulated *sim, const char *symbol) {
    size_t at = hash(symbol) & (sim->slots - 1);
    while (sim->bodies[at] && strcmp(sim->bodies[at]->symbol, symbol) != 0)
        at = (at + 1) & (sim->slots - 1);
    return sim->bodies + at;
}

bool gk_simulated_tabulate(gk_simulated *sim) {
    static const gk_sim_body *const families[] = {
#define GK_FAMILY(name) gk_sim_bodies_##name,
#include "gk_families.h"
#undef GK_FAMILY
        NULL,
    };
    size_t count = 0;
    for (int i = 0; families[i]; i++)
        for (const gk_sim_body *body = families[i]; body->symbol; body++)
            count++;
    sim->slots = 1;
    while (sim->slots < 2 * count + 1)
        sim->slots *= 2;
    sim->bodies = calloc(sim->slots, sizeof *sim->bodies);
    if (!sim->bodies)
        return false;
    for (int i = 0; families[i]; i++)
        for (const gk_sim_body *body = families[i]; body->symbol; body++)
            *place_of(sim, body->symbol) = body;
    return true;
}

gk_status gk_simulated_holds(gk_backend *backend, const gk_row *row, gk_error *error) {
    if (!row->symbol)
        return gk_fail(error, GK_CUDA_ERROR, "needs a GPU (cuBLAS)");
    if (!*place_of((gk_simulated *)backend, row->symbol))
        return gk_fail(error, GK_CUDA_ERROR, "needs a GPU: the simulator has no %s", row->symbol);
    return GK_OK;
}

/* steps ---------------------------------------------------------------------------------------- */

typedef struct kernel {
    const char *symbol;
    gk_sim_grid grid;
    const gk_sim_module *module; /* of a user's kernel; NULL: of gpukern's own */
    bool (*interrupted)(void *context);
    void *context;
    int count;
    size_t bytes;                                           /* of the arguments */
    unsigned char arguments[] __attribute__((aligned(16))); /* each on a multiple of 16 */
} kernel;

static size_t room(unsigned bytes) {
    return (bytes + 15u) & ~(size_t)15;
}

/* A user's kernel knows all arrays that there are, since its accesses are watched. */
static gk_status run_users(gk_simulated *sim, const kernel *what, gk_sim_grid *grid,
                           gk_error *error) {
    gk_sim_user user = {.module = what->module,
                        .output = sim->output,
                        .interrupted = what->interrupted,
                        .context = what->context};
    gk_sim_body named = *grid->body; /* what is wrong is said of the name that its user knows */
    named.symbol = what->symbol;
    gk_sim_span *spans = gk_simulated_spans(sim, &user.array_count);
    if (!spans)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for a launch");
    user.arrays = spans;
    grid->user = &user;
    grid->body = &named;
    bool good = gk_sim_launch(sim->sim, grid, error->text, sizeof error->text);
    free(spans);
    if (user.was_interrupted)
        return error->status = GK_INTERRUPTED;
    return good ? GK_OK : (error->status = GK_CUDA_ERROR);
}

/* One that may be started early finds its arrays as they are when it has waited: lazily, where
   nobody else has them in his hands meanwhile. */
static gk_status run_own(gk_simulated *sim, const kernel *what, gk_sim_grid *grid,
                         gk_error *error) {
    gk_hidden *hidden = NULL;
    if (grid->follows && gk_queues_are_lazy(sim->queues)) {
        hidden = gk_hide(sim, what->arguments, what->bytes);
        if (!hidden)
            return gk_fail(error, GK_MEMORY_ERROR, "out of memory for a launch");
        grid->follow = gk_show;
        grid->follow_context = hidden;
    }
    bool good = gk_sim_launch(sim->sim, grid, error->text, sizeof error->text);
    if (hidden)
        gk_hidden_free(hidden);
    return good ? GK_OK : (error->status = GK_CUDA_ERROR);
}

static gk_status run_kernel(void *context, const void *payload, gk_error *error) {
    gk_simulated *sim = context;
    const kernel *what = payload;
    void **arguments = malloc(((size_t)what->count + 1) * sizeof *arguments);
    size_t at = 0;
    if (!arguments)
        return gk_fail(error, GK_MEMORY_ERROR, "out of memory for a launch");
    for (int i = 0; i < what->count; i++) {
        arguments[i] = (void *)(uintptr_t)(what->arguments + at);
        at += room(what->grid.body->sizes[i]);
    }
    gk_sim_grid grid = what->grid;
    grid.arguments = arguments;
    gk_status status =
        what->module ? run_users(sim, what, &grid, error) : run_own(sim, what, &grid, error);
    free(arguments);
    return status == GK_OK ? gk_simulated_redzones(sim, what->symbol, error) : status;
}

static gk_step *kernel_step(const gk_launch *launch, const char *symbol, const gk_sim_body *body) {
    size_t bytes = 0, at = 0;
    int count = 0;
    for (; body->sizes[count]; count++)
        bytes += room(body->sizes[count]);
    gk_step *step = gk_step_new(run_kernel, NULL, sizeof(kernel) + bytes);
    if (!step)
        return NULL;
    kernel *what = gk_step_payload(step);
    *what = (kernel){.symbol = symbol,
                     .count = count,
                     .bytes = bytes,
                     .grid = {.body = body,
                              .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
                              .block = {launch->block[0], launch->block[1], launch->block[2]},
                              .follows = launch->row && launch->row->follows,
                              .shared_bytes = launch->shared_bytes}};
    for (int i = 0; i < count; i++) {
        memcpy(what->arguments + at, launch->arguments[i], body->sizes[i]);
        at += room(body->sizes[i]);
    }
    return step;
}

/* Whoever launches can be asked whether it is to end only as long as he waits for it. */
static gk_status launch_users(gk_simulated *sim, const gk_launch *launch, gk_error *error) {
    const gk_simulated_kernel *known = launch->kernel->function;
    gk_graph *graph;
    if (gk_queues_captured(sim->queues, launch->stream, &graph, error) != GK_OK)
        return error->status;
    gk_step *step = kernel_step(launch, launch->kernel->name, &known->body);
    if (step) {
        kernel *what = gk_step_payload(step);
        what->module = known->module;
        what->context = launch->context;
        if (!graph && !gk_queues_are_lazy(sim->queues))
            what->interrupted = launch->interrupted;
    }
    return gk_queues_add(sim->queues, launch->stream, step, error);
}

gk_status gk_simulated_launch(gk_backend *backend, const gk_launch *launch, gk_error *error) {
    gk_simulated *sim = (gk_simulated *)backend;
    if (launch->kernel)
        return launch_users(sim, launch, error);
    if (gk_simulated_holds(backend, launch->row, error))
        return error->status;
    const char *symbol = launch->row->symbol;
    gk_step *step = kernel_step(launch, symbol, *place_of(sim, symbol));
    return gk_queues_add(sim->queues, launch->stream, step, error);
}
