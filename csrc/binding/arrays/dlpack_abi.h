/* DLPack 1: the binary interface by which array libraries of one process lend memory to one
   another. Only what is used of it; the layouts are the standard's. */
#ifndef GK_DLPACK_ABI_H
#define GK_DLPACK_ABI_H

#include <stdint.h>

enum { GK_DL_MAJOR = 1, GK_DL_MINOR = 0 };

enum { GK_DL_CPU = 1, GK_DL_CUDA = 2, GK_DL_CUDA_MANAGED = 13 };

enum { GK_DL_INT = 0, GK_DL_UINT = 1, GK_DL_FLOAT = 2, GK_DL_BFLOAT = 4, GK_DL_BOOL = 6 };

enum { GK_DL_READ_ONLY = 1, GK_DL_IS_COPIED = 2 }; /* flags */

typedef struct gk_dl_device {
    int32_t kind, ordinal;
} gk_dl_device;

typedef struct gk_dl_tensor {
    void *data;
    gk_dl_device device;
    int32_t ndim;
    uint8_t code, bits; /* of the dtype */
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: C order */
    uint64_t byte_offset;
} gk_dl_tensor;

/* In a capsule named "dltensor". */
typedef struct gk_dl_managed {
    gk_dl_tensor tensor;
    void *context;
    void (*deleter)(struct gk_dl_managed *); /* or NULL */
} gk_dl_managed;

/* In a capsule named "dltensor_versioned". Of another major version only the deleter is known. */
typedef struct gk_dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct gk_dl_versioned *); /* or NULL */
    uint64_t flags;
    gk_dl_tensor tensor;
} gk_dl_versioned;

/* The table in the capsule __dlpack_c_exchange_api__ of a type, named "dlpack_exchange_api": its
   tensors with no Python in between. Each function is 0 or -1 with an exception raised. */
typedef struct gk_dl_exchange {
    uint32_t major, minor;
    struct gk_dl_exchange *older;
    int (*allocate)(gk_dl_tensor *, gk_dl_versioned **, void *,
                    void (*)(void *, const char *, const char *));
    int (*lend)(void *object, gk_dl_versioned **);
    int (*take)(gk_dl_versioned *, void **object);
    int (*show)(void *object, gk_dl_tensor *); /* as long as the object lives; or NULL */
    int (*current_stream)(int32_t kind, int32_t ordinal, void **stream);
} gk_dl_exchange;

#endif
