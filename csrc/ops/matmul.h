/* matmul on the device, and from host arrays by panels. */
#ifndef GK_MATMUL_H
#define GK_MATMUL_H

#include "ops/operation.h"

/* An operand is a stack along all axes but its last two. Those of the result of two: */
int gk_stack_axes(const gk_array *operands);

/* Which of an operand's axes is the one that is `axis` of the result's `axes`; below 0: none. */
int gk_own_axis(const gk_array *operand, int axes, int axis);

/* The product of arrays on the device, whose matrices lie by rows or by columns. */
gk_status gk_run_matmul(const gk_operation *operation, gk_call *call, const gk_array *operands,
                        gk_array *result);

/* The row that would make the product, with nothing launched: of host arrays as they would lie on
   the device in one piece. NULL: none is needed, for there is nothing to multiply. `by_rule`: as if
   nothing had been measured. */
gk_status gk_matmul_row(gk_call *call, const gk_array *operands, bool by_rule, const gk_row **row);

/* From host arrays to a host array. */
gk_status gk_flow_matmul(const gk_operation *operation, gk_call *call, const gk_array *operands,
                         const gk_array *result);
enum { GK_MATMUL_FLOW_BYTES = 4 << 20 }; /* less is over before the first panel would be */

#endif
