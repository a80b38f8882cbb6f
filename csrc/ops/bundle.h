/* Small host arrays of a launch of a user's kernel: to the device in one copy, and back in one. */
#ifndef GK_BUNDLE_H
#define GK_BUNDLE_H

#include "engine/call.h"
#include "engine/mailbox.h"
#include "ops/kernel_argument.h"

typedef struct gk_bundle {
    gk_mailbox *box;      /* pinned memory, in which they lie as on the device */
    char *device;         /* the box's; NULL: there is no bundle, and each array goes by itself */
    size_t read, written; /* bytes [0, read) are copied in, [written, end) out */
    size_t end;
    size_t gaps_in, gaps_out; /* bytes of no array among those */
    bool is_under_way;        /* the stream may not have passed the copy in */
} gk_bundle;

/* Whether the argument is of the bundle, where there is one. */
bool gk_is_bundled(const gk_kernel_argument *argument);

/* Copy in what is read, and say in the arguments where they are. No bundle is made of arrays that
   are too many bytes, or of which none comes back: then nobody waits for the copy in. It has to be
   ended either way. */
gk_status gk_bundle_begin(gk_bundle *bundle, gk_call *call, gk_kernel_argument *arguments,
                          int count);
/* Wait for the kernel, and copy to the host's arrays what is written. */
gk_status gk_bundle_deliver(gk_bundle *bundle, gk_call *call, const gk_kernel_argument *arguments,
                            int count);
void gk_bundle_end(gk_bundle *bundle, gk_call *call);

#endif
