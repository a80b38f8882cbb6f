// Two blocks, one below the other, need the same columns of B: each fetches half of a tile, and the copy
// engine leaves it in the shared memory of both (multicast). So a block asks the L2 cache for 32 KiB a step
// where it was 48. What it costs: a stage is free only when both have read it. On an H200 the L2 cache is not
// what bounds a block alone, and two are no faster: between 1.00 and 1.05 times cuBLAS in the same cases. Of
// clusters of four, which reach fewer multiprocessors, 0.8 to 0.95.
#include "matmul/warpgroups.cuh"

#ifdef GK_HOST_PART
static gk_status wgmma_cluster_prepare(gk_backend *backend, gk_prepared *prepared, gk_error *error) {
    return wgmma_prepare_clusters(backend, prepared, 2, error);
}
#endif

#define GK_WGMMA_CLUSTER_NOTE "two blocks share the tiles of B, of which each fetches half for both: two thirds of what is asked of the L2 cache"
GK_WGMMA_ROW(wgmma_cluster, float16, gk_matmul_wgmma_cluster_f16, GK_WGMMA_CLUSTER_NOTE, wgmma_cluster_prepare)
GK_WGMMA_ROW(wgmma_cluster, bfloat16, gk_matmul_wgmma_cluster_bf16, GK_WGMMA_CLUSTER_NOTE, wgmma_cluster_prepare)

#ifndef GK_ROWS_ONLY

GK_WGMMA(gk_matmul_wgmma_cluster_f16, float16, 2)
GK_WGMMA(gk_matmul_wgmma_cluster_bf16, bfloat16, 2)

#endif
