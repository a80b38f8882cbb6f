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

/* A multiprocessor has its tiles for as long as it takes a thread to move some words, and one for
   each that it has, there or not; full tiles are bound by the memory, which takes longer where
   tiles write parts of sectors. */
double gk_rate_of_tiles(const gk_row *row, int64_t size, double filled, bool parts) {
    const double most = 3600.0, of_word = 7.5, of_parts = 0.8;
    const double begun = size >= 8 ? 9.0 : size == 4 && row->alignment == 8 ? 5.0 : 3.0;
    double bytes = (double)row->tile_rows * row->tile_columns * (double)size;
    double word = (double)(row->alignment > size ? row->alignment : size);
    double rate = of_word * bytes * filled / (bytes / word / row->threads + begun);
    return (rate < most ? rate : most) * (parts ? of_parts : 1.0);
}

/* Tiles take the same time, filled or not, until the memory takes longer. Of a few the device is
   idle for a part of it. */
double gk_rate_of_ragged(int64_t size, double filled, bool even, size_t bytes) {
    static const struct {
        double even, listed, most, few;
    } of_size[] = {{5000.0, 4000.0, 3000.0, 0.25},
                   {5000.0, 4000.0, 3600.0, 0.55},
                   {5500.0, 4400.0, 3600.0, 0.65}};
    const size_t little = 8 << 20;
    const int of = number_of(size);
    const double rate = filled * (even ? of_size[of].even : of_size[of].listed);
    return (rate < of_size[of].most ? rate : of_size[of].most) *
           (bytes < little ? of_size[of].few : 1.0);
}

double gk_rate_of_boxes(int64_t size) {
    return size == 1 ? 1100.0 : size == 2 ? 1700.0 : 2400.0;
}

double gk_rate_of_elements(int64_t size, bool far) {
    double near = size == 1 ? 1200.0 : size == 2 ? 1900.0 : 3000.0;
    return far ? 0.55 * near : near;
}

/* boxes of runs, and what is in their place ------------------------------------------------------
 */

enum { SIZES = 4 }; /* elements of 1, 2, 4 and 8 bytes */

static const double WITHOUT_RUNS[GK_WITHOUT_RUNS][SIZES] = {
    [GK_BY_WEAVING] = {1700.0, 2250.0, 0.0, 0.0},
    [GK_BY_BOXES] = {1000.0, 1850.0, 2600.0, 3100.0},
    [GK_BY_FAR_ELEMENTS] = {240.0, 500.0, 900.0, 1550.0},
    [GK_FEW_SOON] = {780.0, 1150.0, 900.0, 1550.0},
    [GK_QUARTER_SOON] = {1250.0, 1750.0, 1900.0, 1550.0},
    [GK_HALF_SOON] = {1500.0, 2200.0, 2850.0, 3080.0},
    [GK_ALL_LATER] = {950.0, 1200.0, 2340.0, 2900.0},
    [GK_ALL_SOON] = {1400.0, 1720.0, 3450.0, 3500.0},
    [GK_ALL_NEXT] = {2200.0, 2800.0, 3630.0, 3670.0},
};

double gk_rate_without_runs(int64_t size, gk_without_runs way) {
    return WITHOUT_RUNS[way][number_of(size)];
}

/* Threads of boxes find out what to do, while others move what the cache has, which is faster. */
double gk_rate_in_cache(int64_t size, gk_without_runs way, double share) {
    static const double begun[SIZES] = {0.45, 0.27, 0.12, 0.07};
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
