#include "engine/rates.h"

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
    const int of = size == 1 ? 0 : size == 2 ? 1 : 2;
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
