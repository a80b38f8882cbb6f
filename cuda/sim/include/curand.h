// See curand_kernel.h.
#include "curand_kernel.h"
