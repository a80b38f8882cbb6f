/* The driver itself: its version, its devices and their contexts, modules. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

enum { CONTEXTS = 64, DEVICES = 16, KINDS = 16, PLANTED = 16 };

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
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when capturing"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "a legacy stream and a capturing blocking one"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "driver and kernel module disagree"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t small_lock = PTHREAD_MUTEX_INITIALIZER; /* of counts and planted failures */
result fake_sticky;

void fake_lock(void) {
    pthread_mutex_lock(&lock);
}

void fake_unlock(void) {
    pthread_mutex_unlock(&lock);
}

long long fake_setting(const char *name, long long otherwise) {
    const char *text = getenv(name);
    return text ? atoll(text) : otherwise;
}

void fake_violation(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("the fake driver: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    va_end(arguments);
    fflush(stderr);
    _exit(70);
}

/* NVRTC asks the driver for tables of its own, and can do without. */
result cuGetExportTable(const void **table, const void *which) {
    (void)which;
    *table = NULL;
    return NOT_FOUND;
}

/* --- what lives, and what fails ---------------------------------------------------------- */

static struct {
    const char *kind;
    int live;
} counts[KINDS];

static int *count_of(const char *kind) {
    int i = 0;
    while (i < KINDS - 1 && counts[i].kind && strcmp(counts[i].kind, kind) != 0)
        i++;
    if (!counts[i].kind)
        counts[i].kind = strdup(kind);
    return &counts[i].live;
}

void fake_count(const char *kind, int change) {
    pthread_mutex_lock(&small_lock);
    *count_of(kind) += change;
    pthread_mutex_unlock(&small_lock);
}

int fake_live(const char *kind) {
    pthread_mutex_lock(&small_lock);
    int live = *count_of(kind);
    pthread_mutex_unlock(&small_lock);
    return live;
}

/* FAKE_EXIT: whoever looks at the output of a process can see what it has not given back. */
static void __attribute__((destructor)) tell_at_exit(void) {
    for (int i = 0; i < KINDS && getenv("FAKE_EXIT"); i++)
        if (counts[i].live > 0)
            fprintf(stderr, "the fake driver: %d %s live on\n", counts[i].live, counts[i].kind);
}

static struct {
    char function[64];
    result code;
    int before, times;
} planted[PLANTED];

/* The function fails `times` times with the code, after it has worked `before` times. */
void fake_fail(const char *function, result code, int before, int times) {
    pthread_mutex_lock(&small_lock);
    int i = 0;
    while (i < PLANTED - 1 && planted[i].times)
        i++;
    snprintf(planted[i].function, sizeof planted[i].function, "%s", function);
    planted[i].code = code;
    planted[i].before = before;
    planted[i].times = times;
    pthread_mutex_unlock(&small_lock);
}

/* No failure that was planted is left. */
void fake_heal(void) {
    pthread_mutex_lock(&small_lock);
    memset(planted, 0, sizeof planted);
    pthread_mutex_unlock(&small_lock);
}

result fake_planted(const char *function) {
    result code = OK;
    pthread_mutex_lock(&small_lock);
    for (int i = 0; i < PLANTED && code == OK; i++) {
        if (!planted[i].times || strcmp(planted[i].function, function) != 0)
            continue;
        if (planted[i].before-- > 0)
            continue;
        planted[i].before = 0;
        planted[i].times--;
        code = planted[i].code;
    }
    pthread_mutex_unlock(&small_lock);
    return code;
}

/* --- the driver itself ------------------------------------------------------------------- */

result cuDriverGetVersion(int *version) {
    *version = (int)fake_setting("FAKE_VERSION", 13000);
    return (result)fake_setting("FAKE_VERSION_FAILS", OK);
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
    return (result)fake_setting("FAKE_INIT", OK);
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
    *count = (int)fake_setting("FAKE_DEVICES", 1);
    return OK;
}

result cuDeviceGet(int *device, int ordinal) {
    if (ordinal < 0 || ordinal >= fake_setting("FAKE_DEVICES", 1))
        return INVALID_DEVICE;
    *device = ordinal;
    return OK;
}

result cuDeviceGetName(char *name, int length, int device) {
    FAKE_ENTER();
    snprintf(name, (size_t)length, "Fake GPU %d", device);
    return OK;
}

result cuDeviceGetUuid_v2(char *uuid, int device) {
    memset(uuid, device + 1, 16);
    return OK;
}

result cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    int capability = (int)fake_setting("FAKE_CAPABILITY", 90);
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
        return *value = 49152, OK;
    case 97: /* that a kernel may ask for */
        return *value = (int)fake_setting("FAKE_SHARED", 49152), OK;
    case 39: /* threads of a multiprocessor */
        return *value = 2048, OK;
    case 10: /* lanes of a warp */
        return *value = 32, OK;
    case 16: /* multiprocessors */
        return *value = (int)fake_setting("FAKE_MULTIPROCESSORS", 4), OK;
    case 38: /* bytes of L2 cache */
        return *value = (int)fake_setting("FAKE_CACHE", 1 << 20), OK;
    case 75:
        return *value = capability / 10, OK;
    case 76:
        return *value = capability % 10, OK;
    case 19: /* mapping of host memory */
        return *value = (int)fake_setting("FAKE_MAPS", 1), OK;
    case 91: /* at the host's own addresses */
        return *value = (int)fake_setting("FAKE_HOST_POINTERS", 1), OK;
    case 41:  /* unified addressing */
    case 115: /* memory pools */
        return *value = 1, OK;
    default:
        return *value = 0, OK;
    }
}

result cuDeviceTotalMem_v2(size_t *bytes, int device) {
    (void)device;
    *bytes = (size_t)fake_setting("FAKE_MEMORY", 1 << 30);
    return OK;
}

/* --- contexts ---------------------------------------------------------------------------- */

static int contexts[DEVICES]; /* how often the primary context of each device is held */
static _Thread_local handle current[CONTEXTS];
static _Thread_local int depth;

handle fake_context(const char *function) {
    if (!depth || !current[depth - 1])
        fake_violation("%s: no context is current", function);
    return current[depth - 1];
}

int fake_device_of(handle context) {
    return (int)((int *)context - contexts);
}

result cuDevicePrimaryCtxRetain(handle *retained, int device) {
    FAKE_ENTER();
    contexts[device]++;
    *retained = &contexts[device];
    return OK;
}

result cuDevicePrimaryCtxRelease_v2(int device) {
    if (contexts[device]-- == 0)
        fake_violation("a context is released that nobody holds");
    return OK;
}

result cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    *flags = 0;
    *active = contexts[device] > 0;
    return OK;
}

result cuCtxGetCurrent(handle *out) {
    *out = depth ? current[depth - 1] : NULL;
    return OK;
}

result cuCtxSetCurrent(handle context) {
    FAKE_ENTER();
    current[depth ? depth - 1 : depth++] = context;
    return fake_sticky;
}

result cuCtxPushCurrent_v2(handle pushed) {
    if (depth == CONTEXTS)
        fake_violation("contexts are pushed and not popped");
    current[depth++] = pushed;
    return OK;
}

result cuCtxPopCurrent_v2(handle *popped) {
    if (depth == 0)
        fake_violation("a context is popped that was not pushed");
    depth--;
    if (popped)
        *popped = current[depth];
    return OK;
}

/* --- modules ----------------------------------------------------------------------------- */

/* What was done with modules: "m75 " machine code of 7.5 loaded, "p75 " PTX, "c " a user's own, "u
   " one unloaded. */
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
    unsigned capability = (unsigned)fake_setting("FAKE_CAPABILITY", 90);
    return part->architecture <= capability &&
           (part->kind == PTX_PART || part->architecture / 10 == capability / 10);
}

static result load_module(handle *module, char kind, unsigned architecture) {
    note_module(kind, architecture);
    *module = malloc(1);
    fake_count("modules", 1);
    return OK;
}

/* A cubin, which is an ELF file, or PTX: what users compile. */
static int is_of_a_user(const char *image) {
    return memcmp(image,
                  "\x7f"
                  "ELF",
                  4) == 0 ||
           memcmp(image, ".version", 8) == 0;
}

/* As a driver does it: the newest part of the fatbin that fits the GPU, if there is one. */
result cuModuleLoadData(handle *module, const void *image) {
    FAKE_ENTER();
    if (is_of_a_user(image)) {
        result failed = fake_sticky ? fake_sticky : (result)fake_setting("FAKE_MODULE", OK);
        return failed ? failed : load_module(module, 'c', 0);
    }
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
    result code = best.kind ? (result)fake_setting("FAKE_MODULE", OK) : NO_BINARY;
    if (code == OK && best.kind == MACHINE_CODE_PART)
        code = (result)fake_setting("FAKE_MACHINE_CODE", OK);
    if (fake_sticky || code != OK)
        return fake_sticky ? fake_sticky : code;
    return load_module(module, best.kind == PTX_PART ? 'p' : 'm', best.architecture);
}

result cuModuleUnload(handle module) {
    note_module('u', 0);
    fake_lock();
    fake_drop_variables(module);
    fake_unlock();
    free(module);
    fake_count("modules", -1);
    return fake_sticky;
}
