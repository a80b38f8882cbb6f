// In front of a header of NVIDIA's: it is to be the host's, not the device's.
#pragma push_macro("__CUDACC__")
#pragma push_macro("__CUDA_ARCH__")
#pragma push_macro("__shared__")
#pragma push_macro("asm")
#undef __CUDACC__
#undef __CUDA_ARCH__
#undef asm
