/* How much memory there is. */
#ifndef GK_MEMORY_H
#define GK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that the machine has, or the container, if that may use fewer. */
size_t gk_memory_total(void);
/* The most that a process could fill: that, and what the machine can swap out. */
size_t gk_memory_most(void);
/* Bytes that nobody uses, on the whole machine. */
size_t gk_memory_free(void);
/* Whether the process has memory at an address that it may read, without the attempt to. */
bool gk_memory_is_readable(uintptr_t address);

#endif
