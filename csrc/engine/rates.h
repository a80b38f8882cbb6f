/* What ways of copying move a second, in GB of one side, as far as that tells which one to take:
   fitted to 430 works that chance made, each in all ways, on an H200 (benchmarks/NOTES.md). */
#ifndef GK_RATES_H
#define GK_RATES_H

#include "engine/nest.h"

/* The share of its tiles that a matrix fills. */
double gk_filled(int64_t rows, int64_t columns, const gk_row *row);

/* Tiles that are filled so far, of elements of so many bytes. `parts`: of sectors, which is what
   they write. */
double gk_rate_of_tiles(const gk_row *row, int64_t size, double filled, bool parts);

/* The same of those whose lines begin anywhere, of up to four bytes, of so many in all. `even`:
   lines are a step apart, and not listed. */
double gk_rate_of_ragged(int64_t size, double filled, bool even, size_t bytes);

double gk_rate_of_boxes(int64_t size);

/* Elements found by themselves. `far`: what else a sector has is read long after. */
double gk_rate_of_elements(int64_t size, bool far);

#endif
