/* What the copy engine of compute capability 9.0 has to know of a matrix. */
#include <string.h>

#include "base/array.h"
#include "device/cuda/device.h"

/* Of the dtypes and patterns that rows have. */
static CUtensorMapDataType type_of(int dtype) {
    switch (dtype) {
    case GK_float16:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case GK_bfloat16:
        return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    default:
        return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    }
}

static CUtensorMapSwizzle swizzle_of(uint32_t bytes) {
    switch (bytes) {
    case 64:
        return CU_TENSOR_MAP_SWIZZLE_64B;
    case 128:
        return CU_TENSOR_MAP_SWIZZLE_128B;
    default:
        return CU_TENSOR_MAP_SWIZZLE_NONE;
    }
}

gk_status gk_cuda_describe_box(gk_backend *base, const gk_tensor_box *box, gk_tensor_map *map,
                               gk_error *error) {
    gk_cuda *cuda = (gk_cuda *)base;
    CUtensorMap made;
    _Static_assert(sizeof made == sizeof *map, "a tensor map has 128 bytes");
    /* The fastest axis first. */
    const cuuint64_t lengths[] = {box->columns, box->rows, box->planes};
    const cuuint64_t pitches[] = {box->pitch, box->plane_pitch};
    const cuuint32_t sides[] = {box->box_columns, box->box_rows, 1}, steps[] = {1, 1, 1};
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuTensorMapEncodeTiled(
                      &made, type_of(box->dtype), box->planes ? 3 : 2, (void *)(uintptr_t)box->data,
                      lengths, pitches, sides, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      swizzle_of(box->swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    if (result == CUDA_SUCCESS)
        memcpy(map, &made, sizeof made);
    return gk_cuda_check(cuda, result, "describing a matrix for the copy engine", error);
}
