/* Host memory that stays: pinned, in huge pages, touched, and used again. New results live in it,
   and inputs that do need no staging. */
#ifndef GK_POOL_H
#define GK_POOL_H

#include "base/workers.h"
#include "device/backend.h"

typedef struct gk_pool gk_pool;

/* A pool holds at most `limit` bytes, free and in use together. NULL: out of memory. */
gk_pool *gk_pool_new(gk_backend *backend, gk_workers *workers, size_t limit);
/* No more memory is given out; what is in use stays until it is given back, and the pool with it.
 */
void gk_pool_close(gk_pool *pool);

/* At least `bytes` of pinned memory, or NULL where the limit or the system does not allow it: the
   caller then uses ordinary memory. */
void *gk_pool_take(gk_pool *pool, size_t bytes);
/* Give memory back: from any thread, also after gk_pool_close. */
void gk_pool_give(gk_pool *pool, void *memory);

/* Whether all of these bytes are memory of the pool. */
bool gk_pool_holds(gk_pool *pool, const void *start, size_t bytes);

void gk_pool_trim(gk_pool *pool); /* what is not in use, to the system */
void gk_pool_set_limit(gk_pool *pool, size_t limit);
typedef struct gk_pool_report {
    size_t limit, used, unused; /* bytes */
} gk_pool_report;
gk_pool_report gk_pool_describe(gk_pool *pool);

#endif
