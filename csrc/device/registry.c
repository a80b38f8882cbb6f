#include "device/registry.h"

#include <stdio.h>
#include <string.h>

#include "reduction.h"

/* The rows stand in the .cu files; what each macro of theirs means to the table is said here. */
#define GK_ROWS_ONLY
#define GK_ENTRY(op_, variant_, dtype_, capability_, note_)                                        \
    .op = #op_, .variant = #variant_, .dtype = GK_##dtype_, .family = GK_FAMILY_NAME,              \
    .minimum_capability = capability_, .note = note_
#define GK_KERNEL(op, variant, dtype, symbol_, rows_, columns_, threads_, alignment_, capability,  \
                  note, ...)                                                                       \
    {GK_ENTRY(op, variant, dtype, capability, note),                                               \
     .symbol = #symbol_,                                                                           \
     .tile_rows = rows_,                                                                           \
     .tile_columns = columns_,                                                                     \
     .threads = threads_,                                                                          \
     .alignment = alignment_,                                                                      \
     __VA_ARGS__},
#define GK_TILE(op, variant, dtype, symbol, rows, columns, threads, alignment, capability, note)   \
    GK_KERNEL(op, variant, dtype, symbol, rows, columns, threads, alignment, capability, note, )
#define GK_ROW(op, variant, dtype, symbol, each, threads, alignment, capability, note)             \
    GK_KERNEL(op, variant, dtype, symbol, 1, (each) * (threads), threads, alignment, capability,   \
              note, )
#define GK_STRIDED(op, variant, dtype, symbol, each, threads, alignment, capability, note)         \
    GK_KERNEL(op, variant, dtype, symbol, 1, (each) * (threads), threads, alignment, capability,   \
              note, .strided = true)
#define GK_ACCUMULATE(op, variant, dtype, symbol, each, threads, alignment, capability, note)      \
    GK_KERNEL(op, variant, dtype, symbol, 1, (each) * (threads), threads, alignment, capability,   \
              note, .accumulates = true)
#define GK_REDUCE(op, variant, dtype, symbol, threads, note)                                       \
    GK_KERNEL(op, variant, dtype, symbol, 1, threads, threads, 1, 75, note, .reduces = true)
#define GK_LIBRARY(op, variant, dtype, capability, note)                                           \
    {GK_ENTRY(op, variant, dtype, capability, note), .alignment = 1},

static const gk_row table[] = {
#include "gk_family_rows.h"
};

enum { ROWS = sizeof table / sizeof table[0] };

const gk_row *gk_rows(size_t *count) {
    *count = ROWS;
    return table;
}

bool gk_row_serves(const gk_row *row, gk_dtype dtype) {
    return row->dtype == dtype || row->dtype == gk_dtype_bits(dtype);
}

bool gk_row_runs(const gk_row *row, gk_backend *backend, gk_error *why) {
    if (row->minimum_capability > backend->capability) {
        gk_fail(why, GK_VALUE_ERROR, "needs compute capability %d.%d, this device has %d.%d",
                row->minimum_capability / 10, row->minimum_capability % 10,
                backend->capability / 10, backend->capability % 10);
        return false;
    }
    return backend->holds(backend, row, why) == GK_OK;
}

/* "f32, f32x4": the names of an operation's rows, each once; of one dtype, or of all. */
static gk_text variant_names(const char *op, const gk_dtype *dtype) {
    gk_text names = {""};
    size_t used = 0;
    for (int i = 0; i < ROWS && used < sizeof names.text; i++) {
        if (strcmp(table[i].op, op) != 0 || (dtype && !gk_row_serves(&table[i], *dtype)))
            continue;
        bool seen = false;
        for (int j = 0; j < i; j++)
            seen |= strcmp(table[j].op, op) == 0 && (!dtype || gk_row_serves(&table[j], *dtype)) &&
                    strcmp(table[j].variant, table[i].variant) == 0;
        if (!seen)
            used += (size_t)snprintf(names.text + used, sizeof names.text - used, "%s%s",
                                     used ? ", " : "", table[i].variant);
    }
    return names;
}

/* The dtypes that an operation has kernels for. */
static gk_text dtype_names(const char *op) {
    gk_text names = {""};
    size_t used = 0;
    for (int dtype = 0; dtype < GK_DTYPE_COUNT && used < sizeof names.text; dtype++) {
        bool served = false;
        for (int i = 0; i < ROWS; i++)
            served |= strcmp(table[i].op, op) == 0 && gk_row_serves(&table[i], (gk_dtype)dtype);
        if (served)
            used += (size_t)snprintf(names.text + used, sizeof names.text - used, "%s%s",
                                     used ? ", " : "", gk_dtype_name((gk_dtype)dtype));
    }
    return names;
}

static gk_status no_such_dtype(const char *op, gk_dtype dtype, gk_error *error) {
    return gk_fail(error, GK_TYPE_ERROR,
                   "%s: no kernel for %s; there are kernels for %s; convert with .astype(...)", op,
                   gk_dtype_name(dtype), dtype_names(op).text);
}

/* remembered choices --------------------------------------------------------------------------- */

enum { DTYPES = GK_bits128 + 1, ALIGNMENTS = 5 }; /* of 1, 2, 4, 8 and 16 bytes or more */
enum { OPERATIONS = GK_CHOICES / 2 / (DTYPES * ALIGNMENTS) };

static size_t hash_name(const char *name) {
    size_t hash = 5381;
    while (*name)
        hash = hash * 33 + (unsigned char)*name++;
    return hash;
}

/* The first half of the choices: a cell for each dtype and alignment of an operation, so that what
   stands there is right if it is of that operation. */
static _Atomic(const gk_row *) *chosen_cell(gk_backend *backend, const char *op, gk_dtype dtype,
                                            uintptr_t address_bits) {
    size_t alignment = (size_t)__builtin_ctzll((unsigned long long)address_bits | 16);
    size_t cell = (hash_name(op) % OPERATIONS * DTYPES + dtype) * ALIGNMENTS + alignment;
    return &backend->choices->rows[cell];
}

/* The second half: what stands there is right if its names are. */
static _Atomic(const gk_row *) *named_cell(gk_backend *backend, const char *op, const char *variant,
                                           gk_dtype dtype) {
    size_t hash = (hash_name(op) * 31 + hash_name(variant)) * DTYPES + dtype;
    return &backend->choices->rows[GK_CHOICES / 2 + hash % (GK_CHOICES / 2)];
}

/* The row of that name if it was looked up before, and the cell for it if not. */
static const gk_row *named_before(gk_backend *backend, const char *op, const char *variant,
                                  gk_dtype dtype, _Atomic(const gk_row *) **cell) {
    *cell = named_cell(backend, op, variant, dtype);
    const gk_row *row = atomic_load_explicit(*cell, memory_order_relaxed);
    bool same = row && strcmp(row->op, op) == 0 && strcmp(row->variant, variant) == 0 &&
                gk_row_serves(row, dtype);
    return same ? row : NULL;
}

/* The row for these pointers if it was chosen before, and the cell for it if not. */
static const gk_row *chosen_before(gk_backend *backend, const char *op, gk_dtype dtype,
                                   uintptr_t address_bits, _Atomic(const gk_row *) **cell) {
    *cell = chosen_cell(backend, op, dtype, address_bits);
    const gk_row *row = atomic_load_explicit(*cell, memory_order_relaxed);
    return row && strcmp(row->op, op) == 0 ? row : NULL;
}

bool gk_row_known(const char *op, const char *variant, gk_dtype dtype, gk_backend *backend) {
    _Atomic(const gk_row *) *cell;
    return variant ? named_before(backend, op, variant, dtype, &cell) != NULL
                   : chosen_before(backend, op, dtype, 0, &cell) != NULL;
}

gk_status gk_row_named(const char *op, const char *variant, gk_dtype dtype, gk_backend *backend,
                       const gk_row **row, gk_error *error) {
    _Atomic(const gk_row *) *cell;
    bool known = false;
    *row = named_before(backend, op, variant, dtype, &cell);
    if (*row)
        return GK_OK;
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(table[i].op, op) != 0 || strcmp(table[i].variant, variant) != 0)
            continue;
        known = true;
        if (!gk_row_serves(&table[i], dtype))
            continue;
        if (!gk_row_runs(&table[i], backend, error)) {
            error->status = GK_VALUE_ERROR;
            return gk_fail_in(error, "%s: variant '%s' does not run here: ", op, variant);
        }
        *row = &table[i];
        atomic_store_explicit(cell, *row, memory_order_relaxed);
        return GK_OK;
    }
    if (!known)
        return gk_fail(error, GK_VALUE_ERROR, "%s: unknown variant '%s'; there are %s", op, variant,
                       variant_names(op, NULL).text);
    gk_text names = variant_names(op, &dtype);
    if (!names.text[0])
        return no_such_dtype(op, dtype, error);
    return gk_fail(error, GK_VALUE_ERROR, "%s: variant '%s' is not for %s; for %s there are %s", op,
                   variant, gk_dtype_name(dtype), gk_dtype_name(dtype), names.text);
}

gk_status gk_row_chosen(const char *op, gk_dtype dtype, gk_backend *backend, uintptr_t address_bits,
                        const gk_row *wanted, const gk_row **row, gk_error *error) {
    _Atomic(const gk_row *) *cell;
    bool served = false;
    *row = chosen_before(backend, op, dtype, address_bits, &cell);
    if (wanted) /* it was found to run when it was looked up by its name */
        *row = (address_bits & (uintptr_t)(wanted->alignment - 1)) == 0 ? wanted : NULL;
    if (*row)
        return GK_OK;
    gk_error why = {0};
    for (int i = ROWS - 1; i >= 0; i--) {
        const gk_row *candidate = &table[i];
        if (strcmp(candidate->op, op) != 0 || !gk_row_serves(candidate, dtype))
            continue;
        served = true;
        if ((wanted && candidate > wanted) ||
            (address_bits & (uintptr_t)(candidate->alignment - 1)) != 0 ||
            !gk_row_runs(candidate, backend, &why))
            continue;
        *row = candidate;
        if (!wanted)
            atomic_store_explicit(cell, candidate, memory_order_relaxed);
        return GK_OK;
    }
    if (!served)
        return no_such_dtype(op, dtype, error);
    *error = why;
    return gk_fail_in(error, "%s: no variant for %s runs here: ", op, gk_dtype_name(dtype));
}
