/* The elementwise operations, a line each, as both the engine and the kernels read them:
   X(name, operands, dtypes, result, expression, what it is), where the expression makes the result
   from x, y and z, which are of the operands' dtype T or, for the half types, float.
   dtypes: `numbers`, `ordered` (numbers and bool), `wrapping` (the same, where unsigned integers are
   served by the kernels of signed ones, since their bits come out alike), `signed_numbers`, or
   `floats`, those that NumPy gives a result of the same dtype for; `laddered`: `wrapping`, but the
   steps of a file of its own serve contiguous float32 and float16.
   result: `same` dtype as the operands, or `boolean`. */
#ifndef GK_ELEMENTWISE_OPERATIONS_H
#define GK_ELEMENTWISE_OPERATIONS_H

#define GK_ARITHMETIC(X)                                                                           \
    X(add, 2, laddered, same, gk_plus(x, y), "a + b")                                              \
    X(subtract, 2, wrapping_numbers, same, gk_minus(x, y), "a - b")                                \
    X(multiply, 2, wrapping, same, gk_times(x, y), "a * b")                                        \
    X(scale_add, 3, wrapping, same, gk_fused<T>(x, y, z), "a * x + y")                             \
    X(negative, 1, wrapping_numbers, same, gk_negated(x), "-a")

#define GK_COMPARISONS(X)                                                                          \
    X(maximum, 2, ordered, same, x >= y || x != x ? x : y, "The larger of a and b, NaN if either is") \
    X(minimum, 2, ordered, same, x <= y || x != x ? x : y, "The smaller of a and b, NaN if either is") \
    X(less, 2, ordered, boolean, x < y, "Whether a < b")                                           \
    X(less_equal, 2, ordered, boolean, x <= y, "Whether a <= b")                                   \
    X(equal, 2, wrapping, boolean, x == y, "Whether a == b")                                       \
    X(not_equal, 2, wrapping, boolean, x != y, "Whether a != b")

#define GK_FUNCTIONS(X)                                                                            \
    X(divide, 2, floats, same, x / y, "a / b")                                                     \
    X(abs, 1, ordered, same, gk_absolute(x), "The absolute value of a")                            \
    X(sqrt, 1, floats, same, gk_square_root(x), "The square root of a")                            \
    X(exp, 1, floats, same, gk_exponential(x), "e to the power of a")

#define GK_ELEMENTWISE(X) GK_ARITHMETIC(X) GK_COMPARISONS(X) GK_FUNCTIONS(X)

/* Those that another one is with its two operands exchanged, and so by its kernels:
   X(name, the other one, what it is). */
#define GK_EXCHANGED(X)                                                                            \
    X(greater, less, "Whether a > b")                                                              \
    X(greater_equal, less_equal, "Whether a >= b")

#endif
