#include "device/tuned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/registry.h"

/* The borders of the ranges of sizes; outside of them nothing is measured. A range begins behind
   its lower border, but for the first one. As python/gpukern/bench/tuning/products.py has them. */
static const int64_t borders[] = {64,   96,   128,  192,  256,  384,  512,   768,  1024,
                                  1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384};

enum { BORDERS = sizeof borders / sizeof *borders, RANGES = BORDERS - 1, SIDES = 3, WAYS = 8 };
enum { CELLS = RANGES * RANGES * RANGES, LINE = 512 };

/* Of a range of M, N and K: places in the table of rows; twice the same: nothing is faster. */
typedef struct cell {
    uint16_t row, than;
} cell;
_Static_assert(GK_MOST_ROWS <= UINT16_MAX, "a row's place fits into a cell");

struct gk_tuned {
    cell *of[GK_DTYPE_COUNT][WAYS]; /* CELLS of them; NULL: nothing is faster */
};

gk_tuned *gk_tuned_new(void) {
    return calloc(1, sizeof(gk_tuned));
}

/* All of a dtype. */
static void drop(cell **gone) {
    for (int way = 0; way < WAYS; way++) {
        free(gone[way]);
        gone[way] = NULL;
    }
}

void gk_tuned_free(gk_tuned *tuned) {
    for (int i = 0; i < GK_DTYPE_COUNT && tuned; i++)
        drop(tuned->of[i]);
    free(tuned);
}

/* looking up ----------------------------------------------------------------------------------- */

/* The first border that is not less than the size; BORDERS: none. */
static int border_of(int64_t size) {
    int border = 0;
    while (border < BORDERS && borders[border] < size)
        border++;
    return border;
}

/* The range that a size lies in; below 0: none. */
static int range_of(int64_t size) {
    int border = size < borders[0] ? BORDERS : border_of(size);
    return border == BORDERS ? -1 : border > 0 ? border - 1 : 0;
}

static int way_of(bool a_transposed, bool b_transposed, bool aligned) {
    return 4 * a_transposed + 2 * b_transposed + aligned;
}

static int place_of(int m, int n, int k) {
    return (m * RANGES + n) * RANGES + k;
}

gk_faster gk_tuned_faster(const gk_tuned *tuned, const gk_gemm *gemm, bool aligned) {
    int way = way_of(gemm->a_transposed, gemm->b_transposed, aligned);
    const cell *cells = tuned->of[gemm->dtype][way];
    if (!cells)
        return (gk_faster){NULL, NULL};
    int m = range_of(gemm->m), n = range_of(gemm->n), k = range_of(gemm->k);
    if (m < 0 || n < 0 || k < 0)
        return (gk_faster){NULL, NULL};
    size_t count;
    const gk_row *rows = gk_rows(&count);
    cell found = cells[place_of(m, n, k)];
    return found.row == found.than ? (gk_faster){NULL, NULL}
                                   : (gk_faster){&rows[found.row], &rows[found.than]};
}

/* reading -------------------------------------------------------------------------------------- */

static const char heading[] = "# gpukern matmul table ", version[] = "2";
static const char device_is[] = "# device: ", dtypes_are[] = "# measured: ";

/* A file on its way into a table. */
typedef struct reader {
    const char *path, *device;
    int line;
    bool device_known;
    bool measured[GK_DTYPE_COUNT];
    gk_tuned fresh;
    gk_error *error;
} reader;

/* What a line says: the ranges from and up to these borders, and the rows. */
typedef struct entry {
    gk_dtype dtype;
    int way, from[SIDES], to[SIDES];
    cell rows;
} entry;

#define GK_WRONG(in, ...)                                                                          \
    (gk_fail((in)->error, GK_VALUE_ERROR, __VA_ARGS__),                                            \
     gk_fail_in((in)->error, "%s, line %d: ", (in)->path, (in)->line))

static bool begins_with(const char *text, const char *head) {
    return strncmp(text, head, strlen(head)) == 0;
}

static gk_status read_heading(reader *in, const char *text) {
    if (!begins_with(text, heading))
        return GK_WRONG(in,
                        "this is no table that this gpukern reads: it begins with '%.40s', not "
                        "with '%s%s'",
                        text, heading, version);
    if (strcmp(text + strlen(heading), version) != 0)
        return GK_WRONG(in, "the table is of version %.40s, and this gpukern reads version %s",
                        text + strlen(heading), version);
    return GK_OK;
}

static gk_status read_dtype(reader *in, const char *word, gk_dtype *dtype) {
    for (int i = 0; i < GK_DTYPE_COUNT; i++)
        if (strcmp(gk_dtype_name((gk_dtype)i), word) == 0) {
            *dtype = (gk_dtype)i;
            return GK_OK;
        }
    return GK_WRONG(in, "'%.40s' is no dtype", word);
}

static gk_status read_device(reader *in, const char *name) {
    in->device_known = true;
    if (strcmp(name, in->device) == 0)
        return GK_OK;
    return GK_WRONG(in, "the table is of the device '%.80s', and this one is '%s'", name,
                    in->device);
}

static gk_status know_device(reader *in) {
    if (in->device_known)
        return GK_OK;
    return GK_WRONG(in, "no line before this one names the device, as in '%sNVIDIA H200'",
                    device_is);
}

static gk_status read_measured(reader *in, char *names) {
    char *rest = NULL;
    gk_dtype dtype;
    gk_status status = know_device(in);
    for (char *name = strtok_r(names, " ", &rest); name && status == GK_OK;
         name = strtok_r(NULL, " ", &rest)) {
        status = read_dtype(in, name, &dtype);
        if (status == GK_OK)
            in->measured[dtype] = true;
    }
    return status;
}

static gk_status read_comment(reader *in, char *text) {
    if (begins_with(text, device_is))
        return read_device(in, text + strlen(device_is));
    return begins_with(text, dtypes_are) ? read_measured(in, text + strlen(dtypes_are)) : GK_OK;
}

/* "nn", "nt", "tn" or "tt", and the alignment, 16 bytes or 1. */
static gk_status read_way(reader *in, const char *lie, const char *alignment, int *way) {
    bool lies = strlen(lie) == 2 && strspn(lie, "nt") == 2;
    bool aligned = strcmp(alignment, "16") == 0;
    if (!lies || (!aligned && strcmp(alignment, "1") != 0))
        return GK_WRONG(in,
                        "'%.40s %.40s' is not how operands lie: nn, nt, tn or tt, and an "
                        "alignment of 16 or 1",
                        lie, alignment);
    *way = way_of(lie[0] == 't', lie[1] == 't', aligned);
    return GK_OK;
}

/* The border that a word begins with, and what comes behind it; BORDERS: it is none. */
static int read_border(const char *word, const char **rest) {
    char *end;
    long long size = strtoll(word, &end, 10);
    int border = border_of(size);
    *rest = end;
    return border < BORDERS && borders[border] == size ? border : BORDERS;
}

/* "64-96" */
static gk_status read_range(reader *in, const char *word, int *from, int *to) {
    const char *rest;
    *from = read_border(word, &rest);
    *to = *rest == '-' ? read_border(rest + 1, &rest) : BORDERS;
    if (*from < *to && *to < BORDERS && !*rest)
        return GK_OK;
    return GK_WRONG(in,
                    "'%.40s' is no range from one of the sizes 64, 96, 128, 192, ..., %lld to a "
                    "larger one, as in '64-128'",
                    word, (long long)borders[BORDERS - 1]);
}

static gk_status read_row(reader *in, const char *word, gk_dtype dtype, uint16_t *place) {
    size_t count;
    const gk_row *rows = gk_rows(&count);
    for (size_t i = 0; i < count; i++)
        if (rows[i].op == GK_OP_matmul && rows[i].dtype == dtype && !rows[i].named &&
            strcmp(rows[i].variant, word) == 0) {
            *place = (uint16_t)i;
            return GK_OK;
        }
    return GK_WRONG(in,
                    "this gpukern has no variant '%.40s' of matmul that may be the default for "
                    "%s",
                    word, gk_dtype_name(dtype));
}

static gk_status add_entry(reader *in, const entry *made) {
    cell **cells = &in->fresh.of[made->dtype][made->way];
    if (!*cells)
        *cells = calloc(CELLS, sizeof **cells);
    if (!*cells)
        return gk_fail(in->error, GK_MEMORY_ERROR, "out of host memory");
    in->measured[made->dtype] = true;
    for (int m = made->from[0]; m < made->to[0]; m++)
        for (int n = made->from[1]; n < made->to[1]; n++)
            for (int k = made->from[2]; k < made->to[2]; k++)
                (*cells)[place_of(m, n, k)] = made->rows;
    return GK_OK;
}

/* "float32 nn 16 1024-2048 1024-2048 64-128 tma cublas": how operands lie, ranges of M, N and K,
   and the row that is faster there than the other one. */
static gk_status read_entry(reader *in, char *text) {
    enum { FIELDS = 8 };
    const char *words[FIELDS + 1];
    int count = 0;
    char *rest = NULL;
    entry made = {0};
    for (char *word = strtok_r(text, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
        if (count <= FIELDS)
            words[count++] = word;
    if (count != FIELDS)
        return GK_WRONG(in, "a line has a dtype, how operands lie, their alignment, ranges of M, N "
                            "and K, a variant, and the one that it is faster than");
    gk_status status = know_device(in);
    if (status == GK_OK)
        status = read_dtype(in, words[0], &made.dtype);
    if (status == GK_OK)
        status = read_way(in, words[1], words[2], &made.way);
    for (int i = 0; i < SIDES && status == GK_OK; i++)
        status = read_range(in, words[3 + i], &made.from[i], &made.to[i]);
    if (status == GK_OK)
        status = read_row(in, words[6], made.dtype, &made.rows.row);
    if (status == GK_OK)
        status = read_row(in, words[7], made.dtype, &made.rows.than);
    return status == GK_OK ? add_entry(in, &made) : status;
}

static gk_status read_line(reader *in, char *text, bool last) {
    char *end = strchr(text, '\n');
    if (!end && !last)
        return GK_WRONG(in, "the line is longer than %d characters, or no text", LINE - 2);
    if (end)
        *end = '\0';
    if (in->line == 1)
        return read_heading(in, text);
    if (text[0] == '#')
        return read_comment(in, text);
    return text[strspn(text, " \t")] ? read_entry(in, text) : GK_OK;
}

static gk_status read_file(reader *in, FILE *file) {
    char text[LINE];
    gk_status status = GK_OK;
    while (status == GK_OK && fgets(text, sizeof text, file)) {
        in->line++;
        status = read_line(in, text, feof(file));
    }
    if (status == GK_OK && in->line == 0 && !ferror(file)) {
        in->line = 1;
        return read_heading(in, "");
    }
    if (status == GK_OK && ferror(file))
        return gk_fail(in->error, GK_VALUE_ERROR, "%s: cannot be read: %s", in->path,
                       strerror(errno));
    return status;
}

/* What was read of a dtype takes the place of what was there. */
static void settle(reader *in, gk_tuned *tuned) {
    for (int i = 0; i < GK_DTYPE_COUNT; i++)
        if (in->measured[i]) {
            drop(tuned->of[i]);
            memcpy(tuned->of[i], in->fresh.of[i], sizeof tuned->of[i]);
            memset(in->fresh.of[i], 0, sizeof in->fresh.of[i]);
        }
}

gk_status gk_tuned_read(gk_tuned *tuned, const char *path, const char *device, gk_error *error) {
    reader in = {.path = path, .device = device, .error = error};
    FILE *file = fopen(path, "r");
    if (!file)
        return gk_fail(error, GK_VALUE_ERROR, "%s: cannot be read: %s", path, strerror(errno));
    gk_status status = read_file(&in, file);
    fclose(file);
    if (status == GK_OK)
        settle(&in, tuned);
    for (int i = 0; i < GK_DTYPE_COUNT; i++)
        drop(in.fresh.of[i]);
    return status;
}
