#include "engine/mailbox.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAILBOXES = 8 }; /* as many calls at once; the next one takes the longer way */

struct gk_mailboxes {
    gk_pool *pool;
    pid_t owner;
    pthread_mutex_t lock;
    char *memory;
    gk_mailbox boxes[MAILBOXES];
};

gk_mailboxes *gk_mailboxes_new(gk_pool *pool) {
    gk_mailboxes *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->pool = pool;
    made->owner = getpid();
    pthread_mutex_init(&made->lock, NULL);
    return made;
}

static void discard(gk_mailboxes *mailboxes, gk_backend *backend) {
    for (int i = 0; i < MAILBOXES; i++) {
        backend->stream_free(backend, mailboxes->boxes[i].stream);
        mailboxes->boxes[i] = (gk_mailbox){0};
    }
    if (mailboxes->memory)
        gk_pool_give(mailboxes->pool, mailboxes->memory);
    mailboxes->memory = NULL;
}

void gk_mailboxes_free(gk_mailboxes *mailboxes, gk_backend *backend) {
    discard(mailboxes, backend);
    pthread_mutex_destroy(&mailboxes->lock);
    free(mailboxes);
}

static bool make(gk_mailboxes *mailboxes, gk_backend *backend) {
    gk_error ignored;
    if (mailboxes->memory)
        return true;
    mailboxes->memory = gk_pool_take(mailboxes->pool, (size_t)MAILBOXES * GK_MAILBOX_BYTES);
    bool made = mailboxes->memory != NULL;
    for (int i = 0; i < MAILBOXES && made; i++) {
        mailboxes->boxes[i].memory = mailboxes->memory + (size_t)i * GK_MAILBOX_BYTES;
        made = backend->stream_new(backend, &mailboxes->boxes[i].stream, &ignored) == GK_OK;
    }
    if (!made)
        discard(mailboxes, backend);
    return made;
}

/* In the child of a fork: the lock may be held by a thread that is not here, which may have made
   half of them, and the ones that such threads had taken are free. */
static void inherit(gk_mailboxes *mailboxes) {
    bool whole = pthread_mutex_trylock(&mailboxes->lock) == 0;
    if (!whole)
        mailboxes->memory = NULL;
    for (int i = 0; i < MAILBOXES; i++)
        mailboxes->boxes[i].taken = false;
    pthread_mutex_init(&mailboxes->lock, NULL);
    mailboxes->owner = getpid();
}

gk_mailbox *gk_mailbox_take(gk_mailboxes *mailboxes, gk_backend *backend) {
    gk_mailbox *found = NULL;
    if (mailboxes->owner != getpid())
        inherit(mailboxes);
    pthread_mutex_lock(&mailboxes->lock);
    if (make(mailboxes, backend))
        for (int i = 0; i < MAILBOXES && !found; i++)
            found = mailboxes->boxes[i].taken ? NULL : &mailboxes->boxes[i];
    if (found)
        found->taken = true;
    pthread_mutex_unlock(&mailboxes->lock);
    return found;
}

void gk_mailbox_give(gk_mailboxes *mailboxes, gk_mailbox *mailbox) {
    pthread_mutex_lock(&mailboxes->lock);
    mailbox->taken = false;
    pthread_mutex_unlock(&mailboxes->lock);
}
