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
    pthread_cond_t wake;
    int number;
    bool wanted; /* for the job, and not begun yet */
} worker;

struct gk_workers {
    int count;            /* with the calling thread */
    gk_lock turn;         /* held by the caller whose job runs */
    bool ready;           /* the locks that follow are there */
    int started;          /* threads that run */
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t done;
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
    int ready = 0; /* workers that can be woken */
    if (pthread_mutex_init(&workers->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&workers->done, NULL) != 0)
        goto no_done;
    while (ready < workers->count && pthread_cond_init(&workers->workers[ready].wake, NULL) == 0)
        ready++;
    if (ready == workers->count)
        return true;
    while (ready-- > 0)
        pthread_cond_destroy(&workers->workers[ready].wake);
    pthread_cond_destroy(&workers->done);
no_done:
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
    pthread_mutex_lock(&pool->lock);
    while (!pool->closing) {
        if (!self->wanted) {
            pthread_cond_wait(&self->wake, &pool->lock);
            continue;
        }
        self->wanted = false;
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
    while (workers->started < workers->count - 1) {
        worker *next = &workers->workers[workers->started];
        next->pool = workers;
        next->number = workers->started + 1;
        next->wanted = false;
        if (!start_thread(next))
            break;
        workers->started++;
    }
}

static void run_on_some(gk_workers *workers, int count, gk_job job, void *context) {
    pthread_mutex_lock(&workers->lock);
    if (workers->started == 0)
        start_threads(workers);
    workers->job = job;
    workers->context = context;
    workers->running = count - 1 < workers->started ? count - 1 : workers->started;
    for (int i = 0; i < workers->running; i++) {
        workers->workers[i].wanted = true;
        pthread_cond_signal(&workers->workers[i].wake);
    }
    pthread_mutex_unlock(&workers->lock);

    job(context, 0);

    pthread_mutex_lock(&workers->lock);
    while (workers->running > 0)
        pthread_cond_wait(&workers->done, &workers->lock);
    pthread_mutex_unlock(&workers->lock);
}

void gk_workers_run(gk_workers *workers, int count, gk_job job, void *context) {
    if (count <= 1) {
        job(context, 0);
        return;
    }
    gk_taken taken = gk_lock_take(&workers->turn);
    if (taken == GK_INHERITED || taken == GK_ABANDONED)
        workers->ready = prepare(workers);
    if (taken != GK_REFUSED && workers->ready)
        run_on_some(workers, count, job, context);
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
        for (int i = 0; i < workers->started; i++)
            pthread_cond_signal(&workers->workers[i].wake);
        pthread_mutex_unlock(&workers->lock);
        for (int i = 0; i < workers->started; i++)
            pthread_join(workers->workers[i].thread, NULL);
        for (int i = 0; i < workers->count; i++)
            pthread_cond_destroy(&workers->workers[i].wake);
        pthread_cond_destroy(&workers->done);
        pthread_mutex_destroy(&workers->lock);
    }
    gk_lock_free(&workers->turn);
    free(workers->workers);
    free(workers);
}
