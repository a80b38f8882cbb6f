/* The operations: what each one takes, what it makes of it, and which kernels do the work. */
#ifndef GK_OPERATION_H
#define GK_OPERATION_H

#include "engine/call.h"
#include "elementwise.h"

typedef struct gk_operation {
    const char *name;
    int operand_count;
    const char *const *operands; /* their names */
    bool elementwise; /* broadcasts; reads and writes element i alone, so it may run in place */
    bool strided;     /* `run` takes arrays of any strides */
    const struct gk_reduction_kind *reduction; /* NULL where it is none */
    /* Check shapes and dtypes and describe the result: its dtype and shape. */
    gk_status (*infer)(gk_call *call, const gk_array *operands, gk_array *result);
    /* Launch the kernels. Every array is on the device, and contiguous unless `strided` is set; an
       elementwise operation takes operands of their own shapes, and of one element on the host. */
    gk_status (*run)(gk_call *call, const gk_array *operands, gk_array *result);
    /* From host arrays to a host array, copies and kernels overlapped; NULL where there is no such
       way. GK_MEMORY_ERROR: no room for it; the plain way may still be open. */
    gk_status (*flow)(gk_call *call, const gk_array *operands, const gk_array *result);
    size_t flow_bytes; /* arrays of fewer bytes in all are not worth it */
    bool mapped;       /* worth running on mapped host memory where the arrays are small */
} gk_operation;

extern const gk_operation gk_op_matmul, gk_op_transpose;

#define GK_DECLARE(name, ...) extern const gk_operation gk_op_##name;
GK_ELEMENTWISE(GK_DECLARE)
#undef GK_DECLARE

/* The blocks that cover `count` elements. */
size_t gk_blocks(size_t count, int a_block);

/* Check everything that can be checked before memory is asked for, and describe the result. */
gk_status gk_operation_infer(gk_call *call, const gk_operation *operation, const gk_array *operands,
                             gk_array *result);

/* The operation from end to end, by the way that suits where the arrays are and how large they are.
   A host result is contiguous. */
gk_status gk_operation_run(gk_call *call, const gk_operation *operation, const gk_array *operands,
                           const gk_array *result);

#endif
