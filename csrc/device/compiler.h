/* What a compiler of CUDA C++ is given and what it gives back; plain values. */
#ifndef GK_COMPILER_H
#define GK_COMPILER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct gk_compiler_job {
    const char *library; /* its path, or a name for the loader */
    const char *source;
    const char *name; /* of the source, in messages */
    const char *const *options;
    int option_count;
    const char *const *headers; /* their text, by the name that an #include has */
    const char *const *header_names;
    int header_count;
    const char *const *expressions; /* kernels and variables whose symbols are asked for */
    int expression_count;
    bool (*interrupted)(void *context); /* whether the user wants it to end */
    void *context;
} gk_compiler_job;

typedef struct gk_compiled {
    bool compiled;
    char *image; /* machine code, or PTX for a virtual architecture */
    size_t bytes;
    char *log;      /* what the compiler says, also of a source that it compiles */
    char **symbols; /* of the expressions, in their order */
    int symbol_count;
} gk_compiled;

#endif
