/* clip: elements held between two numbers, which become the second and third operand of its
 * kernels. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "ops/docs.h"
#include "ops/elementwise.h"

typedef struct bounds {
    gk_bound low, high;
} bounds;

static gk_status infer_clip(const gk_operation *operation, gk_call *call, const gk_array *operands,
                            gk_array *result) {
    const bounds *given = call->parameters;
    (void)operation;
    if (given->low.is == GK_ABOVE_ALL || given->high.is == GK_BELOW_ALL)
        return gk_fail(
            &call->error, GK_VALUE_ERROR,
            "clip: %s lies beyond what %s holds, and so would the result; convert a with "
            ".astype(...)",
            given->low.is == GK_ABOVE_ALL ? "min" : "max", gk_dtype_name(operands[0].dtype));
    gk_describe_like(result, &operands[0]);
    return GK_OK;
}

/* The least and the greatest value of a dtype: no bound at all. */
static uint64_t extreme_of(gk_dtype dtype, bool greatest) {
    size_t bits = 8 * gk_dtype_size(dtype);
    uint64_t value = 0;
    float single = greatest ? INFINITY : -INFINITY;
    double wide = single;
    switch (gk_dtype_kind(dtype)) {
    case GK_REAL:
        memcpy(&value, bits == 32 ? (const void *)&single : &wide, bits / 8);
        return value;
    case GK_HALF:
        value = dtype == GK_float16 ? 0x7c00 : 0x7f80;
        return greatest ? value : value | 0x8000;
    case GK_SIGNED:
        value = (uint64_t)1 << (bits - 1);
        return greatest ? value - 1 : value;
    default:
        return greatest ? UINT64_MAX >> (64 - bits) : 0;
    }
}

/* The operands of the kernels; `values` has room for the two bounds. */
static void with_bounds(const gk_call *call, const gk_array *a, uint64_t *values, gk_array *all) {
    const bounds *given = call->parameters;
    const gk_bound *const both[] = {&given->low, &given->high};
    gk_copy_view(&all[0], a);
    for (int i = 0; i < 2; i++) {
        values[i] = both[i]->is == GK_BOUNDED ? both[i]->value : extreme_of(a->dtype, i == 1);
        gk_clear_view(&all[i + 1]);
        all[i + 1].place = GK_HOST;
        all[i + 1].dtype = a->dtype;
        all[i + 1].data = &values[i];
    }
}

static gk_status run_clip(const gk_operation *operation, gk_call *call, const gk_array *operands,
                          gk_array *result) {
    uint64_t values[2];
    gk_array all[3];
    with_bounds(call, &operands[0], values, all);
    return gk_run_elementwise(call, operation->op, all, 3, result);
}

static gk_status flow_clip(const gk_operation *operation, gk_call *call, const gk_array *operands,
                           const gk_array *result) {
    uint64_t values[2];
    gk_array all[3];
    with_bounds(call, &operands[0], values, all);
    return gk_flow_elementwise(call, operation->op, all, 3, result);
}

static const char *const names[] = {"a"};
static const gk_parameter parameters[] = {{"min", GK_BOUND, offsetof(bounds, low)},
                                          {"max", GK_BOUND, offsetof(bounds, high)},
                                          {"out", GK_OUT, 0},
                                          {0}};

static const gk_operation operation_clip = {
    .name = "clip",
    .op = GK_OP_clip,
    .doc =
        "clip($module, a, /, min=None, max=None, out=None, *, variant=None, stream=None)\n--\n\n"
        "The elements, those below min raised to it and those above max lowered to it.\n\n"
        "a: one of " GK_OPERANDS_DOC ";\n    of any dtype but bool.\n"
        "min, max: numbers, which take the dtype of a, or None for no bound. Of integers a bound "
        "may lie\n    beyond what the dtype holds, where it bounds nothing. Where min is above "
        "max, "
        "all is max.\n" GK_OPTIONS_DOC
        "NaN stays NaN; a bound that is NaN makes NaN of every element. For bounds that are "
        "arrays:\ngpukern.minimum(gpukern.maximum(a, low), high).\n" GK_RAISES_DOC,
    .operand_count = 1,
    .operands = names,
    .parameters = parameters,
    .parameter_bytes = sizeof(bounds),
    .elementwise = true,
    .strided = true,
    .infer = infer_clip,
    .run = run_clip,
    .flow = flow_clip,
    .mapped = true,
};
const gk_operation *const gk_op_clip = &operation_clip;
