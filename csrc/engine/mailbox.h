/* Small pinned buffers that kernels read and write in place, for calls that are too small to copy.
 */
#ifndef GK_MAILBOX_H
#define GK_MAILBOX_H

#include "device/backend.h"
#include "engine/pool.h"

enum {
    GK_MAILBOX_BYTES = 2 << 20,
    GK_MAILBOX_ALIGNMENT = 256,
    GK_MAILBOX_MOST =
        GK_MAILBOX_BYTES / 2, /* of the arrays of a call: more are copied faster in chunks */
};

typedef struct gk_mailboxes gk_mailboxes;
typedef struct gk_mailbox {
    char *memory; /* pinned, GK_MAILBOX_BYTES long */
    char *mapped; /* the same, as kernels address it */
    char *device; /* of gk_mailbox_device, or NULL */
    gk_stream stream;
    bool taken;
} gk_mailbox;

/* Memory and streams come at the first gk_mailbox_take. NULL: out of memory. */
gk_mailboxes *gk_mailboxes_new(gk_pool *pool);
void gk_mailboxes_free(gk_mailboxes *mailboxes, gk_backend *backend);

/* Give memory and streams back until the next gk_mailbox_take, if none is taken. */
void gk_mailboxes_trim(gk_mailboxes *mailboxes, gk_backend *backend);

/* One for this call alone, or NULL where all are taken, or none could be made: kernels of
   this device may not reach the host's memory. */
gk_mailbox *gk_mailbox_take(gk_mailboxes *mailboxes, gk_backend *backend);
void gk_mailbox_give(gk_mailboxes *mailboxes, gk_mailbox *mailbox);

/* Device memory of the same length, for a box that is taken: it comes when it is first asked for,
   and stays. NULL: there is none. */
char *gk_mailbox_device(gk_mailboxes *mailboxes, gk_mailbox *mailbox, gk_backend *backend);

/* Device memory that the boxes have. */
size_t gk_mailboxes_bytes(gk_mailboxes *mailboxes);

#endif
