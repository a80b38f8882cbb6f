/* Planted faults: a backend round another one that makes one chosen call fail. */
#ifndef GK_BACKEND_FAULT_H
#define GK_BACKEND_FAULT_H

#include <stdatomic.h>

#include "device/backend.h"

/* Counts the calls that can fail, host allocations among them, down to the one that does. */
typedef struct gk_faults {
    atomic_long left; /* 1: the next call fails; 0: disarmed */
    atomic_bool fired;
} gk_faults;

/* Whether the call being made is the one to fail. */
bool gk_fault_due(gk_faults *faults);

typedef struct gk_faulty {
    gk_backend base;
    gk_backend *inner;
    gk_faults *faults;
} gk_faulty;

void gk_backend_fault_wrap(gk_faulty *faulty, gk_backend *inner, gk_faults *faults);

#endif
