/* Elementwise operations of which some operands run along other axes than the result. */
#ifndef GK_ELEMENTWISE_TURNED_H
#define GK_ELEMENTWISE_TURNED_H

#include "ops/elementwise_work.h"

/* Whether tiles are good for the arrays of a nest as they lie; then `served`, bit k of operand k:
   they read it as memory has it, along one side or the other. */
bool gk_are_turned(gk_call *call, const gk_work *ready, const gk_nest *nest, uint32_t *served);

/* By tiles, if that is so, but for `rest`, which is nothing where its last axis has length 0; else
   nothing is launched, and `launched` is false. */
gk_status gk_launch_turned(gk_call *call, const gk_work *ready, const gk_nest *piece,
                           bool *launched, gk_nest *rest);

#endif
