#include "device/registry.h"

#include <stdio.h>
#include <string.h>

#include "reduce/reduction.h"

/* The rows stand in the .cu files, which are read twice: for the functions that prepare a launch,
   and for the table. */
#define GK_ROWS_ONLY
#define GK_HOST_PART
#define GK_ROW(...)
#define GK_LIBRARY(...)
#include "gk_family_rows.h"
#undef GK_HOST_PART
#undef GK_ROW
#undef GK_LIBRARY

#define GK_ENTRY(op_, variant_, dtype_, note_)                                                     \
    .op = GK_OP_##op_, .variant = #variant_, .dtype = GK_##dtype_, .family = GK_FAMILY_NAME,       \
    .note = note_
#define GK_ROW(op, variant, dtype, symbol_, note, ...)                                             \
    {GK_ENTRY(op, variant, dtype, note), .symbol = #symbol_, __VA_ARGS__},
#define GK_LIBRARY(op, variant, dtype, note, ...)                                                  \
    {GK_ENTRY(op, variant, dtype, note), .alignment = 1, __VA_ARGS__},

static const gk_row table[] = {
#include "gk_family_rows.h"
};

enum { ROWS = sizeof table / sizeof table[0] };
_Static_assert(ROWS <= (int)GK_MOST_ROWS, "a device remembers of each row whether it runs");

const gk_row *gk_rows(size_t *count) {
    *count = ROWS;
    return table;
}

const char *gk_op_name(gk_op op) {
    static const char *const names[] = {
#define GK_NAME(name, ...) #name,
#define GK_NAMES(name)                                                                             \
#name, #name "_short", #name "_columns", #name "_gathered", #name "_gathered_columns",         \
        #name "_little", #name "_scattered", #name "_matrices", #name "_own", #name "_beside",     \
        #name "_even", #name "_straight", #name "_along", #name "_between",
#define GK_NAMES_OF_FORMS(name, ...) #name, #name "_compact", #name "_turned",
        GK_KERNEL_NAMES(GK_NAME, GK_NAMES, GK_NAMES_OF_FORMS)
#undef GK_NAME
#undef GK_NAMES
#undef GK_NAMES_OF_FORMS
    };
    return names[op];
}

static bool serves(const gk_row *row, gk_dtype dtype) {
    return row->dtype == dtype || row->dtype == gk_dtype_bits(dtype);
}

int gk_row_capability(const gk_row *row) {
    return row->capability ? row->capability : GK_LEAST_CAPABILITY;
}

bool gk_row_runs(const gk_row *row, gk_backend *backend, gk_error *why) {
    int least = gk_row_capability(row);
    if (least > backend->capability) {
        gk_fail(why, GK_VALUE_ERROR, "needs compute capability %d.%d, this device has %d.%d",
                least / 10, least % 10, backend->capability / 10, backend->capability % 10);
        return false;
    }
    if (row->exact && least != backend->capability) {
        gk_fail(why, GK_VALUE_ERROR, "is for compute capability %d.%d alone, this device has %d.%d",
                least / 10, least % 10, backend->capability / 10, backend->capability % 10);
        return false;
    }
    return backend->holds(backend, row, why) == GK_OK;
}

/* "f32, f32x4": the names of an operation's rows, each once; of one dtype, or of all. */
static gk_list variant_names(gk_op op, const gk_dtype *dtype) {
    gk_list names = {.text = ""};
    for (int i = 0; i < ROWS; i++) {
        if (table[i].op != op || (dtype && !serves(&table[i], *dtype)))
            continue;
        bool seen = false;
        for (int j = 0; j < i; j++)
            seen |= table[j].op == op && (!dtype || serves(&table[j], *dtype)) &&
                    strcmp(table[j].variant, table[i].variant) == 0;
        if (!seen)
            gk_list_add(&names, table[i].variant);
    }
    return names;
}

/* The dtypes that an operation has kernels for. */
static gk_list dtype_names(gk_op op) {
    gk_list names = {.text = ""};
    for (int dtype = 0; dtype < GK_DTYPE_COUNT; dtype++) {
        bool served = false;
        for (int i = 0; i < ROWS; i++)
            served |= table[i].op == op && serves(&table[i], (gk_dtype)dtype);
        if (served)
            gk_list_add(&names, gk_dtype_name((gk_dtype)dtype));
    }
    return names;
}

static gk_status no_such_dtype(gk_op op, gk_dtype dtype, gk_error *error) {
    return gk_fail(error, GK_TYPE_ERROR,
                   "no kernel for %s; there are kernels for %s; convert with .astype(...)",
                   gk_dtype_name(dtype), dtype_names(op).text);
}

/* rows by name --------------------------------------------------------------------------------- */

void gk_choices_init(gk_choices *choices) {
    memset(choices, 0, sizeof *choices);
    for (int i = ROWS - 1; i >= 0; i--) {
        choices->range[table[i].op].first = i;
        if (!choices->range[table[i].op].end)
            choices->range[table[i].op].end = i + 1;
    }
}

static const gk_row *find_named(gk_op op, const char *variant, gk_dtype dtype,
                                const gk_choices *choices) {
    gk_dtype bits = gk_dtype_bits(dtype);
    for (int i = choices->range[op].first; i < choices->range[op].end; i++)
        if (table[i].op == op && (table[i].dtype == dtype || table[i].dtype == bits) &&
            strcmp(table[i].variant, variant) == 0)
            return &table[i];
    return NULL;
}

static gk_status no_such_variant(gk_op op, const char *variant, gk_dtype dtype, gk_error *error) {
    bool known = false;
    for (int i = 0; i < ROWS; i++)
        known |= table[i].op == op && strcmp(table[i].variant, variant) == 0;
    if (!known)
        return gk_fail(error, GK_VALUE_ERROR, "unknown variant '%s'; there are %s", variant,
                       variant_names(op, NULL).text);
    gk_list names = variant_names(op, &dtype);
    if (!names.items)
        return no_such_dtype(op, dtype, error);
    return gk_fail(error, GK_VALUE_ERROR, "variant '%s' is not for %s; for %s there are %s",
                   variant, gk_dtype_name(dtype), gk_dtype_name(dtype), names.text);
}

static _Atomic(gk_ready) *ready_of(const gk_row *row, gk_backend *backend) {
    return &backend->choices->ready[row - table];
}

/* Whether a row that does not run may run later: it lacks memory. */
static bool passes(const gk_error *why) {
    return why->status == GK_MEMORY_ERROR;
}

/* One that did not run is tried again, for the sentence. */
static bool try_row(const gk_row *row, gk_backend *backend, gk_error *why) {
    _Atomic(gk_ready) *ready = ready_of(row, backend);
    if (atomic_load_explicit(ready, memory_order_relaxed) == GK_RUNS)
        return true;
    bool runs = gk_row_runs(row, backend, why);
    if (runs || !passes(why))
        atomic_store_explicit(ready, runs ? GK_RUNS : GK_RUNS_NOT, memory_order_relaxed);
    return runs;
}

bool gk_row_is_ready(const gk_row *row, gk_backend *backend) {
    gk_error ignored;
    return atomic_load_explicit(ready_of(row, backend), memory_order_relaxed) != GK_RUNS_NOT &&
           try_row(row, backend, &ignored);
}

gk_status gk_row_named(gk_op op, const char *variant, gk_dtype dtype, gk_backend *backend,
                       const gk_row **row, gk_error *error) {
    *row = find_named(op, variant, dtype, backend->choices);
    if (!*row)
        return no_such_variant(op, variant, dtype, error);
    if (try_row(*row, backend, error))
        return GK_OK;
    if (!passes(error))
        error->status = GK_VALUE_ERROR;
    return gk_fail_in(error, "variant '%s' does not run here: ", variant);
}

/* rows by what they are to do ------------------------------------------------------------------ */

static _Atomic(const gk_row *) *cell_of(const gk_wish *wish, gk_backend *backend) {
    int alignment = __builtin_ctzll((unsigned long long)wish->address_bits | 16);
    int form = wish->not_plain ? 2 : wish->strided;
    return &backend->choices->rows[wish->op][wish->dtype][form][alignment];
}

/* Whether pointers of these bits are multiples of `alignment`, a power of two. */
static bool is_aligned(uintptr_t bits, int alignment) {
    return (bits & (uintptr_t)(alignment - 1)) == 0;
}

static bool is_of(const gk_row *row, const gk_wish *wish) {
    return row->op == wish->op && serves(row, wish->dtype) &&
           (row->takes == GK_TAKES_LAYOUT) == wish->strided && !(row->plain && wish->not_plain) &&
           (!row->named || row == wish->limit);
}

/* The last row that suits; `why`: what stood against others, and `passing`: against one of them
   only now. */
static const gk_row *look(const gk_wish *wish, gk_backend *backend, gk_error *why, bool *passing) {
    const gk_row *first = &table[backend->choices->range[wish->op].first];
    const gk_row *last = &table[backend->choices->range[wish->op].end] - 1;
    *passing = false;
    for (const gk_row *row = wish->limit ? wish->limit : last; row >= first; row--) {
        if (!is_of(row, wish) || !is_aligned(wish->address_bits, row->alignment))
            continue;
        if (gk_row_runs(row, backend, why))
            return row;
        *passing = *passing || passes(why);
    }
    return NULL;
}

/* What stands in a cell where it is known that no row takes pointers of such an alignment. */
static const gk_row none;

/* What was found before, with nothing to look through: whether it is known. */
static bool recall(const gk_wish *wish, gk_backend *backend, const gk_row **row) {
    /* The wanted row was found to run when it was looked up by its name. */
    bool wanted = wish->limit && is_of(wish->limit, wish) &&
                  is_aligned(wish->address_bits, wish->limit->alignment);
    *row = wanted ? wish->limit : NULL;
    if (!wish->limit)
        *row = atomic_load_explicit(cell_of(wish, backend), memory_order_relaxed);
    bool known = *row != NULL;
    if (*row == &none)
        *row = NULL;
    return known;
}

static const gk_row *find(const gk_wish *wish, gk_backend *backend, gk_error *why) {
    bool passing;
    why->status = GK_OK;
    const gk_row *row = look(wish, backend, why, &passing);
    if (!wish->limit && !passing && (row || why->status == GK_OK))
        atomic_store_explicit(cell_of(wish, backend), row ? row : &none, memory_order_relaxed);
    return row;
}

const gk_row *gk_row_suiting(const gk_wish *wish, gk_backend *backend) {
    const gk_row *row;
    gk_error ignored;
    return recall(wish, backend, &row) ? row : find(wish, backend, &ignored);
}

static gk_status nothing_runs(const gk_wish *wish, gk_error *error) {
    bool served = false;
    for (int i = 0; i < ROWS; i++)
        served |= is_of(&table[i], wish);
    if (!served)
        return no_such_dtype(wish->op, wish->dtype, error);
    if (error->status == GK_OK)
        return gk_fail(error, GK_VALUE_ERROR,
                       "no variant for %s takes pointers of such an alignment",
                       gk_dtype_name(wish->dtype));
    return gk_fail_in(error, "no variant for %s runs here: ", gk_dtype_name(wish->dtype));
}

gk_status gk_row_chosen(const gk_wish *wish, gk_backend *backend, const gk_row **row,
                        gk_error *error) {
    bool known = recall(wish, backend, row);
    if (!known)
        *row = find(wish, backend, error);
    else if (!*row)
        error->status = GK_OK;
    if (!*row)
        return nothing_runs(wish, error);
    error->status = GK_OK; /* of rows that do not run */
    return GK_OK;
}

bool gk_row_known(const gk_wish *wish, const char *variant, gk_backend *backend) {
    if (!variant)
        return atomic_load_explicit(cell_of(wish, backend), memory_order_relaxed) != NULL;
    const gk_row *row = find_named(wish->op, variant, wish->dtype, backend->choices);
    return !row || atomic_load_explicit(ready_of(row, backend), memory_order_relaxed) == GK_RUNS;
}
