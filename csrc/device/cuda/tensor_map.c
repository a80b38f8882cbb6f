/* What the copy engine of compute capability 9.0 has to know of a matrix. */
#include <string.h>

#include "base/array.h"
#include "device/cuda/device.h"

static bool type_of(gk_dtype dtype, CUtensorMapDataType *type) {
    switch (dtype) {
    case GK_float32:
        *type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
        return true;
    case GK_float16:
        *type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
        return true;
    case GK_bfloat16:
        *type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
        return true;
    case GK_int8:
    case GK_uint8:
        *type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
        return true;
    default:
        return false;
    }
}

static CUtensorMapSwizzle swizzle_of(uint32_t bytes) {
    switch (bytes) {
    case 32:
        return CU_TENSOR_MAP_SWIZZLE_32B;
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
    CUtensorMapDataType type;
    CUtensorMap made;
    _Static_assert(sizeof made == sizeof *map, "a tensor map has 128 bytes");
    if (!type_of((gk_dtype)box->dtype, &type))
        return gk_fail(error, GK_VALUE_ERROR, "no tensor map for arrays of %s",
                       gk_dtype_name((gk_dtype)box->dtype));
    /* The fastest axis first. */
    const cuuint64_t lengths[] = {box->columns, box->rows, box->planes};
    const cuuint64_t pitches[] = {box->pitch, box->plane_pitch};
    const cuuint32_t sides[] = {box->box_columns, box->box_rows, 1}, steps[] = {1, 1, 1};
    CUresult result;
    GK_IN_CONTEXT(cuda, result,
                  cuda->driver.cuTensorMapEncodeTiled(
                      &made, type, box->planes ? 3 : 2, (void *)(uintptr_t)box->data, lengths,
                      pitches, sides, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      swizzle_of(box->swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    if (result == CUDA_SUCCESS)
        memcpy(map, &made, sizeof made);
    return gk_cuda_check(cuda, result, "describing a matrix for the copy engine", error);
}
