/* The dtypes, a line each; the rest of the project knows them by these lists (C and CUDA):
   X(name, short name, type in a kernel, bytes, NumPy's name, NumPy's number for it, ...). */
#ifndef GK_DTYPES_H
#define GK_DTYPES_H

#define GK_REAL_DTYPES(X, ...)                                                                     \
    X(float32, f32, float, 4, "float32", NPY_FLOAT32, __VA_ARGS__)                                 \
    X(float64, f64, double, 8, "float64", NPY_FLOAT64, __VA_ARGS__)
/* Half of float32: computed in that and rounded once. bfloat16 is not NumPy's own. */
#define GK_HALF_DTYPES(X, ...)                                                                     \
    X(float16, f16, float16, 2, "float16", NPY_FLOAT16, __VA_ARGS__)                               \
    X(bfloat16, bf16, bfloat16, 2, "bfloat16", NPY_NOTYPE, __VA_ARGS__)
#define GK_SIGNED_DTYPES(X, ...)                                                                   \
    X(int32, i32, int32_t, 4, "int32", NPY_INT32, __VA_ARGS__)                                     \
    X(int64, i64, int64_t, 8, "int64", NPY_INT64, __VA_ARGS__)                                     \
    X(int8, i8, int8_t, 1, "int8", NPY_INT8, __VA_ARGS__)                                          \
    X(int16, i16, int16_t, 2, "int16", NPY_INT16, __VA_ARGS__)
#define GK_UINT8_DTYPE(X, ...)  X(uint8, u8, uint8_t, 1, "uint8", NPY_UINT8, __VA_ARGS__)
#define GK_UINT16_DTYPE(X, ...) X(uint16, u16, uint16_t, 2, "uint16", NPY_UINT16, __VA_ARGS__)
#define GK_UINT32_DTYPE(X, ...) X(uint32, u32, uint32_t, 4, "uint32", NPY_UINT32, __VA_ARGS__)
#define GK_UINT64_DTYPE(X, ...) X(uint64, u64, uint64_t, 8, "uint64", NPY_UINT64, __VA_ARGS__)
#define GK_UNSIGNED_BELOW_64(X, ...)                                                               \
    GK_UINT8_DTYPE(X, __VA_ARGS__)                                                                 \
    GK_UINT16_DTYPE(X, __VA_ARGS__)                                                                \
    GK_UINT32_DTYPE(X, __VA_ARGS__)
#define GK_UNSIGNED_DTYPES(X, ...)                                                                 \
    GK_UNSIGNED_BELOW_64(X, __VA_ARGS__)                                                           \
    GK_UINT64_DTYPE(X, __VA_ARGS__)
/* Once more, the signed dtype of their size behind all else: where the same bits come of both, its
   kernels serve them. */
#define GK_UNSIGNED_AS_SIGNED(X, ...)                                                              \
    GK_UINT8_DTYPE(X, __VA_ARGS__, i8)                                                             \
    GK_UINT16_DTYPE(X, __VA_ARGS__, i16)                                                           \
    GK_UINT32_DTYPE(X, __VA_ARGS__, i32)                                                           \
    GK_UINT64_DTYPE(X, __VA_ARGS__, i64)
#define GK_BOOLEAN_DTYPES(X, ...) X(boolean, b8, bool, 1, "bool", NPY_BOOL, __VA_ARGS__)

#define GK_DTYPES(X, ...)                                                                          \
    GK_REAL_DTYPES(X, __VA_ARGS__)                                                                 \
    GK_HALF_DTYPES(X, __VA_ARGS__)                                                                 \
    GK_SIGNED_DTYPES(X, __VA_ARGS__)                                                               \
    GK_UNSIGNED_DTYPES(X, __VA_ARGS__)                                                             \
    GK_BOOLEAN_DTYPES(X, __VA_ARGS__)

/* Kernels that only move elements care for their size alone: their rows carry one of these. */
#define GK_BIT_TYPES(X)                                                                            \
    X(bits8, 1)                                                                                    \
    X(bits16, 2)                                                                                   \
    X(bits32, 4)                                                                                   \
    X(bits64, 8)                                                                                   \
    X(bits128, 16)

typedef enum gk_dtype {
#define GK_ENUMERATE(name, ...) GK_##name,
    GK_DTYPES(GK_ENUMERATE, ) GK_DTYPE_COUNT,
    GK_BEFORE_BITS = GK_DTYPE_COUNT - 1,
    GK_BIT_TYPES(GK_ENUMERATE) GK_DTYPE_AND_BITS_COUNT
#undef GK_ENUMERATE
} gk_dtype;

#endif
