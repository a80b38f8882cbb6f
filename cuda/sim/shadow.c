#include "shadow.h"

#include <stdlib.h>
#include <string.h>

#include "watch.h"

/* Of more memory than these pages have, what is touched first is looked into. */
enum { WORD = 4, PAGE = 4096, SLOTS = 4096, MOST_PAGES = 2048 };

typedef struct cell {
    gk_sim_mark written, read, read_by_another;
    unsigned char value[WORD]; /* that was written */
} cell;

typedef struct gk_sim_page {
    uintptr_t number;
    atomic_flag busy;
    cell cells[PAGE / WORD];
} page;

/* A hash table of pages, which several OS threads fill. */
struct gk_sim_shadow {
    atomic_bool is_ordered;
    atomic_uint pages;
    page *_Atomic slots[SLOTS];
};

gk_sim_shadow *gk_sim_shadow_new(void) {
    return calloc(1, sizeof(gk_sim_shadow));
}

void gk_sim_shadow_free(gk_sim_shadow *shadow) {
    for (unsigned i = 0; shadow && i < SLOTS; i++)
        free(atomic_load(&shadow->slots[i]));
    free(shadow);
}

void gk_sim_shadow_order(gk_sim_shadow *shadow) {
    if (shadow)
        atomic_store_explicit(&shadow->is_ordered, true, memory_order_relaxed);
}

static page *new_page(gk_sim_shadow *shadow, uintptr_t number) {
    if (atomic_fetch_add(&shadow->pages, 1) >= MOST_PAGES)
        return NULL;
    page *made = calloc(1, sizeof *made);
    if (made) {
        made->number = number;
        atomic_flag_clear(&made->busy);
    }
    return made;
}

/* NULL: there is no room for it. */
static page *find(gk_sim_shadow *shadow, uintptr_t number) {
    unsigned slot = (unsigned)(gk_sim_mix(number) % SLOTS);
    for (;; slot = (slot + 1) % SLOTS) {
        page *found = atomic_load_explicit(&shadow->slots[slot], memory_order_acquire);
        if (!found) {
            if (atomic_load_explicit(&shadow->pages, memory_order_relaxed) >= MOST_PAGES)
                return NULL;
            page *made = new_page(shadow, number);
            if (!made || atomic_compare_exchange_strong(&shadow->slots[slot], &found, made))
                return made;
            free(made); /* another thread was faster, maybe with this page */
            atomic_fetch_sub(&shadow->pages, 1);
        }
        if (found->number == number)
            return found;
    }
}

static inline page *page_of(gk_sim_worker *worker, uintptr_t number, gk_sim_met *met) {
    if (!met->recent || met->recent->number != number) {
        page *found = find(worker->user->shadow, number);
        if (!found)
            return NULL;
        met->recent = found;
    }
    return met->recent;
}

static void take(page *of) {
    while (atomic_flag_test_and_set_explicit(&of->busy, memory_order_acquire))
        ;
}

static void give(page *of) {
    atomic_flag_clear_explicit(&of->busy, memory_order_release);
}

/* Whether another thread's touch may come before or after mine, and matters to it. */
static bool meets(gk_sim_worker *worker, const gk_sim_mark *other, const gk_sim_mark *mine) {
    if (!(other->bytes & mine->bytes) || (other->is_soft && mine->is_soft))
        return false;
    if (other->block == mine->block)
        return gk_sim_watch_unordered(worker, other->epoch, other->thread, other->clock);
    return !atomic_load_explicit(&worker->user->shadow->is_ordered, memory_order_relaxed);
}

static void note_read(gk_sim_worker *worker, cell *at, const gk_sim_mark *mine, gk_sim_met *met) {
    const gk_sim_mark *written = &at->written;
    if (meets(worker, written, mine) && written->is_settled && !written->is_silent)
        met->race = *written;
    const gk_sim_mark *last = &at->read, *other = &at->read_by_another;
    bool is_far = last->block != mine->block; /* what no barrier orders is kept */
    bool is_near = last->thread != mine->thread && (!other->bytes || other->block == mine->block);
    if (last->bytes && (is_far || is_near))
        at->read_by_another = at->read;
    at->read = *mine;
}

static const gk_sim_mark *other_read(gk_sim_worker *worker, const cell *at,
                                     const gk_sim_mark *mine) {
    return meets(worker, &at->read, mine)              ? &at->read
           : meets(worker, &at->read_by_another, mine) ? &at->read_by_another
                                                       : NULL;
}

static void note_change(gk_sim_worker *worker, cell *at, const gk_sim_mark *mine, gk_sim_met *met) {
    const gk_sim_mark *read = other_read(worker, at, mine);
    if (read)
        met->race = *read;
    if (meets(worker, &at->written, mine))
        met->race = at->written;
    at->written = *mine;
    at->written.is_atomic = at->written.is_settled = 1;
}

/* `from` is where the word begins in what is written, which may be in front of it. */
static void note_write(gk_sim_worker *worker, cell *at, const gk_sim_mark *mine, ptrdiff_t from,
                       bool is_compared, gk_sim_met *met) {
    const gk_sim_mark *read = other_read(worker, at, mine), *written = &at->written;
    bool meets_write = meets(worker, written, mine);
    if (meets_write && written->is_atomic)
        met->race = *written;
    if (read)
        met->read = *read;
    if (meets_write && written->is_settled && is_compared) {
        met->written = *written;
        for (int i = 0; i < WORD; i++)
            if (written->bytes & mine->bytes & (1u << i)) {
                met->theirs[from + i] = at->value[i];
                met->compared |= (uint64_t)1 << (from + i);
            }
    }
    at->written = *mine;
    at->written.is_settled = !is_compared;
}

/* The bytes of a word that are among those. */
static unsigned mask_of(uintptr_t word, uintptr_t at, size_t bytes) {
    uintptr_t end = at + bytes;
    unsigned skipped = at > word ? (unsigned)(at - word) : 0;
    unsigned over = word + WORD > end ? (unsigned)(word + WORD - end) : 0;
    return 0xfu << skipped & 0xfu >> over;
}

void gk_sim_shadow_touch(gk_sim_worker *worker, uintptr_t at, size_t bytes, gk_sim_touching what,
                         gk_sim_mark mine, gk_sim_met *met) {
    bool is_compared = bytes <= GK_SIM_MOST_COMPARED;
    met->race.bytes = met->written.bytes = met->read.bytes = 0;
    met->compared = 0;
    for (uintptr_t word = at & ~(uintptr_t)(WORD - 1); word < at + bytes; word += WORD) {
        page *of = page_of(worker, word / PAGE, met);
        if (!of)
            continue;
        cell *one = &of->cells[word % PAGE / WORD];
        mine.bytes = mask_of(word, at, bytes) & 0xfu;
        take(of);
        if (what == GK_SIM_READS)
            note_read(worker, one, &mine, met);
        else if (what == GK_SIM_CHANGES)
            note_change(worker, one, &mine, met);
        else
            note_write(worker, one, &mine, (ptrdiff_t)(word - at), is_compared, met);
        give(of);
    }
}

void gk_sim_shadow_settle(gk_sim_worker *worker, uintptr_t at, size_t bytes, gk_sim_mark mine,
                          const unsigned char *was, gk_sim_met *met) {
    for (uintptr_t word = at & ~(uintptr_t)(WORD - 1); word < at + bytes; word += WORD) {
        page *of = page_of(worker, word / PAGE, met);
        if (!of)
            continue;
        cell *one = &of->cells[word % PAGE / WORD];
        unsigned mask = mask_of(word, at, bytes);
        bool is_silent = true;
        take(of);
        if (one->written.block == mine.block && one->written.thread == mine.thread) {
            for (unsigned i = 0; i < WORD; i++)
                if (mask >> i & 1) {
                    one->value[i] = *(const unsigned char *)(word + i);
                    is_silent = is_silent && one->value[i] == was[word + i - at];
                }
            one->written.is_settled = 1;
            one->written.is_silent = is_silent;
        }
        give(of);
    }
}
