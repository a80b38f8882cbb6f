#include "ops/bundle.h"

#include <string.h>

#include "base/pack.h"

enum { ONLY_READ, BOTH, ONLY_WRITTEN, TURNS };

bool gk_is_bundled(const gk_kernel_argument *argument) {
    return argument->is_array && argument->array.place == GK_HOST && gk_count(&argument->array) > 0;
}

static int turn_of(const gk_kernel_argument *argument) {
    if (!argument->is_out)
        return ONLY_READ;
    return argument->is_in ? BOTH : ONLY_WRITTEN;
}

/* A place for each, aligned as device memory is: first what is only read, last what is only
   written. Whether they fit. */
static bool lay_out(gk_bundle *bundle, gk_kernel_argument *arguments, int count) {
    for (int turn = 0; turn < TURNS; turn++) {
        if (turn == BOTH)
            bundle->written = bundle->end;
        if (turn == ONLY_WRITTEN)
            bundle->read = bundle->end;
        for (int i = 0; i < count; i++) {
            if (!gk_is_bundled(&arguments[i]) || turn_of(&arguments[i]) != turn)
                continue;
            size_t bytes = gk_bytes(&arguments[i].array);
            if (bytes > GK_MAILBOX_MOST - bundle->end)
                return false;
            size_t gap = -bytes % GK_MAILBOX_ALIGNMENT;
            arguments[i].number = bundle->end;
            bundle->end += bytes + gap;
            bundle->gaps_in += turn == ONLY_WRITTEN ? 0 : gap;
            bundle->gaps_out += turn == ONLY_READ ? 0 : gap;
        }
    }
    return bundle->end > bundle->written;
}

static gk_status copy_in(gk_bundle *bundle, gk_call *call, gk_kernel_argument *arguments,
                         int count) {
    for (int i = 0; i < count; i++) {
        gk_kernel_argument *argument = &arguments[i];
        if (!gk_is_bundled(argument))
            continue;
        if (argument->is_in)
            gk_pack(bundle->box->memory + argument->number, &argument->array, 0,
                    gk_count(&argument->array));
        argument->number += (uintptr_t)bundle->device;
    }
    bundle->is_under_way = true;
    if (call->phases)
        call->phases->bytes_in -= bundle->gaps_in;
    return gk_call_start_copy_in(call, bundle->device, bundle->box->memory, bundle->read);
}

gk_status gk_bundle_begin(gk_bundle *bundle, gk_call *call, gk_kernel_argument *arguments,
                          int count) {
    *bundle = (gk_bundle){0};
    if (call->captured || call->backend->watches_arrays || !lay_out(bundle, arguments, count))
        return GK_OK;
    bundle->box = gk_mailbox_take(call->device->mailboxes, call->backend);
    if (bundle->box)
        bundle->device = gk_mailbox_device(call->device->mailboxes, bundle->box, call->backend);
    return bundle->device ? copy_in(bundle, call, arguments, count) : GK_OK;
}

gk_status gk_bundle_deliver(gk_bundle *bundle, gk_call *call, const gk_kernel_argument *arguments,
                            int count) {
    char *memory = bundle->box->memory;
    gk_status status =
        gk_call_copy_out(call, memory + bundle->written, bundle->device + bundle->written,
                         bundle->end - bundle->written);
    if (status != GK_OK)
        return status;
    bundle->is_under_way = false; /* the copy out was behind it */
    if (call->phases)
        call->phases->bytes_out -= bundle->gaps_out;
    for (int i = 0; i < count; i++)
        if (gk_is_bundled(&arguments[i]) && arguments[i].is_out)
            memcpy(arguments[i].array.data,
                   memory + (arguments[i].number - (uintptr_t)bundle->device),
                   gk_bytes(&arguments[i].array));
    return GK_OK;
}

void gk_bundle_end(gk_bundle *bundle, gk_call *call) {
    gk_error ignored;
    if (bundle->is_under_way)
        (void)call->backend->synchronize(call->backend, call->stream, &ignored);
    if (bundle->box)
        gk_mailbox_give(call->device->mailboxes, bundle->box);
}
