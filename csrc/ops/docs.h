/* What the docstrings of the operations have in common. */
#ifndef GK_DOCS_H
#define GK_DOCS_H

#define GK_OPERANDS_DOC                                                                            \
    "NumPy arrays of any layout, DeviceArrays, objects with __cuda_array_interface__ or\n"         \
    "__dlpack__ (PyTorch, CuPy, Numba)"
#define GK_OPTIONS_DOC                                                                             \
    "out: array to write the result to and return; it may be an operand. None: a new array, on\n"  \
    "    the device if an operand is there, else a NumPy array.\n"                                 \
    "variant: name of a kernel, as gpukern.variants() lists them. None: the best that runs "       \
    "here;\n"                                                                                      \
    "    pointers that are not aligned for it get a narrower one.\n"                               \
    "stream: the CUDA stream to work on: a stream of PyTorch, CuPy or Numba, any object with\n"    \
    "    __cuda_stream__, or an integer handle (0 and 1: the legacy default stream, 2: the\n"      \
    "    thread's own). None: the legacy default stream. Work waits for the streams that the\n"    \
    "    arrays come from, and they for it. While the stream is being captured in a CUDA graph,\n" \
    "    the work becomes part of it; its arrays have to be on the device by then.\n"
#define GK_RAISES_DOC                                                                              \
    "Raises TypeError for a dtype or object that is not taken, ValueError for shapes, layouts "    \
    "and\n"                                                                                        \
    "names, MemoryError, CudaError, and DeviceLostError after a kernel has faulted."

/* elementwise operations: GK_ELEMENTWISE_DOC(name, operands, dtypes, result, what it is) */
#define GK_NAMES_1                "a"
#define GK_NAMES_2                "a, b"
#define GK_NAMES_3                "a, x, y"
#define GK_TYPES_floats           "float32, float64, float16 or bfloat16"
#define GK_TYPES_wrapping_numbers "of any dtype but bool"
#define GK_TYPES_ordered          "of any dtype that gpukern has"
#define GK_TYPES_wrapping         GK_TYPES_ordered
#define GK_TYPES_laddered         GK_TYPES_ordered
#define GK_TAKES_1(dtypes)        "a: one of " GK_OPERANDS_DOC ";\n    " GK_TYPES_##dtypes ".\n"
#define GK_TAKES_2(dtypes)                                                                         \
    "a, b: " GK_OPERANDS_DOC ";\n    both " GK_TYPES_##dtypes                                      \
        ".\n    Either may be a Python number, which takes the other's dtype.\n"
#define GK_TAKES_3(dtypes)                                                                         \
    "a, x, y: " GK_OPERANDS_DOC ";\n    all " GK_TYPES_##dtypes                                    \
        ".\n    Python numbers among them take the dtype of the arrays.\n"
#define GK_RESULT_DOC_same                                                                         \
    "Half types are computed in float32 and rounded once; integers wrap around.\n"
#define GK_RESULT_DOC_boolean "The result is of dtype bool.\n"
#define GK_ELEMENTWISE_DOC(name, operands, dtypes, result, what)                                   \
#name "($module, " GK_NAMES_##operands                                                         \
        ", /, out=None, *, variant=None, stream=None)\n--\n\n" what                                \
        ", element by element, with NumPy's broadcasting.\n\n" GK_TAKES_##operands(dtypes)         \
            GK_OPTIONS_DOC GK_RESULT_DOC_##result GK_RAISES_DOC

#endif
