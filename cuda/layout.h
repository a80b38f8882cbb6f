/* The shape and strides of a strided copy, as the host hands them to the kernel (C and CUDA). */
#ifndef GK_LAYOUT_H
#define GK_LAYOUT_H

#include <stdint.h>

#define GK_LAYOUT_DIMENSIONS 8 /* after neighbouring axes that form one run have been merged */

typedef struct gk_layout {
    int32_t ndim;
    int64_t shape[GK_LAYOUT_DIMENSIONS];
    int64_t to[GK_LAYOUT_DIMENSIONS];   /* strides in bytes; 0 repeats an element (broadcasting) */
    int64_t from[GK_LAYOUT_DIMENSIONS];
} gk_layout;

#endif
