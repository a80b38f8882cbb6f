// What depends on which of two is larger. The operations are listed in operations.h, the kernels are
// elementwise.cuh's.
#include "elementwise/elementwise.cuh"

GK_COMPARISONS(GK_ROWS_OF)

#ifndef GK_ROWS_ONLY
GK_COMPARISONS(GK_KERNELS_OF)
#endif
