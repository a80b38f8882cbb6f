/* A kernel that a user compiled: what it takes, and one run of it. */
#ifndef GK_USER_KERNEL_H
#define GK_USER_KERNEL_H

#include "engine/call.h"
#include "ops/kernel_argument.h"

/* What an argument, or what a pointer points to, is made of. */
typedef enum gk_made_of {
    GK_OF_BYTES,  /* a structure, which goes by its size */
    GK_OF_SIGNED, /* integers */
    GK_OF_UNSIGNED,
    GK_OF_BOOL,
    GK_OF_FLOAT, /* of 2, 4 or 8 bytes */
    GK_OF_BFLOAT,
    GK_OF_CHAR, /* a byte that is a number or a letter */
    GK_OF_POINTER,
    GK_OF_ANYTHING, /* void */
    GK_OF_UNKNOWN,  /* a module that was not compiled here tells the size alone */
    GK_MADE_OF_COUNT,
} gk_made_of;

typedef struct gk_kernel_parameter {
    const char *text; /* as the source spells it: "const float *x" */
    gk_made_of made_of;
    size_t bytes;
    /* of a pointer: */
    bool readonly;                                 /* what it points to is const */
    gk_made_of points_to;                          /* the scalar, also of a vector */
    size_t scalar_bytes, pointee_bytes, alignment; /* pointee_bytes 0: not known */
} gk_kernel_parameter;

enum { GK_MOST_PARAMETERS = 4096 }; /* of one byte: what a launch takes */

/* Whether an array of that dtype is what the parameter points to. */
bool gk_points_to(const gk_kernel_parameter *parameter, gk_dtype dtype);

/* Copies in what has to be on the device, launches, copies out. The launch needs neither stream nor
   arguments, of which there are no more than GK_MOST_PARAMETERS. */
gk_status gk_user_kernel_run(gk_call *call, gk_launch *launch, gk_kernel_argument *arguments,
                             int count);

#endif
