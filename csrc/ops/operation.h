/* What an operation is: what it takes, what it makes of it, and which kernels do the work. */
#ifndef GK_OPERATION_H
#define GK_OPERATION_H

#include "device/operations.h"
#include "engine/call.h"

/* What an operation takes beside its operands. It declares them; whoever calls it reads them from
   Python into a structure of the operation's own, of which each has a member. */
typedef enum gk_parameter_kind {
    GK_OUT,   /* not a parameter: where `out` stands among them */
    GK_AXES,  /* None, an axis or a tuple of them: a uint64_t, bit i for axis i */
    GK_AXIS,  /* None or an axis: the same */
    GK_ORDER, /* None or every axis once: a gk_order */
    GK_DTYPE, /* None or a dtype: a gk_wanted_dtype */
    GK_FLAG,  /* a bool */
    GK_BOUND, /* None or a number: a gk_bound of the first operand's dtype */
} gk_parameter_kind;

typedef struct gk_parameter {
    const char *name;
    gk_parameter_kind kind;
    size_t offset; /* in the operation's structure */
} gk_parameter;

typedef struct gk_order {
    bool given;
    int axis[GK_MAX_DIMENSIONS];
} gk_order;

typedef struct gk_wanted_dtype {
    bool given;
    gk_dtype dtype;
} gk_wanted_dtype;

enum { GK_MAX_PARAMETERS = 6, GK_PARAMETER_BYTES = 320 };

typedef struct gk_operation gk_operation;
struct gk_operation {
    const char *name;
    gk_op op;        /* its kernels */
    const char *doc; /* its signature in Python, and what help() says of it */
    int operand_count;
    const char *const *operands;    /* their names */
    const gk_parameter *parameters; /* up to one without a name */
    size_t parameter_bytes;         /* of the structure that they are read into */
    bool elementwise; /* broadcasts; reads and writes element i alone, so it may run in place */
    bool strided;     /* `run` takes arrays of any strides */
    /* Whether `run` takes the view on the device, of the operand of that number, as it is, although
       it is not contiguous; NULL: never. */
    bool (*takes)(const gk_array *view, int operand);
    /* Check shapes and dtypes and describe the result: its dtype and shape. */
    gk_status (*infer)(const gk_operation *, gk_call *, const gk_array *operands, gk_array *result);
    /* Launch the kernels. Every array is on the device, and contiguous unless `strided` is set or
       `takes` says so; an elementwise operation takes operands of their own shapes, and of one
       element on the host. */
    gk_status (*run)(const gk_operation *, gk_call *, const gk_array *operands, gk_array *result);
    /* From host arrays to a host array, copies and kernels overlapped; NULL where there is no such
       way. GK_MEMORY_ERROR: no room for it; the plain way may still be open. */
    gk_status (*flow)(const gk_operation *, gk_call *, const gk_array *operands,
                      const gk_array *result);
    size_t flow_bytes; /* arrays of fewer bytes in all are not worth it */
    bool mapped;       /* worth running on mapped host memory where the arrays are small */
};

#define GK_DECLARE(name, ...) extern const gk_operation *const gk_op_##name;
GK_OPERATIONS(GK_DECLARE)
#undef GK_DECLARE

/* What its default row on well aligned arrays is found by. */
gk_wish gk_operation_wish(const gk_operation *operation, gk_dtype dtype);

/* Check everything that can be checked before memory is asked for, and describe the result. */
gk_status gk_operation_infer(gk_call *call, const gk_operation *operation, const gk_array *operands,
                             gk_array *result);

/* The operation from end to end, by the way that suits where the arrays are and how large they are.
   A host result is contiguous. */
gk_status gk_operation_run(gk_call *call, const gk_operation *operation, const gk_array *operands,
                           const gk_array *result);

#endif
