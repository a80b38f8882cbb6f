// Three bfloat16 of 8 bits each are a float32, and six of their nine products are enough. As the range of
// bfloat16 is that of float32, this way is there for what halves cannot hold. Tensor cores cut off what does not
// fit their sums: so those of the largest products go to float32 registers every 32 elements of K, and from there
// to totals every 512. On an H200, with all that goes before, 106 TFLOP/s at 4096, 114 at 8192 and 115 at
// 16384, 2.1 to 2.6 times cuBLAS in float32 (2.6 while its clock was held back).
#include "matmul/plane_products.cuh"

#ifdef GK_HOST_PART
static gk_status bf16x6_prepare(gk_backend *backend, gk_prepared *prepared, gk_error *error) {
    return planes_prepare(backend, prepared, GK_BY_BFLOATS, error);
}
#endif

#define GK_BF16X6_NOTE "float32 as three bfloat16 each, six products on tensor cores, their sums rounded as float32 is"
GK_PLANES_ROW(matmul, bf16x6, gk_matmul_bf16x6_f32, GK_BF16X6_NOTE, GK_BFLOATS_SHARED, .workspace = planes_workspace, .prepare = bf16x6_prepare)
GK_PLANES_ROW(matmul_part, bfloats, gk_matmul_bf16x6_f32, GK_BF16X6_NOTE, GK_BFLOATS_SHARED)

#ifndef GK_ROWS_ONLY
#ifdef GK_WARPGROUP

extern "C" __global__ void __launch_bounds__(GK_PLANES_BLOCK, 1)
    gk_matmul_bf16x6_f32(const gk_planes_work work, const __grid_constant__ gk_tensor_map, const __grid_constant__ gk_tensor_map,
                         const __grid_constant__ gk_tensor_map map_a, const __grid_constant__ gk_tensor_map map_b) {
    matmul_planes<planes_form<bfloat16, 3, GK_BFLOATS_SWIZZLE, GK_BFLOATS_STAGES>>(work, map_a, map_b);
}

#else

extern "C" __global__ void __launch_bounds__(GK_PLANES_BLOCK, 1)
    gk_matmul_bf16x6_f32(const gk_planes_work, const __grid_constant__ gk_tensor_map, const __grid_constant__ gk_tensor_map,
                         const __grid_constant__ gk_tensor_map, const __grid_constant__ gk_tensor_map) {}

#endif
#endif
