#include "base/workers.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct worker {
    gk_workers *pool;
    pthread_t thread;
    int number;
} worker;

struct gk_workers {
    int count;            /* with the calling thread */
    int started;          /* threads that run */
    pid_t owner;          /* the process that they run in */
    pthread_mutex_t turn; /* held by the caller whose job runs */
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

void gk_turn_init(pthread_mutex_t *turn) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(turn, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static void prepare(gk_workers *workers) {
    gk_turn_init(&workers->turn);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->wake, NULL);
    pthread_cond_init(&workers->done, NULL);
    workers->owner = getpid();
    workers->started = 0;
    workers->running = 0;
}

gk_workers *gk_workers_new(int count) {
    gk_workers *workers = calloc(1, sizeof *workers);
    if (!workers)
        return NULL;
    workers->count = count > 0 ? count : 1;
    workers->workers = calloc((size_t)workers->count, sizeof *workers->workers);
    if (!workers->workers) {
        free(workers);
        return NULL;
    }
    prepare(workers);
    return workers;
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

void gk_workers_run(gk_workers *workers, gk_job job, void *context) {
    if (workers->owner != getpid())
        prepare(workers); /* a fork leaves the child no threads, and locks in any state */
    if (pthread_mutex_lock(&workers->turn) != 0) {
        job(context, 0);
        return;
    }
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
    pthread_mutex_unlock(&workers->turn);
}

void gk_workers_free(gk_workers *workers) {
    if (!workers)
        return;
    if (workers->owner == getpid()) {
        pthread_mutex_lock(&workers->lock);
        workers->closing = true;
        pthread_cond_broadcast(&workers->wake);
        pthread_mutex_unlock(&workers->lock);
        for (int i = 0; i < workers->started; i++)
            pthread_join(workers->workers[i].thread, NULL);
    }
    free(workers->workers);
    free(workers);
}
