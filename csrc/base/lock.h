/* What a fork leaves behind: the child has the memory of its parent, and of its threads the one
   that forked. A lock may be held by a thread that is not there, and what it guards be half done.
 */
#ifndef GK_LOCK_H
#define GK_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

/* The process that something belongs to. */
typedef struct gk_owner {
    _Atomic pid_t *page;  /* its number, on a page that a fork wipes: nobody need be asked who we
                             are; NULL where the system has no such pages */
    _Atomic pid_t number; /* its number where there is no page */
} gk_owner;

void gk_owner_init(gk_owner *owner); /* this process */
void gk_owner_free(gk_owner *owner);
bool gk_is_owner(
    const gk_owner *owner); /* whether this process is it: not in the child of a fork */

/* A lock that is made anew when it is first taken in the child of a fork. */
typedef struct gk_lock {
    gk_owner owner;
    bool is_turn;
    pthread_mutex_t mutex;
} gk_lock;

/* How a lock was come by. The first to take it in the child of a fork is told so, and mends what
   the lock guards before anybody else has it. */
typedef enum gk_taken {
    GK_TAKEN,
    GK_INHERITED, /* the first one in this process; nobody held it when the fork came */
    GK_ABANDONED, /* the same, but a thread that is not here was in the middle of something */
    GK_REFUSED,   /* a turn that this thread has already: not taken */
} gk_taken;

/* False: the system has no more locks to give, and there is nothing to free. */
bool gk_lock_init(gk_lock *lock);
/* The kind that refuses, in place of a deadlock, the thread that holds it. */
bool gk_turn_init(gk_lock *turn);
void gk_lock_free(gk_lock *lock);

gk_taken gk_lock_take(gk_lock *lock);
void gk_lock_give(gk_lock *lock);

#endif
