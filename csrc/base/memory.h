/* How much memory there is. */
#ifndef GK_MEMORY_H
#define GK_MEMORY_H

#include <stddef.h>

/* Bytes that the machine has, or the container, if that may use fewer. */
size_t gk_memory_total(void);
/* Bytes that nobody uses, on the whole machine. */
size_t gk_memory_free(void);

#endif
