#include "engine/mailbox.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"

enum { MAILBOXES = 8 }; /* as many calls at once; the next one takes the longer way */

struct gk_mailboxes {
    gk_pool *pool;
    gk_lock lock; /* of what follows */
    char *memory;
    gk_mailbox boxes[MAILBOXES];
    atomic_size_t held; /* bytes of device memory, for those who ask without the lock */
};

gk_mailboxes *gk_mailboxes_new(gk_pool *pool) {
    gk_mailboxes *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->pool = pool;
    if (gk_lock_init(&made->lock))
        return made;
    free(made);
    return NULL;
}

static void discard(gk_mailboxes *mailboxes, gk_backend *backend) {
    for (int i = 0; i < MAILBOXES; i++) {
        backend->release(backend, mailboxes->boxes[i].device, mailboxes->boxes[i].stream);
        backend->stream_free(backend, mailboxes->boxes[i].stream);
        mailboxes->boxes[i] = (gk_mailbox){0};
    }
    if (mailboxes->memory)
        gk_pool_give(mailboxes->pool, mailboxes->memory);
    mailboxes->memory = NULL;
    atomic_store(&mailboxes->held, 0);
}

void gk_mailboxes_free(gk_mailboxes *mailboxes, gk_backend *backend) {
    discard(mailboxes, backend);
    gk_lock_free(&mailboxes->lock);
    free(mailboxes);
}

static bool make(gk_mailboxes *mailboxes, gk_backend *backend) {
    gk_error ignored;
    if (mailboxes->memory)
        return true;
    mailboxes->memory = gk_pool_take(mailboxes->pool, (size_t)MAILBOXES * GK_MAILBOX_BYTES);
    void *mapped = NULL;
    bool made =
        mailboxes->memory && backend->map(backend, mailboxes->memory, &mapped, &ignored) == GK_OK;
    for (int i = 0; i < MAILBOXES && made; i++) {
        size_t offset = (size_t)i * GK_MAILBOX_BYTES;
        mailboxes->boxes[i].memory = mailboxes->memory + offset;
        mailboxes->boxes[i].mapped = (char *)mapped + offset;
        made = backend->stream_new(backend, &mailboxes->boxes[i].stream, &ignored) == GK_OK;
    }
    if (!made)
        discard(mailboxes, backend);
    return made;
}

/* In the child of a fork the ones that threads had taken which are not here are free, and such a
   thread may have made half of them. */
static void lock(gk_mailboxes *mailboxes) {
    gk_taken taken = gk_lock_take(&mailboxes->lock);
    if (taken == GK_TAKEN)
        return;
    if (taken == GK_ABANDONED)
        mailboxes->memory = NULL;
    for (int i = 0; i < MAILBOXES; i++)
        mailboxes->boxes[i].taken = false;
}

void gk_mailboxes_trim(gk_mailboxes *mailboxes, gk_backend *backend) {
    bool idle = true;
    lock(mailboxes);
    for (int i = 0; i < MAILBOXES; i++)
        idle = idle && !mailboxes->boxes[i].taken;
    if (idle)
        discard(mailboxes, backend);
    gk_lock_give(&mailboxes->lock);
}

gk_mailbox *gk_mailbox_take(gk_mailboxes *mailboxes, gk_backend *backend) {
    gk_mailbox *found = NULL;
    lock(mailboxes);
    if (make(mailboxes, backend))
        for (int i = 0; i < MAILBOXES && !found; i++)
            found = mailboxes->boxes[i].taken ? NULL : &mailboxes->boxes[i];
    if (found)
        found->taken = true;
    gk_lock_give(&mailboxes->lock);
    return found;
}

void gk_mailbox_give(gk_mailboxes *mailboxes, gk_mailbox *mailbox) {
    lock(mailboxes);
    mailbox->taken = false;
    gk_lock_give(&mailboxes->lock);
}

/* Nobody else has the box. */
char *gk_mailbox_device(gk_mailboxes *mailboxes, gk_mailbox *mailbox, gk_backend *backend) {
    gk_error ignored;
    void *device;
    if (mailbox->device)
        return mailbox->device;
    if (backend->allocate(backend, GK_MAILBOX_BYTES, mailbox->stream, &device, &ignored) != GK_OK)
        return NULL;
    /* That stream has it; then all have. */
    if (backend->synchronize(backend, mailbox->stream, &ignored) != GK_OK) {
        backend->release(backend, device, mailbox->stream);
        return NULL;
    }
    atomic_fetch_add(&mailboxes->held, GK_MAILBOX_BYTES);
    return mailbox->device = device;
}

size_t gk_mailboxes_bytes(gk_mailboxes *mailboxes) {
    return atomic_load(&mailboxes->held);
}
