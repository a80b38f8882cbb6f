/* The elementwise operations, a line each, as both the engine and the kernels read them:
   X(name, operands, dtypes, expression, what it is), where the expression makes a result of dtype T
   from x, y and z, which are T or, for the half types, float. `numbers`: every dtype; `floats`:
   those that NumPy gives a result of the same dtype for. */
#ifndef GK_ELEMENTWISE_H
#define GK_ELEMENTWISE_H

#define GK_ELEMENTWISE(X)                                                                          \
    X(add, 2, numbers, plus(x, y), "a + b")                                                        \
    X(subtract, 2, numbers, minus(x, y), "a - b")                                                  \
    X(multiply, 2, numbers, times(x, y), "a * b")                                                  \
    X(divide, 2, floats, x / y, "a / b")                                                           \
    X(maximum, 2, numbers, x >= y || x != x ? x : y, "The larger of a and b, NaN if either is")    \
    X(minimum, 2, numbers, x <= y || x != x ? x : y, "The smaller of a and b, NaN if either is")   \
    X(scale_add, 3, numbers, fused<T>(x, y, z), "a * x + y")                                       \
    X(negative, 1, numbers, negated(x), "-a")                                                      \
    X(abs, 1, numbers, absolute(x), "The absolute value of a")                                     \
    X(sqrt, 1, floats, square_root(x), "The square root of a")                                     \
    X(exp, 1, floats, exponential(x), "e to the power of a")

#endif
