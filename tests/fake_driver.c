/* A CUDA driver without a GPU, for the tests of what gpukern says when a driver is broken: device
   memory is malloc's, kernels do nothing, and environment variables choose what goes wrong.
     FAKE_INIT=n        what cuInit returns                 FAKE_VERSION=n   13000 for CUDA 13.0
     FAKE_VERSION_FAILS=n  what cuDriverGetVersion returns  FAKE_DEVICES=n   how many GPUs there are
     FAKE_CAPABILITY=n  75 for 7.5                          FAKE_MODULE=n    what loading returns
     FAKE_MACHINE_CODE=n  what loading an image with machine code returns
     FAKE_LAUNCH=n      what a launch returns               FAKE_MEMORY=n    bytes of the device
     FAKE_FAULT=n       what every call returns from the first one that waits for a kernel
     FAKE_PAUSE=file    cuInit makes the file and goes on when it is gone
   A symbol is made missing by compiling with -Dname=absent_name. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int result;
typedef uintptr_t pointer;
typedef void *handle;

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, NOT_FOUND = 500 };
enum { ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };
enum { CAPTURE_UNSUPPORTED = 900, CAPTURE_IMPLICIT = 906 };
enum { MEMORY_TYPE = 2, DEVICE_POINTER = 3, DEVICE_ORDINAL = 9, DEVICE_MEMORY = 2 };
enum { BLOCKS = 4096, CONTEXTS = 64 };

static const struct {
    result code;
    const char *name, *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX is of an unsupported toolchain"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when capturing"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "a legacy stream and a capturing blocking one"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "driver and kernel module disagree"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    pointer first;
    size_t bytes;
    int is_node; /* of a graph */
} blocks[BLOCKS];
static size_t used;
static result sticky; /* what every call returns after a fault */
static _Thread_local handle current[CONTEXTS];
static _Thread_local int depth;
static int context, anything;

static long long setting(const char *name, long long otherwise) {
    const char *text = getenv(name);
    return text ? atoll(text) : otherwise;
}

/* --- the driver itself ------------------------------------------------------------------- */

result cuDriverGetVersion(int *version) {
    *version = (int)setting("FAKE_VERSION", 13000);
    return (result)setting("FAKE_VERSION_FAILS", OK);
}

static void pause_at(const char *name) {
    FILE *file = fopen(name, "w");
    if (file)
        fclose(file);
    while (access(name, F_OK) == 0)
        usleep(1000);
}

result cuInit(unsigned flags) {
    (void)flags;
    if (getenv("FAKE_PAUSE"))
        pause_at(getenv("FAKE_PAUSE"));
    return (result)setting("FAKE_INIT", OK);
}

result cuGetErrorName(result code, const char **name) {
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code)
            return *name = errors[i].name, OK;
    return *name = NULL, INVALID_VALUE;
}

result cuGetErrorString(result code, const char **text) {
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].code == code)
            return *text = errors[i].text, OK;
    return *text = NULL, INVALID_VALUE;
}

/* --- devices ----------------------------------------------------------------------------- */

result cuDeviceGetCount(int *count) {
    *count = (int)setting("FAKE_DEVICES", 1);
    return OK;
}

result cuDeviceGet(int *device, int ordinal) {
    if (ordinal < 0 || ordinal >= setting("FAKE_DEVICES", 1))
        return INVALID_DEVICE;
    *device = ordinal;
    return OK;
}

result cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, (size_t)length, "Fake GPU %d", device);
    return OK;
}

result cuDeviceGetUuid_v2(char *uuid, int device) {
    memset(uuid, device + 1, 16);
    return OK;
}

result cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    int capability = (int)setting("FAKE_CAPABILITY", 90);
    switch (attribute) {
    case 1: /* threads a block */
    case 2: /* and its sides */
    case 3:
        return *value = 1024, OK;
    case 4:
        return *value = 64, OK;
    case 5: /* the sides of a grid */
        return *value = INT32_MAX, OK;
    case 6:
    case 7:
        return *value = 65535, OK;
    case 8: /* shared memory of a block */
    case 97:
        return *value = 49152, OK;
    case 10: /* lanes of a warp */
        return *value = 32, OK;
    case 16: /* multiprocessors */
        return *value = 4, OK;
    case 75:
        return *value = capability / 10, OK;
    case 76:
        return *value = capability % 10, OK;
    case 41:  /* unified addressing */
    case 115: /* memory pools */
        return *value = 1, OK;
    default:
        return *value = 0, OK;
    }
}

result cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = (size_t)setting("FAKE_MEMORY", 1 << 30);
    return OK;
}

/* --- graphs ------------------------------------------------------------------------------ */

/* One stream at a time is captured, from fake_capture(stream) to fake_capture(NULL); its graph
   lives until fake_graph_gone(). fake_log tells what was done in which order: "l77 " a launch on
   stream 77, "r" and "w" an event recorded and waited for, "z" memory zeroed, "f" memory freed. */
static handle captured;
static struct {
    void (*gone)(void *);
    void *data;
} owned[BLOCKS];
static int owned_count, is_blocking;
char fake_log[1 << 16];

static void note(char what, handle stream) {
    static size_t length;
    if (length + 32 < sizeof fake_log)
        length += (size_t)sprintf(fake_log + length, "%c%zu ", what, (size_t)stream);
}

void fake_capture(handle stream, int blocking) {
    captured = stream;
    is_blocking = blocking;
}

void fake_graph_gone(void) {
    while (owned_count > 0) {
        owned_count--;
        owned[owned_count].gone(owned[owned_count].data);
    }
}

static int is_default(handle stream) {
    return (uintptr_t)stream <= 1;
}

result cuStreamBeginCapture_v2(handle stream, int mode) {
    (void)mode;
    captured = stream;
    return sticky;
}

result cuStreamEndCapture(handle stream, handle *graph) {
    *graph = captured == stream ? &anything : NULL;
    captured = NULL;
    return *graph ? sticky : INVALID_VALUE;
}

result cuGraphInstantiateWithFlags(handle *executable, handle graph, unsigned long long flags) {
    (void)graph, (void)flags;
    *executable = &anything;
    return sticky;
}

result cuGraphLaunch(handle executable, handle stream) {
    (void)executable, (void)stream;
    return sticky;
}

result cuGraphDestroy(handle graph) {
    (void)graph;
    return sticky;
}

result cuGraphExecDestroy(handle executable) {
    (void)executable;
    return sticky;
}

result cuStreamIsCapturing(handle stream, int *status) {
    *status = captured && stream == captured;
    return captured && is_blocking && is_default(stream) ? CAPTURE_IMPLICIT : sticky;
}

result cuStreamGetCaptureInfo_v3(handle stream, int *status, uint64_t *id, handle *graph,
                                 handle **dependencies, void **edges, size_t *count) {
    (void)id, (void)dependencies, (void)edges, (void)count;
    *graph = &anything;
    return cuStreamIsCapturing(stream, status);
}

result cuUserObjectCreate(handle *object, void *data, void (*gone)(void *), unsigned references,
                          unsigned flags) {
    if (references != 1 || flags != 1 || owned_count == BLOCKS)
        return INVALID_VALUE;
    owned[owned_count].gone = gone;
    owned[owned_count].data = data;
    *object = &owned[owned_count++];
    return OK;
}

result cuUserObjectRelease(handle object, unsigned count) {
    (void)object, (void)count;
    owned_count--;
    owned[owned_count].gone(owned[owned_count].data);
    return OK;
}

result cuGraphRetainUserObject(handle graph, handle object, unsigned count, unsigned flags) {
    (void)object;
    return graph == &anything && count == 1 && flags == 1 ? OK : INVALID_VALUE;
}

result cuThreadExchangeStreamCaptureMode(int *mode) {
    static _Thread_local int of_thread;
    int before = of_thread;
    of_thread = *mode;
    *mode = before;
    return OK;
}

result cuFuncLoad(handle function) {
    (void)function;
    return sticky;
}

result cuFuncSetAttribute(handle function, int attribute, int value) {
    (void)function, (void)attribute, (void)value;
    return sticky;
}

/* Of its twelve parameters none matters: no kernel reads the map. */
result cuTensorMapEncodeTiled(void *map) {
    (void)map;
    return sticky;
}

/* --- contexts ---------------------------------------------------------------------------- */

result cuDevicePrimaryCtxRetain(handle *retained, int device) {
    (void)device;
    *retained = &context;
    return OK;
}

result cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    return OK;
}

result cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    (void)device;
    *flags = 0;
    *active = 0;
    return OK;
}

result cuCtxGetCurrent(handle *out) {
    *out = depth ? current[depth - 1] : NULL;
    return OK;
}

result cuCtxSetCurrent(handle context) {
    current[depth ? depth - 1 : depth++] = context;
    return sticky;
}

result cuCtxPushCurrent_v2(handle pushed) {
    if (depth == CONTEXTS)
        return INVALID_VALUE;
    current[depth++] = pushed;
    return OK;
}

result cuCtxPopCurrent_v2(handle *popped) {
    if (depth == 0)
        return INVALID_VALUE;
    depth--;
    if (popped)
        *popped = current[depth];
    return OK;
}

result cuCtxSynchronize(void) {
    return captured ? CAPTURE_UNSUPPORTED : sticky;
}

/* --- modules and launches ---------------------------------------------------------------- */

/* What was done with modules: "m75 " machine code of 7.5 loaded, "p75 " PTX, "u " one unloaded. */
char fake_modules[1 << 12];

static void note_module(char what, unsigned architecture) {
    static size_t length;
    char number[16] = "";
    if (architecture)
        snprintf(number, sizeof number, "%u", architecture);
    if (length + 32 < sizeof fake_modules)
        length += (size_t)sprintf(fake_modules + length, "%c%s ", what, number);
}

typedef struct part {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t unknown[3], architecture;
} part;

enum { PTX_PART = 1, MACHINE_CODE_PART = 2, NO_BINARY = 209 };

static int part_fits(const part *part) {
    unsigned capability = (unsigned)setting("FAKE_CAPABILITY", 90);
    return part->architecture <= capability &&
           (part->kind == PTX_PART || part->architecture / 10 == capability / 10);
}

/* As a driver does it: the newest part of the fatbin that fits the GPU, if there is one. */
result cuModuleLoadData(handle *module, const void *image) {
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t bytes;
    } header;
    part next = {0}, best = {0};
    memcpy(&header, image, sizeof header);
    if (header.magic != 0xBA55ED50)
        return INVALID_VALUE;
    for (uint64_t at = 0; at < header.bytes; at += next.header_bytes + next.bytes) {
        memcpy(&next, (const char *)image + header.header_bytes + at, sizeof next);
        if (part_fits(&next) && next.architecture > best.architecture)
            best = next;
    }
    result code = best.kind ? (result)setting("FAKE_MODULE", OK) : NO_BINARY;
    if (code == OK && best.kind == MACHINE_CODE_PART)
        code = (result)setting("FAKE_MACHINE_CODE", OK);
    if (sticky || code != OK)
        return sticky ? sticky : code;
    note_module(best.kind == PTX_PART ? 'p' : 'm', best.architecture);
    *module = &anything;
    return OK;
}

result cuModuleUnload(handle module) {
    note_module('u', 0);
    return module == &anything ? sticky : INVALID_VALUE;
}

result cuModuleGetFunction(handle *function, handle module, const char *name) {
    (void)module;
    *function = &anything;
    return name[0] ? sticky : NOT_FOUND;
}

result cuLaunchKernel(handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                      unsigned by, unsigned bz, unsigned shared, handle stream, void **arguments,
                      void **extra) {
    (void)function, (void)shared, (void)arguments, (void)extra;
    note('l', stream);
    if (sticky)
        return sticky;
    if (!gx || !gy || !gz || !bx || !by || !bz || bx > 1024)
        return INVALID_VALUE;
    result code = (result)setting("FAKE_LAUNCH", OK);
    if (code == OK)
        sticky = (result)setting("FAKE_FAULT", OK); /* found by whoever waits for the kernel */
    else if (code == ILLEGAL_ADDRESS || code == LAUNCH_FAILED)
        sticky = code;
    return code;
}

/* --- memory ------------------------------------------------------------------------------ */

result cuMemGetInfo_v2(size_t *available, size_t *total) {
    cuDeviceTotalMem_v2(total, 0);
    *available = *total - used;
    return sticky;
}

result cuMemPoolCreate(handle *pool, const void *properties) {
    (void)properties;
    *pool = &anything;
    return OK;
}

result cuMemPoolDestroy(handle pool) {
    (void)pool;
    return OK;
}

result cuMemPoolSetAttribute(handle pool, int attribute, void *value) {
    (void)pool, (void)attribute, (void)value;
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

/* Where the block that holds `address` stands in the list, or -1. */
static int block_of(pointer address) {
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].first && address >= blocks[i].first &&
            address < blocks[i].first + blocks[i].bytes)
            return i;
    return -1;
}

static result take_block(pointer *address, size_t bytes, size_t limit, handle stream) {
    if (sticky || bytes == 0)
        return sticky ? sticky : INVALID_VALUE;
    pthread_mutex_lock(&lock);
    result code = OUT_OF_MEMORY;
    for (int i = 0; i < BLOCKS && used + bytes <= limit; i++) {
        if (blocks[i].first)
            continue;
        *address = (pointer)aligned_alloc(256, (bytes + 255) / 256 * 256);
        blocks[i].first = *address;
        blocks[i].bytes = bytes;
        blocks[i].is_node = captured && stream == captured;
        used += bytes;
        code = OK;
        break;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* FAKE_POOL: how far the pool can grow; a real one grows by 32 MiB at the least. */
result cuMemAllocFromPoolAsync(pointer *address, size_t bytes, handle pool, handle stream) {
    size_t memory = (size_t)setting("FAKE_MEMORY", 1 << 30);
    size_t limit = (size_t)setting("FAKE_POOL", 1 << 30);
    (void)pool;
    return take_block(address, bytes, limit < memory ? limit : memory, stream);
}

result cuMemAlloc_v2(pointer *address, size_t bytes) {
    if (captured)
        return CAPTURE_IMPLICIT;
    return take_block(address, bytes, (size_t)setting("FAKE_MEMORY", 1 << 30), 0);
}

result cuMemFreeAsync(pointer address, handle stream) {
    if (captured && is_blocking && is_default(stream))
        return CAPTURE_IMPLICIT;
    pthread_mutex_lock(&lock);
    int block = block_of(address);
    if (block >= 0 && blocks[block].is_node != (captured && stream == captured))
        block = -1;
    if (block >= 0) {
        note('f', stream);
        free((void *)blocks[block].first);
        used -= blocks[block].bytes;
        blocks[block].first = 0;
    }
    pthread_mutex_unlock(&lock);
    return block < 0 ? INVALID_VALUE : sticky;
}

result cuMemsetD8Async(pointer to, unsigned char value, size_t bytes, handle stream) {
    note('z', stream);
    if (!sticky)
        memset((void *)to, value, bytes);
    return sticky;
}

result cuMemcpyHtoDAsync_v2(pointer to, const void *from, size_t bytes, handle stream) {
    (void)stream;
    if (!sticky)
        memcpy((void *)to, from, bytes);
    return sticky;
}

result cuMemcpyDtoHAsync_v2(void *to, pointer from, size_t bytes, handle stream) {
    (void)stream;
    if (!sticky)
        memcpy(to, (const void *)from, bytes);
    return sticky;
}

result cuMemcpyDtoDAsync_v2(pointer to, pointer from, size_t bytes, handle stream) {
    (void)stream;
    if (!sticky)
        memmove((void *)to, (const void *)from, bytes);
    return sticky;
}

result cuMemcpyPeerAsync(pointer to, handle there, pointer from, handle here, size_t bytes,
                         handle stream) {
    (void)there, (void)here;
    return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

result cuPointerGetAttributes(unsigned count, const int *attributes, void **values,
                              pointer address) {
    pthread_mutex_lock(&lock);
    int held = block_of(address) >= 0;
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < count; i++) {
        if (attributes[i] == MEMORY_TYPE)
            *(unsigned *)values[i] = held ? DEVICE_MEMORY : 0;
        else if (attributes[i] == DEVICE_POINTER)
            *(pointer *)values[i] = held ? address : 0;
        else if (attributes[i] == DEVICE_ORDINAL)
            *(int *)values[i] = held ? 0 : -2;
    }
    return sticky;
}

/* --- streams and events ------------------------------------------------------------------ */

result cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags) {
    (void)memory, (void)bytes, (void)flags;
    return sticky;
}

result cuMemHostUnregister(void *memory) {
    (void)memory;
    return sticky;
}

/* Every stream is over at once, so one handle does for all. */
result cuStreamCreate(handle *stream, unsigned flags) {
    static char one;
    (void)flags;
    *stream = &one;
    return sticky;
}

result cuStreamDestroy_v2(handle stream) {
    (void)stream;
    return sticky;
}

result cuStreamSynchronize(handle stream) {
    return captured && stream == captured ? CAPTURE_UNSUPPORTED : sticky;
}

result cuStreamWaitEvent(handle stream, handle event, unsigned flags) {
    (void)event, (void)flags;
    note('w', stream);
    return sticky;
}

result cuEventCreate(handle *event, unsigned flags) {
    (void)flags;
    *event = &anything;
    return sticky;
}

result cuEventDestroy_v2(handle event) {
    (void)event;
    return sticky;
}

result cuEventRecord(handle event, handle stream) {
    (void)event;
    note('r', stream);
    return sticky;
}

result cuEventSynchronize(handle event) {
    (void)event;
    return sticky;
}

result cuEventElapsedTime_v2(float *milliseconds, handle from, handle to) {
    (void)from, (void)to;
    *milliseconds = 0.0f;
    return sticky;
}
