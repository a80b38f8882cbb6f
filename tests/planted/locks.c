/* A lock of csrc/base/lock.c before and after a fork, in the child and in its children: one thread
   of each is told, the others find it mended. `locks pages` uses pages that a fork wipes, `locks
   numbers` does without. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"

enum { THREADS = 8, ROUNDS = 200 };

static bool has_pages = true;
static gk_lock lock, turn;
static pthread_barrier_t together;
static int inherited, abandoned, guarded;

int __real_madvise(void *start, size_t bytes, int advice);
int __wrap_madvise(void *start, size_t bytes, int advice) {
    return has_pages ? __real_madvise(start, bytes, advice) : -1;
}

static void need(bool condition, const char *what) {
    if (condition)
        return;
    printf("not so: %s\n", what);
    fflush(stdout);
    _exit(1);
}

static void *hold(void *unused) {
    need(gk_lock_take(&lock) == GK_TAKEN, "the first thread takes the lock");
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    gk_lock_give(&lock);
    return unused;
}

/* What is counted under the lock is right at the end if one thread at a time has held it. */
static void *use(void *unused) {
    pthread_barrier_wait(&together);
    for (int i = 0; i < ROUNDS; i++) {
        gk_taken taken = gk_lock_take(&lock);
        inherited += taken == GK_INHERITED;
        abandoned += taken == GK_ABANDONED;
        int seen = guarded;
        if (i % 16 == 0)
            usleep(1);
        guarded = seen + 1;
        gk_lock_give(&lock);
    }
    return unused;
}

static void use_from_all(void) {
    pthread_t threads[THREADS];
    inherited = abandoned = guarded = 0;
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        need(pthread_create(&threads[i], NULL, use, NULL) == 0, "a thread starts");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    need(guarded == THREADS * ROUNDS, "one thread at a time holds the lock");
}

static void wait_for(pid_t child) {
    int status;
    need(waitpid(child, &status, 0) == child && status == 0, "the child ends well");
}

static void in_a_child(int held, int generations) {
    fflush(stdout);
    pid_t child = fork();
    if (child > 0) {
        wait_for(child);
        return;
    }
    alarm(60);
    need(!gk_is_owner(&lock.owner), "the child does not own what its parent made");
    use_from_all();
    need(gk_is_owner(&lock.owner), "the child owns what it has inherited");
    need(inherited == !held && abandoned == held, "one thread, the first, is told of the fork");
    if (generations > 1)
        in_a_child(0, generations - 1);
    _exit(0);
}

static void held_by_another_thread(void) {
    pthread_t thread;
    pthread_barrier_init(&together, NULL, 2);
    need(pthread_create(&thread, NULL, hold, NULL) == 0, "a thread starts");
    pthread_barrier_wait(&together);
    in_a_child(1, 3);
    pthread_barrier_wait(&together);
    pthread_join(thread, NULL);
    need(gk_lock_take(&lock) == GK_TAKEN, "the parent sees nothing of it");
    gk_lock_give(&lock);
}

static void taken_twice(void) {
    need(gk_lock_take(&turn) == GK_TAKEN, "a turn is taken");
    need(gk_lock_take(&turn) == GK_REFUSED, "a turn that this thread has is refused");
    gk_lock_give(&turn);
    need(gk_lock_take(&turn) == GK_TAKEN, "a turn that was given back is taken");
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        need(gk_lock_take(&turn) == GK_ABANDONED, "the child of a fork has the turn");
        need(gk_lock_take(&turn) == GK_REFUSED, "and is refused it then");
        _exit(0);
    }
    wait_for(child);
    gk_lock_give(&turn);
}

int main(int count, char **arguments) {
    has_pages = count < 2 || strcmp(arguments[1], "numbers") != 0;
    need(gk_lock_init(&lock) && gk_turn_init(&turn), "there are locks");
    need(has_pages || !lock.owner.page, "there are no such pages");
    in_a_child(0, 3);
    held_by_another_thread();
    taken_twice();
    gk_lock_free(&lock);
    gk_lock_free(&turn);
    puts("right");
    return 0;
}
