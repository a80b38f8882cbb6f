/* A few threads that copy, pack and touch memory side by side; asleep when there is nothing to do.
 */
#ifndef GK_WORKERS_H
#define GK_WORKERS_H

typedef struct gk_workers gk_workers;

/* What each worker does: `worker` counts from 0. */
typedef void (*gk_job)(void *context, int worker);

/* No thread is started yet. NULL: out of memory. */
gk_workers *gk_workers_new(int count);
void gk_workers_free(gk_workers *workers);
int gk_workers_count(const gk_workers *workers);

/* Run the job once on so many workers, or on all there are, the calling thread being worker 0, and
   return when they have ended. One job at a time: another caller waits, and a job begun within a
   job (by the handler of a signal) runs on its own thread alone. Threads that cannot be started do
   not count: the job sees fewer workers, never none. Works again in the child of a fork. */
enum { GK_ALL_WORKERS = 0x7fffffff };
void gk_workers_run(gk_workers *workers, int count, gk_job job, void *context);

/* The cores that this process may run on. */
int gk_cores(void);

#endif
