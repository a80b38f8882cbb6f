/* A cuBLAS that multiplies on the CPU, for the fake driver: column-major, with leading dimensions,
   alpha and beta, on the handle's stream. It refuses what the real one refuses, and ends the
   process where a product would run wrongly without a word. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

typedef int status;
enum { SUCCESS = 0, NOT_INITIALIZED = 1, BAD_VALUE = 7, UNSUPPORTED = 15 };
enum { NO_TRANSPOSE = 0, TRANSPOSE = 1 };
enum { REAL_32F = 0, REAL_64F = 1, REAL_16F = 2, REAL_16BF = 14 };
enum { COMPUTE_32F = 68, COMPUTE_64F = 70, NO_REDUCED_PRECISION = 16 };

/* Of the fake driver, which is in the process already. */
#define DRIVER(X)                                                                                  \
    X(fake_lock)                                                                                   \
    X(fake_unlock)                                                                                 \
    X(fake_context)                                                                                \
    X(fake_count)                                                                                  \
    X(fake_violation)                                                                              \
    X(fake_stream)                                                                                 \
    X(fake_submit)                                                                                 \
    X(fake_touch)                                                                                  \
    X(fake_planted)
static struct {
#define DECLARE(name) __typeof__(&name) name;
    DRIVER(DECLARE)
#undef DECLARE
} driver;

typedef struct blas {
    handle context, stream;
    void *workspace;
    size_t bytes;
    int math_mode;
} blas;

static int open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return 0;
#define RESOLVE(name) *(void **)&driver.name = dlsym(library, #name);
    DRIVER(RESOLVE)
#undef RESOLVE
    return driver.fake_touch != NULL;
}

#define ENTER(blas_, function)                                                                     \
    do {                                                                                           \
        status planted = driver.fake_planted(function);                                            \
        if (planted != OK)                                                                         \
            return planted;                                                                        \
        if ((blas_)->context != driver.fake_context(function))                                     \
            driver.fake_violation("%s: the handle is of another context", function);               \
    } while (0)

status cublasCreate_v2(blas **made) {
    if (!open_driver())
        return NOT_INITIALIZED;
    status planted = driver.fake_planted(__func__);
    if (planted != SUCCESS)
        return planted;
    *made = calloc(1, sizeof **made);
    (*made)->context = driver.fake_context(__func__);
    driver.fake_count("cublas", 1);
    return SUCCESS;
}

status cublasDestroy_v2(blas *gone) {
    driver.fake_count("cublas", -1);
    free(gone);
    return SUCCESS;
}

status cublasGetVersion_v2(blas *of, int *version) {
    (void)of;
    *version = 130000;
    return SUCCESS;
}

const char *cublasGetStatusString(status code) {
    return code == BAD_VALUE ? "an unsupported value was passed" : "it failed";
}

/* Takes the workspace back to the handle's own. */
status cublasSetStream_v2(blas *of, handle stream) {
    ENTER(of, __func__);
    of->stream = stream;
    of->workspace = NULL;
    return SUCCESS;
}

status cublasSetWorkspace_v2(blas *of, void *workspace, size_t bytes) {
    ENTER(of, __func__);
    of->workspace = workspace;
    of->bytes = bytes;
    return (uintptr_t)workspace % 256 == 0 ? SUCCESS : BAD_VALUE;
}

status cublasSetMathMode(blas *of, int mode) {
    ENTER(of, __func__);
    of->math_mode = mode;
    return SUCCESS;
}

/* --- products ---------------------------------------------------------------------------- */

static size_t size_of(int type) {
    return type == REAL_64F ? 8 : type == REAL_32F ? 4 : 2;
}

static double load(const char *matrix, int type, int64_t at) {
    const char *element = matrix + (size_t)at * size_of(type);
    double wide;
    float narrow;
    _Float16 half;
    uint32_t bits = 0;
    switch (type) {
    case REAL_64F:
        return memcpy(&wide, element, 8), wide;
    case REAL_32F:
        return memcpy(&narrow, element, 4), (double)narrow;
    case REAL_16F:
        return memcpy(&half, element, 2), (double)half;
    default:
        memcpy((char *)&bits + 2, element, 2);
        return memcpy(&narrow, &bits, 4), (double)narrow;
    }
}

static void store(char *matrix, int type, int64_t at, double value) {
    char *element = matrix + (size_t)at * size_of(type);
    float narrow = (float)value;
    _Float16 half = (_Float16)value;
    uint32_t bits;
    switch (type) {
    case REAL_64F:
        memcpy(element, &value, 8);
        return;
    case REAL_32F:
        memcpy(element, &narrow, 4);
        return;
    case REAL_16F:
        memcpy(element, &half, 2);
        return;
    default:
        memcpy(&bits, &narrow, 4);
        bits += 0x7fff + (bits >> 16 & 1); /* to nearest, ties to even */
        memcpy(element, (char *)&bits + 2, 2);
    }
}

static size_t extent(int64_t rows, int64_t columns, int64_t leading, int type) {
    return (size_t)((columns - 1) * leading + rows) * size_of(type);
}

/* An operand, which lies in memory as it is multiplied or transposed. */
typedef struct operand {
    const char *memory;
    int type;
    int64_t down, across; /* steps, in elements */
    int64_t leading, least;
    size_t bytes;
} operand;

static operand operand_of(int transposed, int64_t rows, int64_t columns, int type,
                          int64_t leading) {
    operand made = {.type = type, .leading = leading, .least = transposed ? columns : rows};
    made.down = transposed ? leading : 1;
    made.across = transposed ? 1 : leading;
    made.bytes = extent(made.least, transposed ? rows : columns, leading, type);
    return made;
}

static double element(const operand *of, int64_t row, int64_t column) {
    return load(of->memory, of->type, row * of->down + column * of->across);
}

status cublasGemmEx_64(blas *of, int transpose_a, int transpose_b, int64_t m, int64_t n, int64_t k,
                       const void *alpha, const void *a, int type_a, int64_t lda, const void *b,
                       int type_b, int64_t ldb, const void *beta, void *c, int type_c, int64_t ldc,
                       int compute, int algorithm) {
    (void)algorithm;
    ENTER(of, __func__);
    if (type_a != type_b || type_a != type_c ||
        compute != (type_a == REAL_64F ? COMPUTE_64F : COMPUTE_32F))
        return UNSUPPORTED;
    operand left = operand_of(transpose_a, m, k, type_a, lda);
    operand right = operand_of(transpose_b, k, n, type_b, ldb);
    if (transpose_a < NO_TRANSPOSE || transpose_a > TRANSPOSE || transpose_b < NO_TRANSPOSE ||
        transpose_b > TRANSPOSE)
        return BAD_VALUE;
    if (m < 1 || n < 1 || k < 1 || lda < left.least || ldb < right.least || ldc < m)
        return BAD_VALUE;
    if (of->math_mode != NO_REDUCED_PRECISION)
        driver.fake_violation("%s: sums of half products may be reduced in half", __func__);
    if (!of->workspace)
        driver.fake_violation("%s: with the handle's own workspace, which streams share", __func__);
    double factor = type_a == REAL_64F ? *(const double *)alpha : (double)*(const float *)alpha;
    double kept = type_a == REAL_64F ? *(const double *)beta : (double)*(const float *)beta;
    driver.fake_lock();
    stream *on = driver.fake_stream(of->stream, __func__);
    epoch when = driver.fake_submit(on);
    left.memory = driver.fake_touch(on, when, (pointer)a, left.bytes, READS, "a product");
    right.memory = driver.fake_touch(on, when, (pointer)b, right.bytes, READS, "a product");
    char *to =
        driver.fake_touch(on, when, (pointer)c, extent(m, n, ldc, type_a), WRITES, "a product");
    memset(driver.fake_touch(on, when, (pointer)of->workspace, of->bytes, WRITES,
                             "the workspace of a product"),
           0xff, of->bytes);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            double sum = 0.0;
            for (int64_t l = 0; l < k; l++)
                sum += element(&left, i, l) * element(&right, l, j);
            double before = kept == 0.0 ? 0.0 : kept * load(to, type_a, j * ldc + i);
            store(to, type_a, j * ldc + i, factor * sum + before);
        }
    driver.fake_unlock();
    return SUCCESS;
}

status cublasGemmStridedBatchedEx_64(blas *of, int transpose_a, int transpose_b, int64_t m,
                                     int64_t n, int64_t k, const void *alpha, const void *a,
                                     int type_a, int64_t lda, int64_t step_a, const void *b,
                                     int type_b, int64_t ldb, int64_t step_b, const void *beta,
                                     void *c, int type_c, int64_t ldc, int64_t step_c,
                                     int64_t products, int compute, int algorithm) {
    int64_t size = (int64_t)size_of(type_a);
    status result = products < 1 || step_a < 0 || step_b < 0 || step_c < 0 ? BAD_VALUE : SUCCESS;
    for (int64_t i = 0; i < products && result == SUCCESS; i++)
        result = cublasGemmEx_64(of, transpose_a, transpose_b, m, n, k, alpha,
                                 (const char *)a + i * step_a * size, type_a, lda,
                                 (const char *)b + i * step_b * size, type_b, ldb, beta,
                                 (char *)c + i * step_c * size, type_c, ldc, compute, algorithm);
    return result;
}
