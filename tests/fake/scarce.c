/* A C library that runs out. Preloaded, it has one request of gpukern._core fail: of memory, of a
   lock, of a thread, of a file. Which requests are the extension's is told by where they return to;
   those of Python, NumPy and the loader are never refused. It also counts what the extension holds,
   and has threads meet at a lock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

static uintptr_t first, last; /* of the extension's code */
static atomic_long left;      /* requests until the one that fails; 0: none will */
static atomic_int struck;

static int is_ours(void *returns_to) {
    return (uintptr_t)returns_to >= first && (uintptr_t)returns_to < last;
}

static int is_refused(void *returns_to) {
    if (!is_ours(returns_to) || atomic_load(&left) <= 0 || atomic_fetch_sub(&left, 1) != 1)
        return 0;
    atomic_store(&struck, 1);
    return 1;
}

static int look_at(struct dl_phdr_info *about, size_t size, void *path) {
    (void)size;
    if (strcmp(about->dlpi_name, path) != 0)
        return 0;
    for (int i = 0; i < about->dlpi_phnum; i++) {
        const ElfW(Phdr) *at = &about->dlpi_phdr[i];
        if (at->p_type != PT_LOAD || !(at->p_flags & PF_X))
            continue;
        first = about->dlpi_addr + at->p_vaddr;
        last = first + at->p_memsz;
    }
    return 1;
}

/* Whose requests are meant: those of the loaded library of that path. 0: there is none. */
int scarce_for(const char *path) {
    return dl_iterate_phdr(look_at, (void *)(uintptr_t)path) && last;
}

/* The request of that number, from 1, is refused; 0: none. Returns whether one was. */
int scarce_refuse(long number) {
    int was = atomic_exchange(&struck, 0);
    atomic_store(&left, number);
    return was;
}

/* --- what the extension holds ------------------------------------------------------------ */

enum { PLACES = 1 << 16, FAR = 32 }; /* a pointer lies at most so many places after its own */
static _Atomic(void *) held[PLACES];
static atomic_long held_count;

static size_t place_of(const void *memory) {
    return ((uintptr_t)memory >> 4) * 0x9e3779b97f4a7c15u >> 48;
}

/* Put `now` where `before` is, in one of the places that the memory can have. */
static void change(void *memory, void *before, void *now, int count) {
    for (size_t i = 0, at = place_of(memory); i < FAR; i++, at = (at + 1) % PLACES) {
        void *wanted = before;
        if (atomic_load(&held[at]) != before ||
            !atomic_compare_exchange_strong(&held[at], &wanted, now))
            continue;
        atomic_fetch_add(&held_count, count);
        return;
    }
}

static void *note(void *memory, void *returns_to) {
    if (memory && is_ours(returns_to))
        change(memory, NULL, memory, 1);
    return memory;
}

static void forget(void *memory) {
    if (memory && last)
        change(memory, memory, NULL, -1);
}

/* How many pieces of memory the extension has asked for and not given back. */
long scarce_held(void) {
    return atomic_load(&held_count);
}

/* --- memory ------------------------------------------------------------------------------ */

static void *none(void) {
    errno = ENOMEM;
    return NULL;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t bytes) {
    return is_refused(CALLER) ? none() : note(__libc_malloc(bytes), CALLER);
}

void *calloc(size_t count, size_t bytes) {
    return is_refused(CALLER) ? none() : note(__libc_calloc(count, bytes), CALLER);
}

void *realloc(void *memory, size_t bytes) {
    if (is_refused(CALLER))
        return none();
    void *moved = __libc_realloc(memory, bytes);
    if (moved || !bytes)
        forget(memory);
    return note(moved, CALLER);
}

char *strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    if (is_refused(CALLER))
        return none();
    char *copy = note(__libc_malloc(bytes), CALLER);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    if (is_refused(CALLER))
        return ENOMEM;
    *memory = note(__libc_memalign(alignment, bytes), CALLER);
    return *memory ? 0 : ENOMEM;
}

void free(void *memory) {
    forget(memory);
    __libc_free(memory);
}

/* --- what else a system can have no more of ---------------------------------------------- */

#define NEXT(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

void *mmap(void *where, size_t bytes, int protection, int flags, int file, off_t offset) {
    static __typeof__(&mmap) next;
    if (is_refused(CALLER)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    if (!next)
        next = NEXT(mmap);
    return next(where, bytes, protection, flags, file, offset);
}

void *tsearch(const void *key, void **root, int (*compare)(const void *, const void *)) {
    return is_refused(CALLER) ? none() : NEXT(tsearch)(key, root, compare);
}

int madvise(void *where, size_t bytes, int advice) {
    if (is_refused(CALLER)) {
        errno = EINVAL;
        return -1;
    }
    return NEXT(madvise)(where, bytes, advice);
}

int memfd_create(const char *name, unsigned flags) {
    if (is_refused(CALLER)) {
        errno = EMFILE;
        return -1;
    }
    return NEXT(memfd_create)(name, flags);
}

ssize_t write(int file, const void *from, size_t bytes) {
    if (is_refused(CALLER)) {
        errno = ENOSPC;
        return -1;
    }
    return NEXT(write)(file, from, bytes);
}

int pthread_mutexattr_init(pthread_mutexattr_t *attributes) {
    return is_refused(CALLER) ? ENOMEM : NEXT(pthread_mutexattr_init)(attributes);
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes) {
    return is_refused(CALLER) ? ENOMEM : NEXT(pthread_mutex_init)(mutex, attributes);
}

int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes) {
    return is_refused(CALLER) ? ENOMEM : NEXT(pthread_cond_init)(condition, attributes);
}

int pthread_key_create(pthread_key_t *key, void (*end)(void *)) {
    return is_refused(CALLER) ? EAGAIN : NEXT(pthread_key_create)(key, end);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
    return is_refused(CALLER) ? EAGAIN : NEXT(pthread_create)(thread, attributes, run, argument);
}

/* --- meeting at a lock ------------------------------------------------------------------- */

static atomic_int patience, met;

/* Whoever takes over a lock of the extension's in the child of a fork waits from now on until
   another thread comes to the lock and waits for him; for so many milliseconds at most. Returns how
   often one has. */
int scarce_meet(int milliseconds) {
    atomic_store(&patience, milliseconds);
    return atomic_load(&met);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    if (is_ours(CALLER))
        while (atomic_load(&met) == 0 && atomic_fetch_sub(&patience, 1) > 0)
            usleep(1000);
    return NEXT(pthread_mutex_trylock)(mutex);
}

int sched_yield(void) {
    if (is_ours(CALLER))
        atomic_fetch_add(&met, 1);
    return NEXT(sched_yield)();
}
