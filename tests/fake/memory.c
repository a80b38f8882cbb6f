/* Memory of the device, pinned memory, copies, and who uses what when. */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

enum { BLOCKS = 4096, KEPT = 256, PORTABLE = 1, MAPPED = 2 };
enum { MEMORY_TYPE = 2, DEVICE_POINTER = 3, DEVICE_ORDINAL = 9, DEVICE_MEMORY = 2 };
static const pointer elsewhere = (pointer)1 << 45; /* added to pinned memory as kernels see it */

typedef struct access {
    pointer first, end;
    epoch when;
    access_kind kind;
    const char *what;
    handle stream;
} access;

typedef struct block {
    pointer first;
    size_t bytes;
    handle context;
    int is_node;   /* of a graph */
    int is_pinned; /* on the host */
    unsigned flags;
    access *accesses;
    int count, capacity;
} block;

static block blocks[BLOCKS];
static size_t used;

/* --- the order --------------------------------------------------------------------------- */

static block *block_of(pointer address) {
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].first && address >= blocks[i].first &&
            address < blocks[i].first + blocks[i].bytes)
            return &blocks[i];
    return NULL;
}

static int is_elsewhere(void) {
    return !fake_setting("FAKE_HOST_POINTERS", 1);
}

/* The block that a kernel or a copy means by the address; pinned memory may have another one. */
static block *seen_block(pointer *address) {
    block *found = block_of(*address);
    if (!is_elsewhere() || (found && !found->is_pinned))
        return found;
    *address -= elsewhere;
    found = block_of(*address);
    return found && found->is_pinned ? found : NULL;
}

static void remember(block *in, access made) {
    int kept = 0;
    for (int i = 0; i < in->count; i++) {
        const access *old = &in->accesses[i];
        int covered = old->first >= made.first && old->end <= made.end;
        int replaced =
            made.kind == WRITES || (old->kind == READS && old->when.actor == made.when.actor);
        if (!covered || !replaced)
            in->accesses[kept++] = *old;
    }
    in->count = kept;
    if (in->count == in->capacity) {
        in->capacity = 2 * in->capacity + 8;
        in->accesses = realloc(in->accesses, (size_t)in->capacity * sizeof *in->accesses);
    }
    in->accesses[in->count++] = made;
}

char *fake_touch(const stream *on, epoch when, pointer first, size_t bytes, access_kind kind,
                 const char *what) {
    static const char *const does[] = {"reads", "writes"};
    block *in = seen_block(&first);
    if (fake_is_captured(on->handle))
        return (char *)first;
    if (!in || first + bytes > in->first + in->bytes)
        fake_violation("%s %s %zu bytes at %p, which is no memory of the device", what, does[kind],
                       bytes, (void *)first);
    for (int i = 0; i < in->count; i++) {
        const access *old = &in->accesses[i];
        int meets = old->first < first + bytes && first < old->end;
        if (meets && (kind == WRITES || old->kind == WRITES) &&
            on->clock.at[old->when.actor] < old->when.time)
            fake_violation("%s on stream %p %s what %s on stream %p %s, and does not wait for it",
                           what, on->handle, does[kind], old->what, old->stream, does[old->kind]);
    }
    remember(in, (access){first, first + bytes, when, kind, what, on->handle});
    return (char *)first;
}

/* Copies reach all memory, kernels that of their own context. */
int fake_is_of(handle context, const void *memory) {
    const block *found = block_of((pointer)memory);
    return found && (found->is_pinned || found->context == context);
}

/* --- what is under way between the device and pinned memory ------------------------------ */

typedef struct pending {
    epoch when;
    char *host, *content;
    size_t bytes;
    access_kind kind;
    struct pending *next;
} pending;

static pending *under_way, **last = &under_way;

void fake_pend(epoch when, void *host, const void *content, size_t bytes, access_kind kind) {
    pending *made = malloc(sizeof *made);
    *made = (pending){when, host, malloc(bytes), bytes, kind, NULL};
    memcpy(made->content, content, bytes);
    *last = made;
    last = &made->next;
}

void fake_settle(const clock_vector *host) {
    for (pending **at = &under_way; *at;) {
        pending *done = *at;
        if (host->at[done->when.actor] < done->when.time) {
            at = &done->next;
            continue;
        }
        if (done->kind == WRITES)
            memcpy(done->host, done->content, done->bytes);
        else if (memcmp(done->host, done->content, done->bytes) != 0)
            fake_violation("pinned memory was written while work on the device reads it");
        *at = done->next;
        if (last == &done->next)
            last = at;
        free(done->content);
        free(done);
    }
}

int fake_is_pinned(const void *host, size_t bytes) {
    const block *found = block_of((pointer)host);
    return found && found->is_pinned && (pointer)host + bytes <= found->first + found->bytes;
}

result cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags) {
    FAKE_ENTER();
    (void)fake_context(__func__);
    fake_lock();
    int i = 0;
    while (i < BLOCKS && blocks[i].first)
        i++;
    if (i == BLOCKS || block_of((pointer)memory))
        fake_violation("%s: no room, or registered already", __func__);
    blocks[i] = (block){.first = (pointer)memory, .bytes = bytes, .is_pinned = 1, .flags = flags};
    fake_count("pinned", 1);
    fake_unlock();
    return fake_sticky;
}

result cuMemHostUnregister(void *memory) {
    fake_lock();
    block *gone = block_of((pointer)memory);
    if (!gone || gone->first != (pointer)memory || !gone->is_pinned)
        fake_violation("%s: %p was not registered", __func__, memory);
    for (const pending *at = under_way; at; at = at->next)
        if ((pointer)at->host >= gone->first && (pointer)at->host < gone->first + gone->bytes)
            fake_violation("%s: work on the device still uses the memory", __func__);
    free(gone->accesses);
    *gone = (block){0};
    fake_count("pinned", -1);
    fake_unlock();
    return fake_sticky;
}

result cuMemHostGetDevicePointer_v2(pointer *mapped, void *memory, unsigned flags) {
    (void)flags;
    FAKE_ENTER();
    fake_lock();
    const block *found = block_of((pointer)memory);
    int is_mapped = found && found->is_pinned && found->flags == (PORTABLE | MAPPED);
    fake_unlock();
    *mapped = (pointer)memory + (is_elsewhere() ? elsewhere : 0);
    if (!fake_setting("FAKE_MAPS", 1))
        return NOT_SUPPORTED;
    return is_mapped ? fake_sticky : INVALID_VALUE;
}

/* --- allocation -------------------------------------------------------------------------- */

result cuMemGetInfo_v2(size_t *available, size_t *total) {
    FAKE_ENTER();
    *total = (size_t)fake_setting("FAKE_MEMORY", 1 << 30);
    *available = *total - used;
    return fake_sticky;
}

result cuMemPoolCreate(handle *pool, const void *properties) {
    (void)properties;
    FAKE_ENTER();
    *pool = malloc(1);
    fake_count("pools", 1);
    return OK;
}

result cuMemPoolDestroy(handle pool) {
    free(pool);
    fake_count("pools", -1);
    return OK;
}

result cuMemPoolSetAttribute(handle pool, int attribute, void *value) {
    (void)pool, (void)attribute, (void)value;
    FAKE_ENTER();
    return OK;
}

result cuMemPoolGetAttribute(handle pool, int attribute, void *value) {
    (void)pool, (void)attribute;
    *(uint64_t *)value = used;
    return OK;
}

result cuMemPoolTrimTo(handle pool, size_t keep) {
    (void)pool, (void)keep;
    return OK;
}

/* Under the lock. Fresh memory is not zero. */
static block *take_block(pointer *address, size_t bytes, size_t limit, handle context) {
    for (int i = 0; i < BLOCKS && used + bytes <= limit; i++) {
        if (blocks[i].first)
            continue;
        *address = (pointer)aligned_alloc(256, (bytes + 255) / 256 * 256);
        memset((void *)*address, 0xff, bytes);
        blocks[i] = (block){.first = *address, .bytes = bytes, .context = context};
        used += bytes;
        return &blocks[i];
    }
    return NULL;
}

result cuMemAllocFromPoolAsync(pointer *address, size_t bytes, handle pool, handle named) {
    (void)pool;
    FAKE_ENTER();
    size_t memory = (size_t)fake_setting("FAKE_MEMORY", 1 << 30);
    size_t limit = (size_t)fake_setting("FAKE_POOL", 1 << 30);
    if (fake_sticky || bytes == 0)
        return fake_sticky ? fake_sticky : INVALID_VALUE;
    if (!fake_is_captured(named) && fake_is_forbidden())
        return CAPTURE_UNSUPPORTED;
    fake_lock();
    stream *on = fake_stream(named, __func__);
    block *made = take_block(address, bytes, limit < memory ? limit : memory, on->context);
    if (made) {
        made->is_node = fake_is_captured(named);
        (void)fake_touch(on, fake_submit(on), *address, bytes, WRITES, "an allocation");
    }
    fake_unlock();
    return made ? OK : OUT_OF_MEMORY;
}

result cuMemAlloc_v2(pointer *address, size_t bytes) {
    FAKE_ENTER();
    if (fake_blocks_legacy(NULL))
        return CAPTURE_IMPLICIT;
    if (fake_sticky || bytes == 0)
        return fake_sticky ? fake_sticky : INVALID_VALUE;
    fake_lock();
    handle context = fake_context(__func__);
    block *made = take_block(address, bytes, (size_t)fake_setting("FAKE_MEMORY", 1 << 30), context);
    fake_unlock();
    return made ? OK : OUT_OF_MEMORY;
}

/* Freed memory stays with us for a while, so that a late use of it is known as one. */
static void keep(pointer gone) {
    static pointer kept[KEPT];
    static int next;
    free((void *)kept[next]);
    kept[next] = gone;
    next = (next + 1) % KEPT;
}

result cuMemFreeAsync(pointer address, handle named) {
    if (fake_blocks_legacy(named))
        return CAPTURE_IMPLICIT;
    fake_lock();
    block *gone = block_of(address);
    if (!gone || gone->first != address || gone->is_pinned)
        fake_violation("%s: %p is not allocated", __func__, (void *)address);
    int is_right = gone->is_node == fake_is_captured(named);
    if (is_right) {
        stream *on = fake_stream(named, __func__);
        (void)fake_touch(on, fake_submit(on), address, gone->bytes, WRITES, "a release");
        fake_note('f', named);
        keep(gone->first);
        used -= gone->bytes;
        free(gone->accesses);
        *gone = (block){0};
    }
    fake_unlock();
    return is_right ? fake_sticky : INVALID_VALUE;
}

/* --- variables of modules ---------------------------------------------------------------- */

enum { VARIABLES = 64 };
static struct variable {
    handle module;
    char name[64];
    pointer address;
    size_t bytes;
} variables[VARIABLES];

/* A variable of a user's module tells its size by its name: table_64 has 64 bytes, all zero. */
static struct variable *new_variable(handle module, const char *name) {
    const char *size = strrchr(name, '_');
    size_t bytes = size ? (size_t)atoi(size + 1) : 0;
    for (int i = 0; i < VARIABLES && bytes > 0; i++) {
        struct variable *made = &variables[i];
        if (made->module)
            continue;
        if (!take_block(&made->address, bytes, (size_t)1 << 40, fake_context("cuModuleGetGlobal")))
            return NULL;
        memset((void *)made->address, 0, bytes);
        used -= bytes; /* the module's, not the pool's */
        made->module = module;
        made->bytes = bytes;
        strncpy(made->name, name, sizeof made->name - 1);
        return made;
    }
    return NULL;
}

void fake_drop_variables(handle module) {
    for (int i = 0; i < VARIABLES; i++) {
        struct variable *gone = &variables[i];
        if (gone->module != module)
            continue;
        block *memory = block_of(gone->address);
        keep(gone->address);
        free(memory->accesses);
        *memory = (block){0};
        *gone = (struct variable){0};
    }
}

result cuModuleGetGlobal_v2(pointer *address, size_t *bytes, handle module, const char *name) {
    FAKE_ENTER();
    fake_lock();
    struct variable *found = NULL;
    for (int i = 0; i < VARIABLES && !found; i++)
        if (variables[i].module == module && strcmp(variables[i].name, name) == 0)
            found = &variables[i];
    if (!found)
        found = new_variable(module, name);
    if (found) {
        *address = found->address;
        *bytes = found->bytes;
    }
    fake_unlock();
    return found ? fake_sticky : NOT_FOUND;
}

/* A GPU maps memory in pages of 2 MiB: the rest of the last one is answered for too. */
result cuPointerGetAttributes(unsigned count, const int *attributes, void **values,
                              pointer address) {
    FAKE_ENTER();
    fake_lock();
    const block *found = block_of(address);
    int held = found && !found->is_pinned;
    int ordinal = held ? fake_device_of(found->context) : -2;
    fake_unlock();
    for (unsigned i = 0; i < count; i++) {
        if (attributes[i] == MEMORY_TYPE)
            *(unsigned *)values[i] = held ? DEVICE_MEMORY : 0;
        else if (attributes[i] == DEVICE_POINTER)
            *(pointer *)values[i] = held ? address : 0;
        else if (attributes[i] == DEVICE_ORDINAL)
            *(int *)values[i] = ordinal;
    }
    return fake_sticky;
}

/* --- copies ------------------------------------------------------------------------------ */

result cuMemsetD8Async(pointer to, unsigned char value, size_t bytes, handle named) {
    FAKE_ENTER();
    if (fake_sticky)
        return fake_sticky;
    fake_lock();
    fake_note('z', named);
    stream *on = fake_stream(named, __func__);
    memset(fake_touch(on, fake_submit(on), to, bytes, WRITES, "a memset"), value, bytes);
    fake_unlock();
    return OK;
}

result cuMemcpyHtoDAsync_v2(pointer to, const void *from, size_t bytes, handle named) {
    FAKE_ENTER();
    if (fake_sticky)
        return fake_sticky;
    fake_lock();
    fake_note('i', named);
    stream *on = fake_stream(named, __func__);
    epoch when = fake_submit(on);
    memcpy(fake_touch(on, when, to, bytes, WRITES, "a copy in"), from, bytes);
    if (fake_is_pinned(from, bytes)) /* what is not has been read when this returns */
        fake_pend(when, (void *)from, from, bytes, READS);
    fake_unlock();
    return OK;
}

result cuMemcpyDtoHAsync_v2(void *to, pointer from, size_t bytes, handle named) {
    FAKE_ENTER();
    if (fake_sticky)
        return fake_sticky;
    fake_lock();
    fake_note('o', named);
    stream *on = fake_stream(named, __func__);
    epoch when = fake_submit(on);
    fake_pend(when, to, fake_touch(on, when, from, bytes, READS, "a copy out"), bytes, WRITES);
    if (!fake_is_pinned(to, bytes)) /* returns when it is over */
        fake_host_waits(&on->clock);
    fake_unlock();
    return OK;
}

/* Of the layout of CUDA_MEMCPY2D as much as is used: rows of device memory to the host. */
typedef struct rows {
    size_t from_x, from_y;
    int from_type;
    const void *from_host;
    pointer from_device;
    handle from_array;
    size_t from_pitch, to_x, to_y;
    int to_type;
    char *to_host;
    pointer to_device;
    handle to_array;
    size_t to_pitch, width, height;
} rows;

result cuMemcpy2DAsync_v2(const rows *copy, handle named) {
    FAKE_ENTER();
    if (fake_sticky)
        return fake_sticky;
    if (copy->from_type != DEVICE_MEMORY || copy->to_type != 1 || copy->from_pitch < copy->width ||
        copy->to_pitch < copy->width)
        return INVALID_VALUE;
    fake_lock();
    fake_note('o', named);
    stream *on = fake_stream(named, __func__);
    epoch when = fake_submit(on);
    for (size_t i = 0; i < copy->height; i++) {
        pointer from = copy->from_device + i * copy->from_pitch;
        char *to = copy->to_host + i * copy->to_pitch;
        fake_pend(when, to, fake_touch(on, when, from, copy->width, READS, "a copy out"),
                  copy->width, WRITES);
    }
    if (!fake_is_pinned(copy->to_host,
                        copy->height * copy->to_pitch - copy->to_pitch + copy->width))
        fake_host_waits(&on->clock);
    fake_unlock();
    return OK;
}

result cuMemcpyDtoDAsync_v2(pointer to, pointer from, size_t bytes, handle named) {
    FAKE_ENTER();
    if (fake_sticky)
        return fake_sticky;
    fake_lock();
    stream *on = fake_stream(named, __func__);
    epoch when = fake_submit(on);
    const char *source = fake_touch(on, when, from, bytes, READS, "a copy");
    memmove(fake_touch(on, when, to, bytes, WRITES, "a copy"), source, bytes);
    fake_unlock();
    return OK;
}

/* On a stream of the device that it goes to: nothing orders it after what the other one does. */
result cuMemcpyPeerAsync(pointer to, handle there, pointer from, handle here, size_t bytes,
                         handle named) {
    FAKE_ENTER();
    fake_lock();
    const block *target = block_of(to), *source = block_of(from);
    if (!target || !source || target->context != there || source->context != here)
        fake_violation("%s: memory of other contexts than it says", __func__);
    fake_unlock();
    return cuMemcpyDtoDAsync_v2(to, from, bytes, named);
}
