/* What was measured to make a matmul fastest: the tables that `gpukern tune` writes, text files of
   a line for each range of sizes in which a row was faster than what the rule would choose. */
#ifndef GK_TUNED_H
#define GK_TUNED_H

#include <stdbool.h>

#include "base/array.h"
#include "device/backend.h"

typedef struct gk_tuned gk_tuned;

/* With nothing in it; NULL: out of memory. */
gk_tuned *gk_tuned_new(void);
void gk_tuned_free(gk_tuned *tuned); /* NULL is fine */

/* Read the table of a device of that name; it takes the place of what was known of its dtypes.
   Where the file is broken or another device's, nothing changes, and the sentence names the line.
 */
gk_status gk_tuned_read(gk_tuned *tuned, const char *path, const char *device, gk_error *error);

/* A row, and the one than which it is faster. NULL: none is known to be. */
typedef struct gk_faster {
    const gk_row *row, *than;
} gk_faster;

/* Of products like this one. `aligned`: all that a row's alignment is asked of is a multiple of 16
   bytes. */
gk_faster gk_tuned_faster(const gk_tuned *tuned, const gk_gemm *gemm, bool aligned);

#endif
