// What is above, with halves: three products in place of six. This is twice as fast, and as exact as float32 on CUDA
// cores where K is more than a few: what both lose is then that sums are rounded. Where a line spreads
// too wide for halves, the kernel of bf16x6 makes the product.
#include "matmul/plane_products.cuh"

#ifdef GK_HOST_PART
static gk_status f16x3_prepare(gk_backend *backend, gk_prepared *prepared, gk_error *error) {
    return planes_prepare(backend, prepared, GK_BY_HALVES, error);
}
#endif

GK_PLANES_ROW(matmul, f16x3, gk_matmul_f16x3_f32, "float32 as two scaled float16 each, three products on tensor cores; what they cannot hold by bf16x6",
              GK_HALVES_SHARED, .workspace = planes_workspace, .prepare = f16x3_prepare)

#ifndef GK_ROWS_ONLY
#ifdef GK_WARPGROUP

extern "C" __global__ void __launch_bounds__(GK_PLANES_BLOCK, 1)
    gk_matmul_f16x3_f32(const gk_planes_work work, const __grid_constant__ gk_tensor_map map_a, const __grid_constant__ gk_tensor_map map_b) {
    matmul_planes<planes_form<float16, 2, GK_HALVES_SWIZZLE, GK_HALVES_STAGES>>(work, map_a, map_b);
}

#else

extern "C" __global__ void __launch_bounds__(GK_PLANES_BLOCK, 1)
    gk_matmul_f16x3_f32(const gk_planes_work, const __grid_constant__ gk_tensor_map, const __grid_constant__ gk_tensor_map) {}

#endif
#endif
