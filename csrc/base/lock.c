#define _GNU_SOURCE /* MADV_WIPEONFORK */
#include "base/lock.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/* owners --------------------------------------------------------------------------------------- */

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static _Atomic pid_t *wiped_page(void) {
    void *page =
        mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, page_bytes(), MADV_WIPEONFORK) == 0)
        return page;
    munmap(page, page_bytes());
    return NULL;
}

/* Holds the owner's number, or that of a process of which one thread is taking over, negative. */
static _Atomic pid_t *place_of(gk_owner *owner) {
    return owner->page ? owner->page : &owner->number;
}

void gk_owner_init(gk_owner *owner) {
    owner->page = wiped_page();
    atomic_store(place_of(owner), getpid());
}

void gk_owner_free(gk_owner *owner) {
    if (owner->page)
        munmap(owner->page, page_bytes());
    owner->page = NULL;
}

bool gk_is_owner(const gk_owner *owner) {
    return owner->page ? atomic_load(owner->page) > 0 : atomic_load(&owner->number) == getpid();
}

/* True for the one thread of this process that is to take over; the others wait until it has. */
static bool begin_to_inherit(gk_owner *owner) {
    _Atomic pid_t *place = place_of(owner);
    pid_t here = getpid(), seen = atomic_load(place);
    while (seen != here) {
        if (seen != -here && atomic_compare_exchange_strong(place, &seen, -here))
            return true;
        sched_yield();
        seen = atomic_load(place);
    }
    return false;
}

static void have_inherited(gk_owner *owner) {
    atomic_store(place_of(owner), getpid());
}

/* locks ---------------------------------------------------------------------------------------- */

static bool make_mutex(gk_lock *lock) {
    int kind = lock->is_turn ? PTHREAD_MUTEX_ERRORCHECK : PTHREAD_MUTEX_DEFAULT;
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0)
        return false;
    bool made = pthread_mutexattr_settype(&attributes, kind) == 0 &&
                pthread_mutex_init(&lock->mutex, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    return made;
}

static bool init(gk_lock *lock, bool is_turn) {
    lock->is_turn = is_turn;
    if (!make_mutex(lock))
        return false;
    gk_owner_init(&lock->owner);
    return true;
}

bool gk_lock_init(gk_lock *lock) {
    return init(lock, false);
}

bool gk_turn_init(gk_lock *turn) {
    return init(turn, true);
}

void gk_lock_free(gk_lock *lock) {
    pthread_mutex_destroy(&lock->mutex);
    gk_owner_free(&lock->owner);
}

/* The mutex is taken before others see that it can be. */
static gk_taken inherit(gk_lock *lock) {
    gk_taken taken = GK_INHERITED;
    if (pthread_mutex_trylock(&lock->mutex) != 0)
        taken =
            make_mutex(lock) && pthread_mutex_lock(&lock->mutex) == 0 ? GK_ABANDONED : GK_REFUSED;
    have_inherited(&lock->owner);
    return taken;
}

gk_taken gk_lock_take(gk_lock *lock) {
    if (!gk_is_owner(&lock->owner) && begin_to_inherit(&lock->owner))
        return inherit(lock);
    return pthread_mutex_lock(&lock->mutex) == 0 ? GK_TAKEN : GK_REFUSED;
}

void gk_lock_give(gk_lock *lock) {
    (void)pthread_mutex_unlock(&lock->mutex); /* fails only where it was not taken */
}
