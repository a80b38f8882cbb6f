// Tensor cores that read both operands from shared memory themselves: an instruction of four warps makes 64
// x 256 elements of C, 16 deep, and goes on while the warps wait for the next tiles. Nobody has two things
// to do: the copy engine brings the tiles, four ahead; one thread tells it what to bring; two groups of
// four warps multiply, with the registers that the first group has let go of. A block stays for many tiles
// of C, so that the first tiles of A and B for the next one come while this one is stored. The sums go to
// memory through shared memory, by the copy engine too, so that the next products begin as soon as they
// have left the registers: 1 % at 4096.
//
// This is the way that cuBLAS goes. On an H200, bfloat16, each measurement between two of cuBLAS: 1.05 times
// its speed at 4096, about 775 TFLOP/s, all four transpositions alike, as long as the GPU's clock is not
// held back. Under load it is, by the 700 W that the GPU may take, and what is left is how much a product
// costs in energy, which is the tensor cores': 1.00 at 4096, 1.01 at 6144, 1.02 at 8192 and 16384, at 660 to
// 700 TFLOP/s.
#include "matmul/warpgroups.cuh"

#ifdef GK_HOST_PART
static gk_status wgmma_prepare(gk_backend *backend, gk_prepared *prepared, gk_error *error) {
    return wgmma_prepare_clusters(backend, prepared, 1, error);
}
#endif

#define GK_WGMMA_NOTE                                                                              \
    "tensor cores read shared memory themselves, 64 x 256 x 16 products an instruction of four warps; a thread of its own for the copy engine"
GK_WGMMA_ROW(wgmma, float16, gk_matmul_wgmma_f16, GK_WGMMA_NOTE, wgmma_prepare)
GK_WGMMA_ROW(wgmma, bfloat16, gk_matmul_wgmma_bf16, GK_WGMMA_NOTE, wgmma_prepare)

#ifndef GK_ROWS_ONLY

GK_WGMMA(gk_matmul_wgmma_f16, float16, 1)
GK_WGMMA(gk_matmul_wgmma_bf16, bfloat16, 1)

#endif
