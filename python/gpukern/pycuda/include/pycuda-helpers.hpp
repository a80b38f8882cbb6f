/* PyCUDA's sources include this for textures, which are no longer part of CUDA; what is left is
   what goes with complex numbers. */
#ifndef GPUKERN_PYCUDA_HELPERS_HPP
#define GPUKERN_PYCUDA_HELPERS_HPP
#include <pycuda-complex.hpp>
#endif
