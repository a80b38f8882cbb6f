/* Copies between strided device arrays, by the kernel that suits how their axes lie. */
#ifndef GK_COPY_H
#define GK_COPY_H

#include "engine/call.h"

/* Element by element between two device arrays of one shape and dtype, any strides. */
gk_status gk_copy_strided(gk_call *call, const gk_array *to, const gk_array *from);

/* The same as a call of `transpose`, by the variant that was asked for where the order of the axes
   in memory changes. */
gk_status gk_copy_transposed(gk_call *call, const gk_array *to, const gk_array *from);

#endif
