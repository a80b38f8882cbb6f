/* A user's kernel that makes element i of one array of element i of others, on host arrays of any
   length: small ones in memory that the host and the device share, with nothing copied, and large
   ones in chunks, with copies and kernels overlapped. */
#ifndef GK_USER_MAP_H
#define GK_USER_MAP_H

#include "ops/user_kernel.h"

/* The last two arguments are the host array that is written and nothing but written, contiguous,
   and how many elements there are, eight bytes. All arrays have the shape of that one, and those
   that are read any strides; the kernel is given contiguous ones, of which a block takes `a_block`
   elements. The launch needs neither grid, stream nor arguments. */
gk_status gk_user_kernel_map(gk_call *call, gk_launch *launch, gk_kernel_argument *arguments,
                             int count, size_t a_block);

#endif
