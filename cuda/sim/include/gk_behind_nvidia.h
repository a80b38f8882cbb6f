// Behind it.
#pragma pop_macro("__CUDACC__")
#pragma pop_macro("__CUDA_ARCH__")
#pragma pop_macro("asm")
#include "sim_words.h"
#pragma pop_macro("__shared__")
