#include "base/workers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/lock.h"

typedef struct worker {
    gk_workers *pool;
    pthread_t thread;
    int number;
} worker;

struct gk_workers {
    int count;            /* with the calling thread */
    gk_lock turn;         /* held by the caller whose job runs */
    bool ready;           /* the locks that follow are there */
    int started;          /* threads that run */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake, done;
    unsigned long round; /* counts jobs: a worker runs each once */
    int running;
    bool closing;
    gk_job job;
    void *context;
    worker *workers;
};

int gk_cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* No thread runs, and nobody holds or waits for anything: at the start, and in the child of a fork.
   False: the system has no more locks to give. */
static bool prepare(gk_workers *workers) {
    workers->started = 0;
    workers->running = 0;
    if (pthread_mutex_init(&workers->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&workers->wake, NULL) != 0)
        goto no_wake;
    if (pthread_cond_init(&workers->done, NULL) != 0)
        goto no_done;
    return true;
no_done:
    pthread_cond_destroy(&workers->wake);
no_wake:
    pthread_mutex_destroy(&workers->lock);
    return false;
}

gk_workers *gk_workers_new(int count) {
    gk_workers *workers = calloc(1, sizeof *workers);
    if (!workers)
        return NULL;
    workers->count = count > 0 ? count : 1;
    workers->workers = calloc((size_t)workers->count, sizeof *workers->workers);
    if (!workers->workers || !gk_turn_init(&workers->turn))
        goto fail;
    workers->ready = prepare(workers);
    if (workers->ready)
        return workers;
    gk_lock_free(&workers->turn);
fail:
    free(workers->workers);
    free(workers);
    return NULL;
}

int gk_workers_count(const gk_workers *workers) {
    return workers->count;
}

static void *serve(void *argument) {
    worker *self = argument;
    gk_workers *pool = self->pool;
    unsigned long seen = 0;
    pthread_mutex_lock(&pool->lock);
    while (!pool->closing) {
        if (pool->round == seen) {
            pthread_cond_wait(&pool->wake, &pool->lock);
            continue;
        }
        seen = pool->round;
        pthread_mutex_unlock(&pool->lock);
        pool->job(pool->context, self->number);
        pthread_mutex_lock(&pool->lock);
        if (--pool->running == 0)
            pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Signals are for Python's threads: block them while a thread of ours inherits the mask. */
static bool start_thread(worker *self) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&self->thread, NULL, serve, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Under the lock and before the job is there: a new thread has nothing to run until then. */
static void start_threads(gk_workers *workers) {
    workers->round = 0;
    while (workers->started < workers->count - 1) {
        worker *next = &workers->workers[workers->started];
        *next = (worker){.pool = workers, .number = workers->started + 1};
        if (!start_thread(next))
            break;
        workers->started++;
    }
}

static void run_on_all(gk_workers *workers, gk_job job, void *context) {
    pthread_mutex_lock(&workers->lock);
    if (workers->started == 0)
        start_threads(workers);
    workers->job = job;
    workers->context = context;
    workers->running = workers->started;
    workers->round++;
    pthread_cond_broadcast(&workers->wake);
    pthread_mutex_unlock(&workers->lock);

    job(context, 0);

    pthread_mutex_lock(&workers->lock);
    while (workers->running > 0)
        pthread_cond_wait(&workers->done, &workers->lock);
    pthread_mutex_unlock(&workers->lock);
}

void gk_workers_run(gk_workers *workers, gk_job job, void *context) {
    gk_taken taken = gk_lock_take(&workers->turn);
    if (taken == GK_INHERITED || taken == GK_ABANDONED)
        workers->ready = prepare(workers);
    if (taken != GK_REFUSED && workers->ready)
        run_on_all(workers, job, context);
    else
        job(context, 0);
    if (taken != GK_REFUSED)
        gk_lock_give(&workers->turn);
}

/* What the workers of another process wait at is left as it is. */
void gk_workers_free(gk_workers *workers) {
    if (!workers)
        return;
    if (gk_is_owner(&workers->turn.owner) && workers->ready) {
        pthread_mutex_lock(&workers->lock);
        workers->closing = true;
        pthread_cond_broadcast(&workers->wake);
        pthread_mutex_unlock(&workers->lock);
        for (int i = 0; i < workers->started; i++)
            pthread_join(workers->workers[i].thread, NULL);
        pthread_cond_destroy(&workers->done);
        pthread_cond_destroy(&workers->wake);
        pthread_mutex_destroy(&workers->lock);
    }
    gk_lock_free(&workers->turn);
    free(workers->workers);
    free(workers);
}
