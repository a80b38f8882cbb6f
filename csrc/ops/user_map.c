#include "ops/user_map.h"

#include "engine/pipeline.h"
#include "engine/transfer.h"

enum { MOST_ARGUMENTS = 64 };

typedef struct chunked {
    const gk_call *call;
    const gk_launch *launch;
    const gk_kernel_argument *arguments;
    int count;
    size_t a_block;
} chunked;

static void cover(gk_launch *launch, size_t elements, size_t a_block) {
    launch->grid[0] = (unsigned)((elements + a_block - 1) / a_block);
    launch->grid[1] = launch->grid[2] = 1;
}

/* A chunk runs as a call of its own on its lane's stream. */
static gk_status run_chunk(void *context, gk_stream stream, const gk_array *operands,
                           gk_array *result, size_t first, gk_error *error) {
    const chunked *whole = context;
    gk_call chunk = gk_call_part(whole->call, stream);
    gk_launch launch = *whole->launch;
    void *values[MOST_ARGUMENTS];
    uint64_t addresses[MOST_ARGUMENTS], elements = gk_count(result);
    int arrays = 0, last = whole->count - 1;
    (void)first;
    chunk.phases = NULL;
    for (int i = 0; i < last; i++) {
        bool is_array = whole->arguments[i].is_array;
        if (is_array)
            addresses[i] = (uintptr_t)(i == last - 1 ? result->data : operands[arrays++].data);
        values[i] = is_array ? &addresses[i] : (void *)whole->arguments[i].value;
    }
    values[last] = &elements;
    launch.arguments = values;
    cover(&launch, elements, whole->a_block);
    gk_status status = gk_call_launch_kernel(&chunk, &launch);
    gk_call_end(&chunk);
    if (status != GK_OK)
        *error = chunk.error;
    return status;
}

/* Not `done` where the pipeline takes fewer arrays. */
static gk_status flow(gk_call *call, const chunked *whole, bool *done) {
    const gk_array *result = &whole->arguments[whole->count - 2].array;
    gk_flow flow = {.count = gk_count(result),
                    .work = run_chunk,
                    .context = (void *)whole,
                    .has_result = true,
                    .result = *result};
    *done = whole->count <= MOST_ARGUMENTS;
    for (int i = 0; i < whole->count - 2 && *done; i++) {
        if (!whole->arguments[i].is_array)
            continue;
        *done = flow.operand_count < GK_PIPELINE_OPERANDS;
        if (*done)
            gk_copy_view(&flow.operands[flow.operand_count++], &whole->arguments[i].array);
    }
    return *done ? gk_call_flow(call, &flow) : GK_OK;
}

gk_status gk_user_kernel_map(gk_call *call, gk_launch *launch, gk_kernel_argument *arguments,
                             int count, size_t a_block) {
    const chunked whole = {call, launch, arguments, count, a_block};
    bool done;
    gk_status status = flow(call, &whole, &done);
    if (done && status != GK_MEMORY_ERROR)
        return status;
    gk_call_end(call); /* what it had taken, before the plain way asks for its own */
    cover(launch, gk_count(&arguments[count - 2].array), a_block);
    return gk_user_kernel_run(call, launch, arguments, count);
}
