/* A launch: its limits, its blocks in their order, and the OS threads that they are spread over. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/lock.h"
#include "shadow.h"
#include "shared.h"
#include "watch.h"

enum {
    MAX_WORKERS = 16,     /* each may map 2 x 1024 stacks and guards; a process has 65530 */
    THREADS_ALONE = 4096, /* smaller grids are done before another core has woken up */
    MAX_BATCH = 64,       /* blocks taken at once */
    NANOSECONDS_BETWEEN_QUESTIONS = 20000000,
};

/* The blocks of one launch: batches in a permutation, the blocks of a batch one after another. */
typedef struct gk_sim_job {
    const gk_sim_grid *grid;
    uint64_t blocks, batch, batches;
    uint64_t first, step;
    gk_sim_seen *kernel; /* of gpukern's own, or NULL; its ranges under the lock */
    gk_sim_touched expected;
    _Atomic uint64_t next;
    atomic_bool stop;
    pthread_mutex_t *lock;
    char *problem; /* of the first fault, under the lock */
    size_t size;
} gk_sim_job;

struct gk_sim {
    uint64_t seed;
    unsigned workers; /* the calling thread is the first */
    gk_sim_statics statics;
    gk_lock turn; /* one launch at a time */
    gk_sim_seen seen[GK_SIM_SEEN];
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake, done;
    gk_sim_job *job;
    uint64_t generation; /* counts jobs handed to the helpers */
    unsigned helpers, busy;
    bool quit;
    gk_sim_worker *worker[MAX_WORKERS];
    pthread_t thread[MAX_WORKERS];
};

typedef struct gk_sim_helper {
    gk_sim *sim;
    gk_sim_worker *worker;
    uint64_t generation;
} gk_sim_helper;

static bool refuse(char *problem, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(char *problem, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, size, format, arguments);
    va_end(arguments);
    return false;
}

/* What the driver answers with CUDA_ERROR_INVALID_VALUE. */
static bool within_limits(const gk_sim_grid *grid, char *problem, size_t size) {
    const unsigned *g = grid->grid, *b = grid->block;
    const char *symbol = grid->body->symbol;
    for (int i = 0; i < 3; i++) {
        if (!g[i] || !b[i])
            return refuse(problem, size,
                          "%s: a grid of (%u, %u, %u) blocks of (%u, %u, %u) threads is empty",
                          symbol, g[0], g[1], g[2], b[0], b[1], b[2]);
        unsigned most = i == 2 ? GK_SIM_MAX_BLOCK_Z : GK_SIM_MAX_THREADS;
        if (b[i] > most)
            return refuse(problem, size, "%s: a block of %u threads in %c; the limit is %u", symbol,
                          b[i], "xyz"[i], most);
        unsigned blocks = i == 0 ? GK_SIM_MAX_GRID_X : GK_SIM_MAX_GRID_YZ;
        if (g[i] > blocks)
            return refuse(problem, size, "%s: a grid of %u blocks in %c; the limit is %u", symbol,
                          g[i], "xyz"[i], blocks);
    }
    uint64_t threads = (uint64_t)b[0] * b[1] * b[2];
    if (threads > GK_SIM_MAX_THREADS)
        return refuse(problem, size, "%s: a block of (%u, %u, %u) is %llu threads; the limit is %d",
                      symbol, b[0], b[1], b[2], (unsigned long long)threads, GK_SIM_MAX_THREADS);
    if (grid->shared_bytes > GK_SIM_MAX_SHARED)
        return refuse(problem, size,
                      "%s: %zu bytes of dynamic shared memory a block; the limit is %d", symbol,
                      grid->shared_bytes, GK_SIM_MAX_SHARED);
    return true;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void plan(gk_sim_job *job, const gk_sim_grid *grid, uint64_t seed) {
    job->grid = grid;
    job->blocks = (uint64_t)grid->grid[0] * grid->grid[1] * grid->grid[2];
    job->batch = job->blocks / MAX_BATCH;
    job->batch = job->batch < 1 ? 1 : job->batch > MAX_BATCH ? MAX_BATCH : job->batch;
    job->batches = (job->blocks + job->batch - 1) / job->batch;
    job->first = seed ? gk_sim_mix(seed) % job->batches : 0;
    job->step = seed ? 1 + gk_sim_mix(~seed) % job->batches : 1;
    while (common_divisor(job->step, job->batches) != 1)
        job->step++;
}

static void fail_job(gk_sim_job *job, const char *problem) {
    gk_sim_index at = gk_sim_now.block;
    pthread_mutex_lock(job->lock);
    if (!atomic_exchange(&job->stop, true))
        snprintf(job->problem, job->size, "%s: block (%u, %u, %u): %s", job->grid->body->symbol,
                 at.x, at.y, at.z, problem);
    pthread_mutex_unlock(job->lock);
}

static bool run_block(gk_sim_job *job, gk_sim_worker *worker, uint64_t number,
                      const gk_sim_statics *statics, gk_sim_touched *touched) {
    uint64_t x = job->grid->grid[0], y = job->grid->grid[1];
    gk_sim_now.block = (gk_sim_index){(unsigned)(number % x), (unsigned)(number / x % y),
                                      (unsigned)(number / x / y)};
    gk_sim_statics_poison(statics, touched);
    gk_sim_dynamic_poison(worker);
    worker->followed = 0;
    bool good = gk_sim_block_run(worker, number);
    if (!good)
        fail_job(job, worker->problem);
    if (good && job->grid->follows && worker->followed != worker->count) {
        fail_job(job, "not every thread has waited for the kernel before it (gk_follow)");
        good = false;
    }
    if (!gk_sim_dynamic_whole(worker)) {
        if (good)
            fail_job(job, "it wrote past the end of its dynamic shared memory");
        good = false;
    }
    return good;
}

/* Blocks until there are none left, or one has failed. */
static void run_batches(gk_sim_job *job, gk_sim_worker *worker, const gk_sim_statics *statics,
                        gk_sim_touched *touched) {
    for (;;) {
        uint64_t turn = atomic_fetch_add(&job->next, 1);
        if (turn >= job->batches)
            return;
        uint64_t batch =
            (uint64_t)((job->first + (unsigned __int128)turn * job->step) % job->batches);
        uint64_t end = (batch + 1) * job->batch;
        for (uint64_t i = batch * job->batch; i < end && i < job->blocks; i++)
            if (atomic_load_explicit(&job->stop, memory_order_relaxed) ||
                !run_block(job, worker, i, statics, touched))
                return;
    }
}

static void run_blocks(gk_sim *sim, gk_sim_job *job, gk_sim_worker *worker, bool is_launching) {
    worker->stop = &job->stop;
    worker->may_ask = is_launching && job->grid->user && job->grid->user->interrupted;
    if (!gk_sim_worker_take(worker, job->grid, sim->seed) ||
        !gk_sim_dynamic_take(worker, job->grid->shared_bytes) ||
        (worker->user && !gk_sim_watch_take(worker))) {
        fail_job(job, "out of memory for the simulator");
        return;
    }
    gk_sim_statics statics = worker->user ? gk_sim_statics_of(worker->user->module) : sim->statics;
    gk_sim_touched touched = job->expected;
    run_batches(job, worker, &statics, &touched);
    gk_sim_statics_leave(&statics, &touched);
    if (job->kernel && touched.watched) {
        pthread_mutex_lock(job->lock);
        gk_sim_seen_more(job->kernel, &touched);
        pthread_mutex_unlock(job->lock);
    }
}

/* Every core's thread runs this. */
static void run_job(gk_sim *sim, gk_sim_job *job, gk_sim_worker *worker, bool is_launching) {
    run_blocks(sim, job, worker, is_launching);
    gk_sim_now.worker = NULL;
}

static void *help(void *context) {
    gk_sim_helper helper = *(gk_sim_helper *)context;
    gk_sim *sim = helper.sim;
    free(context);
    pthread_mutex_lock(&sim->lock);
    for (;;) {
        while (!sim->quit && sim->generation == helper.generation)
            pthread_cond_wait(&sim->wake, &sim->lock);
        if (sim->quit)
            break;
        helper.generation = sim->generation;
        gk_sim_job *job = sim->job;
        pthread_mutex_unlock(&sim->lock);
        run_job(sim, job, helper.worker, false);
        pthread_mutex_lock(&sim->lock);
        if (!--sim->busy)
            pthread_cond_signal(&sim->done);
    }
    pthread_mutex_unlock(&sim->lock);
    return NULL;
}

/* One helper more. False where the system gives no thread: the others do its work. */
static bool start_helper(gk_sim *sim) {
    unsigned place = sim->helpers + 1;
    gk_sim_helper *helper = malloc(sizeof *helper);
    if (!sim->worker[place])
        sim->worker[place] = gk_sim_worker_new();
    if (!helper || !sim->worker[place]) {
        free(helper);
        return false;
    }
    *helper = (gk_sim_helper){sim, sim->worker[place], sim->generation};
    /* Signals are for the threads of the program. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&sim->thread[place], NULL, help, helper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        free(helper);
    else
        sim->helpers++;
    return !failed;
}

/* Under the lock, which is given up meanwhile: until the last one is done, or for so long that the
   user is asked whether the launch is to end. */
static void wait_for_helpers(gk_sim *sim, gk_sim_job *job) {
    gk_sim_user *user = job->grid->user;
    struct timespec until;
    if (!user || !user->interrupted) {
        pthread_cond_wait(&sim->done, &sim->lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += NANOSECONDS_BETWEEN_QUESTIONS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&sim->done, &sim->lock, &until) == 0 || user->was_interrupted)
        return;
    pthread_mutex_unlock(&sim->lock);
    if (user->interrupted(user->context)) {
        user->was_interrupted = true;
        fail_job(job, "the launch was interrupted");
    }
    pthread_mutex_lock(&sim->lock);
}

static void run_spread(gk_sim *sim, gk_sim_job *job) {
    while (sim->helpers + 1 < sim->workers && start_helper(sim))
        ;
    pthread_mutex_lock(&sim->lock);
    sim->job = job;
    sim->busy = sim->helpers;
    sim->generation++;
    pthread_cond_broadcast(&sim->wake);
    pthread_mutex_unlock(&sim->lock);
    run_job(sim, job, sim->worker[0], true);
    pthread_mutex_lock(&sim->lock);
    while (sim->busy)
        wait_for_helpers(sim, job);
    pthread_mutex_unlock(&sim->lock);
}

/* No helpers, and a lock that nobody holds: at the start, and in the child of a fork, which has
   only the thread that called it. */
static void fresh(gk_sim *sim) {
    sim->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    sim->wake = sim->done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    sim->helpers = sim->busy = 0;
}

/* False: the system has no more locks to give. */
static bool take_turn(gk_sim *sim) {
    gk_taken taken = gk_lock_take(&sim->turn);
    if (taken == GK_INHERITED || taken == GK_ABANDONED)
        fresh(sim);
    return taken != GK_REFUSED;
}

static void free_shadow(const gk_sim_grid *grid) {
    if (grid->user)
        gk_sim_shadow_free(grid->user->shadow);
}

bool gk_sim_launch(gk_sim *sim, const gk_sim_grid *grid, char *problem, size_t size) {
    if (!within_limits(grid, problem, size))
        return false;
    gk_sim_job job = {.lock = &sim->lock, .problem = problem, .size = size};
    plan(&job, grid, sim->seed);
    uint64_t threads = (uint64_t)grid->block[0] * grid->block[1] * grid->block[2];
    if (grid->user && !(grid->user->shadow = gk_sim_shadow_new()))
        return refuse(problem, size, "out of memory for the simulator");
    if (!take_turn(sim)) {
        free_shadow(grid);
        return refuse(problem, size, "the system has no more locks to give");
    }
    job.kernel = grid->user ? NULL : gk_sim_seen_of(sim->seen, grid->body->run);
    job.expected = gk_sim_statics_expect(job.kernel);
    if (sim->workers > 1 && job.batches > 1 && threads * job.blocks > THREADS_ALONE)
        run_spread(sim, &job);
    else
        run_job(sim, &job, sim->worker[0], true);
    gk_lock_give(&sim->turn);
    free_shadow(grid);
    return !atomic_load(&job.stop);
}

unsigned gk_sim_cores(unsigned wanted) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (!wanted)
        wanted = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    return wanted < MAX_WORKERS ? wanted : MAX_WORKERS;
}

gk_sim *gk_sim_open(unsigned workers, uint64_t seed) {
    gk_sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return NULL;
    sim->workers = gk_sim_cores(workers);
    sim->seed = seed;
    sim->statics = gk_sim_statics_own();
    if (!gk_lock_init(&sim->turn)) {
        free(sim);
        return NULL;
    }
    fresh(sim);
    sim->worker[0] = gk_sim_worker_new();
    if (!sim->worker[0]) {
        gk_sim_close(sim);
        return NULL;
    }
    return sim;
}

void gk_sim_close(gk_sim *sim) {
    if (!sim)
        return;
    if (take_turn(sim))
        gk_lock_give(&sim->turn);
    pthread_mutex_lock(&sim->lock);
    sim->quit = true;
    pthread_cond_broadcast(&sim->wake);
    pthread_mutex_unlock(&sim->lock);
    for (unsigned i = 1; i <= sim->helpers; i++)
        pthread_join(sim->thread[i], NULL);
    for (unsigned i = 0; i < MAX_WORKERS; i++)
        gk_sim_worker_free(sim->worker[i]);
    gk_lock_free(&sim->turn);
    pthread_mutex_destroy(&sim->lock);
    pthread_cond_destroy(&sim->wake);
    pthread_cond_destroy(&sim->done);
    free(sim);
}
