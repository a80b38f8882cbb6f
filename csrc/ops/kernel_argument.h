/* What a launch of a user's kernel is given. */
#ifndef GK_KERNEL_ARGUMENT_H
#define GK_KERNEL_ARGUMENT_H

#include "base/array.h"

/* An argument as the launch takes it. */
typedef struct gk_kernel_argument {
    const void *value; /* the bytes of the parameter */
    uint64_t number;   /* where they are few; of an array the address on the device */
    bool is_array, is_in, is_out;
    void *staged; /* device memory of the run in place of a host array; NULL: none */
    gk_array array;
} gk_kernel_argument;

#endif
