// Quotients and functions of one operand. The operations are listed in operations.h, the kernels are
// elementwise.cuh's.
#include "elementwise/elementwise.cuh"

GK_FUNCTIONS(GK_ROWS_OF)

#ifndef GK_ROWS_ONLY
GK_FUNCTIONS(GK_KERNELS_OF)
#endif
