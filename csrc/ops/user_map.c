#include "ops/user_map.h"

#include <stdatomic.h>
#include <string.h>

#include "base/pack.h"
#include "engine/mailbox.h"
#include "engine/pipeline.h"
#include "engine/transfer.h"

enum { MOST_ARGUMENTS = 64 };

typedef struct mapping {
    gk_call *call;
    const gk_launch *launch;
    const gk_kernel_argument *arguments;
    int count;
    size_t a_block;
} mapping;

static const gk_array *result_of(const mapping *whole) {
    return &whole->arguments[whole->count - 2].array;
}

static void cover(gk_launch *launch, size_t elements, size_t a_block) {
    launch->grid[0] = (unsigned)((elements + a_block - 1) / a_block);
    launch->grid[1] = launch->grid[2] = 1;
}

/* Of the arrays among the arguments, where the device has so many elements of them. */
static gk_status launch_on(gk_call *call, const mapping *whole, uint64_t *addresses,
                           uint64_t elements) {
    gk_launch launch = *whole->launch;
    void *values[MOST_ARGUMENTS];
    int last = whole->count - 1;
    for (int i = 0; i < last; i++)
        values[i] =
            whole->arguments[i].is_array ? &addresses[i] : (void *)whole->arguments[i].value;
    values[last] = &elements;
    launch.arguments = values;
    cover(&launch, elements, whole->a_block);
    return gk_call_launch_kernel(call, &launch);
}

/* small ones ----------------------------------------------------------------------------------- */

static size_t bytes_of(const mapping *whole) {
    size_t bytes = 0;
    for (int i = 0; i < whole->count - 1; i++)
        if (whole->arguments[i].is_array)
            bytes += gk_bytes(&whole->arguments[i].array);
    return bytes;
}

/* On a stream of the box's own, and where nobody watches what kernels touch beside an array. */
static bool is_mapped(const gk_call *call, size_t bytes) {
    return bytes <= atomic_load(&call->engine->mapped_limit) && !call->stream &&
           !call->backend->watches_arrays;
}

/* The arrays in the box, those that are read packed, and where kernels find them; where the result
   lies, in bytes. */
static size_t fill(const mapping *whole, const gk_mailbox *box, uint64_t *addresses) {
    const gk_array *result = result_of(whole);
    size_t used = 0;
    for (int i = 0; i < whole->count - 1; i++) {
        const gk_array *array = &whole->arguments[i].array;
        gk_array mapped;
        if (!whole->arguments[i].is_array)
            continue;
        addresses[i] = (uintptr_t)box->mapped + used;
        if (array == result)
            break;
        gk_pack(box->memory + used, array, 0, gk_count(array));
        gk_copy_view(&mapped, array);
        used += gk_mapped_view(&mapped, box->mapped + used);
    }
    return used;
}

static void count_bytes(const mapping *whole) {
    gk_phases *phases = whole->call->phases;
    phases->bytes_out += gk_bytes(result_of(whole));
    for (int i = 0; i < whole->count - 2; i++)
        if (whole->arguments[i].is_array)
            phases->bytes_in += gk_bytes(&whole->arguments[i].array);
}

/* Not `done` where no mailbox was free. */
static gk_status run_mapped(const mapping *whole, bool *done) {
    gk_call *call = whole->call;
    gk_mailbox *box = gk_mailbox_take(call->device->mailboxes, call->backend);
    const gk_array *result = result_of(whole);
    uint64_t addresses[MOST_ARGUMENTS];
    gk_error ignored;
    *done = box != NULL;
    if (!box)
        return GK_OK;
    call->stream = box->stream;
    size_t at = fill(whole, box, addresses);
    gk_status status = launch_on(call, whole, addresses, gk_count(result));
    gk_status ended = call->backend->synchronize(call->backend, box->stream,
                                                 status == GK_OK ? &call->error : &ignored);
    if (status == GK_OK)
        status = gk_call_blame(call, ended);
    if (status == GK_OK)
        memcpy(result->data, box->memory + at, gk_bytes(result));
    if (status == GK_OK && call->phases)
        count_bytes(whole);
    gk_mailbox_give(call->device->mailboxes, box);
    return status;
}

/* large ones ----------------------------------------------------------------------------------- */

/* A chunk runs as a call of its own on its lane's stream. */
static gk_status run_chunk(void *context, gk_stream stream, const gk_array *operands,
                           gk_array *result, size_t first, gk_error *error) {
    const mapping *whole = context;
    gk_call chunk = gk_call_part(whole->call, stream);
    uint64_t addresses[MOST_ARGUMENTS];
    int arrays = 0, last = whole->count - 2;
    (void)first;
    chunk.phases = NULL;
    for (int i = 0; i < last; i++)
        if (whole->arguments[i].is_array)
            addresses[i] = (uintptr_t)operands[arrays++].data;
    addresses[last] = (uintptr_t)result->data;
    gk_status status = launch_on(&chunk, whole, addresses, gk_count(result));
    gk_call_end(&chunk);
    if (status != GK_OK)
        *error = chunk.error;
    return status;
}

/* Not `done` where the pipeline takes fewer arrays. */
static gk_status flow(const mapping *whole, bool *done) {
    const gk_array *result = result_of(whole);
    gk_flow flow = {.count = gk_count(result),
                    .work = run_chunk,
                    .context = (void *)(uintptr_t)whole,
                    .has_result = true,
                    .result = *result};
    *done = true;
    for (int i = 0; i < whole->count - 2 && *done; i++) {
        if (!whole->arguments[i].is_array)
            continue;
        *done = flow.operand_count < GK_FLOW_OPERANDS;
        if (*done)
            gk_copy_view(&flow.operands[flow.operand_count++], &whole->arguments[i].array);
    }
    gk_status status = *done ? gk_call_flow(whole->call, &flow) : GK_OK;
    *done = *done && status != GK_MEMORY_ERROR;
    return status;
}

gk_status gk_user_kernel_map(gk_call *call, gk_launch *launch, gk_kernel_argument *arguments,
                             int count, size_t a_block) {
    const mapping whole = {call, launch, arguments, count, a_block};
    size_t elements = gk_count(result_of(&whole));
    bool done = elements == 0;
    gk_status status = GK_OK;
    if (!done && count <= MOST_ARGUMENTS) {
        size_t bytes = bytes_of(&whole);
        if (is_mapped(call, bytes))
            status = run_mapped(&whole, &done);
        else if (bytes > GK_MAILBOX_MOST)
            status = flow(&whole, &done);
    }
    if (done)
        return status;
    gk_call_end(call); /* what it had taken, before the plain way asks for its own */
    cover(launch, elements, a_block);
    return gk_user_kernel_run(call, launch, arguments, count);
}
