#include "engine/rates.h"

/* Which of the sizes of elements it is: 1, 2, 4, 8 bytes. */
static int number_of(int64_t size) {
    return size >= 8 ? 3 : size == 4 ? 2 : (int)size - 1;
}

double gk_filled(int64_t rows, int64_t columns, const gk_row *row) {
    int64_t down = gk_parts_of(rows, row->tile_rows) * row->tile_rows;
    int64_t across = gk_parts_of(columns, row->tile_columns) * row->tile_columns;
    return (double)rows * (double)columns / ((double)down * (double)across);
}

static double bytes_of_tile(const gk_row *row, int64_t size) {
    return (double)row->tile_rows * row->tile_columns * (double)size;
}

/* That a thread moves of a tile, there or not. */
static double words_of_thread(const gk_row *row, int64_t size) {
    const double word = (double)(row->alignment > size ? row->alignment : size);
    return bytes_of_tile(row, size) / word / row->threads;
}

/* A multiprocessor has its tiles for as long as it takes a thread to move its words and some more;
   full tiles are bound by the memory, which takes longer where they write parts of sectors. */
double gk_rate_of_tiles(const gk_row *row, int64_t size, double filled, bool parts) {
    const double most = 3600.0, of_word = 7.5, of_parts = 0.8;
    const double begun = size >= 8 ? 9.0 : size == 4 && row->alignment == 8 ? 5.0 : 3.0;
    const double words = words_of_thread(row, size) + begun;
    double rate = of_word * bytes_of_tile(row, size) * filled / words;
    return (rate < most ? rate : most) * (parts ? of_parts : 1.0);
}

/* Tiles take the same time, filled or not, until the memory takes longer. */
double gk_rate_of_ragged(int64_t size, double filled, bool even) {
    static const struct {
        double even, listed, most;
    } of_size[] = {{5000.0, 4000.0, 3000.0}, {5000.0, 4000.0, 3600.0}, {5500.0, 4400.0, 3600.0}};
    const int of = number_of(size);
    const double rate = filled * (even ? of_size[of].even : of_size[of].listed);
    return rate < of_size[of].most ? rate : of_size[of].most;
}

double gk_rate_of_boxes(int64_t size) {
    return size == 1 ? 1100.0 : size == 2 ? 1700.0 : 2400.0;
}

double gk_rate_of_elements(int64_t size, bool far) {
    double near = size == 1 ? 1200.0 : size == 2 ? 1900.0 : 3000.0;
    return far ? 0.55 * near : near;
}

/* what the cache holds --------------------------------------------------------------------------
 */

/* Bytes of one side in so many nanoseconds; both sides count. */
static double rate_of(double bytes, double time) {
    return 2.0 * bytes / time;
}

static double count_tiles(const gk_row *row, int64_t size, double filled, double bytes) {
    return bytes / (filled * bytes_of_tile(row, size));
}

double gk_rate_of_cached_tiles(const gk_row *row, int64_t size, double filled, double bytes) {
    const double begun = 800.0, begun_word = 50.0, of_word = 0.2, more = 3.5, of_byte = 1.3e-4;
    const double words = words_of_thread(row, size);
    const double of_tiles = count_tiles(row, size, filled, bytes) * of_word * (words + more);
    return rate_of(bytes, begun + begun_word * words + of_tiles + of_byte * bytes);
}

double gk_rate_of_cached_ragged(const gk_row *row, int64_t size, double filled, double bytes) {
    static const struct {
        double begun, tile, full;
    } of_size[] = {{3400.0, 6.4, 14.5}, {2170.0, 4.4, 2.6}, {1600.0, 2.7, 2.9}};
    const int of = number_of(size);
    const double each = of_size[of].tile + of_size[of].full * filled;
    return rate_of(bytes, of_size[of].begun + count_tiles(row, size, filled, bytes) * each);
}

/* boxes of runs, and what is in their place ------------------------------------------------------
 */

enum { SIZES = 4 }; /* elements of 1, 2, 4 and 8 bytes */

static const double WITHOUT_RUNS[GK_WITHOUT_RUNS][SIZES] = {
    [GK_BY_WEAVING] = {1700.0, 2250.0, 0.0, 0.0},
    [GK_BY_BOXES] = {880.0, 1650.0, 2400.0, 2900.0},
    [GK_BY_FAR_ELEMENTS] = {240.0, 500.0, 900.0, 1550.0},
    [GK_FEW_SOON] = {780.0, 1150.0, 900.0, 1550.0},
    [GK_QUARTER_SOON] = {1250.0, 1750.0, 1900.0, 1550.0},
    [GK_HALF_SOON] = {1500.0, 2200.0, 2850.0, 3080.0},
    [GK_ALL_LATER] = {950.0, 1200.0, 2340.0, 2900.0},
    [GK_ALL_SOON] = {1400.0, 1720.0, 3450.0, 3500.0},
    [GK_ALL_NEXT] = {2200.0, 2800.0, 3630.0, 3670.0},
};

/* The same of elements that the cache holds, once a kernel has begun. */
static const double CACHED[GK_WITHOUT_RUNS][SIZES] = {
    [GK_BY_FAR_ELEMENTS] = {580.0, 1060.0, 1670.0, 2700.0},
    [GK_FEW_SOON] = {1250.0, 2580.0, 1670.0, 3200.0},
    [GK_QUARTER_SOON] = {1960.0, 3060.0, 3590.0, 3200.0},
    [GK_HALF_SOON] = {2280.0, 3890.0, 5200.0, 5000.0},
    [GK_ALL_LATER] = {1410.0, 1910.0, 3960.0, 4600.0},
    [GK_ALL_SOON] = {1650.0, 2500.0, 5700.0, 5700.0},
    [GK_ALL_NEXT] = {5000.0, 5500.0, 6250.0, 6800.0},
};

double gk_rate_of_cached_elements(int64_t size, gk_without_runs way, double bytes) {
    const double begun = size < 8 ? 1450.0 : 1000.0;
    return rate_of(bytes, begun + 2.0 * bytes / CACHED[way][number_of(size)]);
}

double gk_rate_without_runs(int64_t size, gk_without_runs way) {
    return WITHOUT_RUNS[way][number_of(size)];
}

/* Threads of boxes find out what to do, while others move what the cache has, which is faster. */
double gk_rate_in_cache(int64_t size, gk_without_runs way, double share) {
    static const double begun[SIZES] = {0.14, 0.06, 0.06, 0.02};
    static const double of_elements[SIZES] = {1.0, 1.05, 1.2, 1.2};
    const int of = number_of(size);
    if (share >= 1.0)
        return 1.0;
    return way <= GK_BY_BOXES ? 1.0 / (1.0 + begun[of] / share) : of_elements[of];
}

double gk_rate_of_ragged_beside_runs(int64_t size, double filled, bool even) {
    static const double none[2][SIZES] = {{1290.0, 1400.0, 2260.0}, {1370.0, 1480.0, 2570.0}};
    static const double all[2][SIZES] = {{2500.0, 3280.0, 3390.0}, {2930.0, 3330.0, 3510.0}};
    const int of = number_of(size);
    return none[even][of] + (all[even][of] - none[even][of]) * filled;
}

double gk_rate_of_runs(int64_t size, const gk_run_shape *shape) {
    static const double most[SIZES] = {4600.0, 4600.0, 4200.0, 4100.0};
    static const double written[SIZES] = {172.0, 140.0, 62.0, 34.0}; /* bytes that a run costs */
    static const double read[SIZES] = {17.0, 15.0, 14.0, 15.0};
    static const double box[SIZES] = {9800.0, 6900.0, 4000.0, 4100.0};
    static const double word[SIZES] = {0.25, 0.1, 0.013, 0.0075}; /* another one in a bank */
    const int of = number_of(size);
    const int more = shape->in_a_bank > GK_FEW_IN_A_BANK ? shape->in_a_bank - GK_FEW_IN_A_BANK : 0;
    return most[of] / (1.0 + written[of] / (double)shape->written + read[of] / (double)shape->read +
                       box[of] / (double)shape->bytes + word[of] * more);
}
