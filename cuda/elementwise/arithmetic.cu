// Sums, differences and products. The operations are listed in operations.h, the kernels are
// elementwise.cuh's.
#include "elementwise/elementwise.cuh"

GK_ARITHMETIC(GK_ROWS_OF)

#ifndef GK_ROWS_ONLY
GK_ARITHMETIC(GK_KERNELS_OF)
#endif
