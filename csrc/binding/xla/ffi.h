/* What XLA hands a foreign function, and what it asks of one: as much of its binary interface, in
   version 0.1 and later ones that extend it, as is needed here. Names are ours, layouts are XLA's.
 */
#ifndef GK_XLA_FFI_H
#define GK_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

enum { GK_XLA_MAJOR = 0, GK_XLA_MINOR = 1 };

/* Structures begin with their size, by which a caller's older or newer layout is told. */
typedef struct gk_xla_extension {
    size_t bytes;
    int kind;
    struct gk_xla_extension *next;
} gk_xla_extension;

typedef struct gk_xla_version {
    size_t bytes;
    gk_xla_extension *extensions;
    int major, minor;
} gk_xla_version;

/* The question what a function is, in place of a call. */
enum { GK_XLA_METADATA = 1 };
typedef struct gk_xla_metadata {
    size_t bytes;
    gk_xla_version version;
    uint32_t traits;
} gk_xla_metadata;
typedef struct gk_xla_metadata_extension {
    gk_xla_extension base;
    gk_xla_metadata *metadata;
} gk_xla_metadata_extension;

typedef struct gk_xla_error gk_xla_error;     /* XLA's own; NULL: no error */
typedef struct gk_xla_context gk_xla_context; /* XLA's own, of one call */

enum { GK_XLA_INVALID_ARGUMENT = 3, GK_XLA_INTERNAL = 13 };
typedef struct gk_xla_error_arguments {
    size_t bytes;
    gk_xla_extension *extensions;
    const char *message;
    int code;
} gk_xla_error_arguments;

typedef struct gk_xla_stream_arguments {
    size_t bytes;
    gk_xla_extension *extensions;
    gk_xla_context *context;
    void *stream; /* out: a CUstream */
} gk_xla_stream_arguments;

/* XLA's functions; those in between are not called. */
typedef struct gk_xla_api {
    size_t bytes;
    gk_xla_extension *extensions;
    gk_xla_version version;
    const void *internal;
    gk_xla_error *(*error_create)(gk_xla_error_arguments *);
    void (*error_message)(void *);
    void (*error_destroy)(void *);
    gk_xla_error *(*handler_register)(void *);
    gk_xla_error *(*stream_get)(gk_xla_stream_arguments *);
} gk_xla_api;

/* Of its enumeration of dtypes, those that there is a gk_dtype for. */
enum {
    GK_XLA_PRED = 1,
    GK_XLA_S8,
    GK_XLA_S16,
    GK_XLA_S32,
    GK_XLA_S64,
    GK_XLA_U8,
    GK_XLA_U16,
    GK_XLA_U32,
    GK_XLA_U64,
    GK_XLA_F16,
    GK_XLA_F32,
    GK_XLA_F64,
    GK_XLA_BF16 = 16,
};

enum { GK_XLA_BUFFER = 1 };
typedef struct gk_xla_buffer {
    size_t bytes;
    gk_xla_extension *extensions;
    int dtype;
    void *data;
    int64_t rank;
    int64_t *lengths;
} gk_xla_buffer;

/* Arguments, and results. */
typedef struct gk_xla_buffers {
    size_t bytes;
    gk_xla_extension *extensions;
    int64_t count;
    int *kinds;
    void **buffers;
} gk_xla_buffers;

enum { GK_XLA_SCALAR = 3 };
typedef struct gk_xla_text {
    const char *text;
    size_t length;
} gk_xla_text;
typedef struct gk_xla_scalar {
    int dtype;
    void *value;
} gk_xla_scalar;
typedef struct gk_xla_attributes {
    size_t bytes;
    gk_xla_extension *extensions;
    int64_t count;
    int *kinds;
    gk_xla_text **names;
    void **values;
} gk_xla_attributes;

enum { GK_XLA_EXECUTE = 3 };
typedef struct gk_xla_frame {
    size_t bytes;
    gk_xla_extension *extensions;
    const gk_xla_api *api;
    gk_xla_context *context;
    int stage;
    gk_xla_buffers arguments, results;
    gk_xla_attributes attributes;
} gk_xla_frame;

#endif
