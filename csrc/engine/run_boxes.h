/* How a copy between two orders of axes is cut into boxes that have runs on both sides: what is
   read goes by vectors, and what is written by words (cuda/transpose/worded.cu). */
#ifndef GK_RUN_BOXES_H
#define GK_RUN_BOXES_H

#include "engine/nest.h"
#include "transpose/copies.h"

/* What they move a second, of elements of up to 8 bytes (`engine/rates.h`), and which these are; 0:
   there are none. */
double gk_rate_of_run_boxes(const gk_nest *nest, int64_t size, gk_run_boxes *boxes);

/* Of a nest that has some. */
gk_run_boxes gk_run_boxes_of(const gk_nest *nest, int64_t size);

/* Blocks to launch: each goes through some of the boxes. */
size_t gk_run_boxes_blocks(const gk_run_boxes *boxes);

#endif
