/* What g++ -fsanitize=alignment,bounds,null,integer-divide-by-zero,return calls from a kernel. On a
   GPU each of these is a fault, or a wrong value, so here it ends the launch with the line to
   blame; no sanitizer's library is needed. Builds that have that library leave this file empty. */
#include "block.h"

/* The records that gcc and clang describe a check with. */
typedef struct source {
    const char *file;
    uint32_t line, column;
} source;

typedef struct type {
    uint16_t kind, info;
    char name[]; /* in quotes */
} type;

typedef struct mismatch {
    source at;
    const type *type;
    unsigned char log_alignment, access;
} mismatch;

typedef struct bounds {
    source at;
    const type *array, *index;
} bounds;

typedef struct division {
    source at;
    const type *type;
} division;

/* A user's kernel calls these by names of their own, also where a sanitizer's library is there. */
#define GK_USERS(name)     gk_sim___ubsan_handle_##name
#define GK_EXTENSION(name) __ubsan_handle_##name

GK_SIM_SHARED void GK_USERS(type_mismatch_v1)(const mismatch *, uintptr_t pointer);
GK_SIM_SHARED void GK_USERS(out_of_bounds)(const bounds *, uintptr_t index);
GK_SIM_SHARED void GK_USERS(divrem_overflow)(const division *, uintptr_t, uintptr_t);
GK_SIM_SHARED void GK_USERS(missing_return)(const source *);

void GK_USERS(type_mismatch_v1)(const mismatch *data, uintptr_t pointer) {
    static const char *const accesses[] = {"load", "store"};
    const char *access = data->access < 2 ? accesses[data->access] : "access";
    if (!pointer)
        gk_sim_fault(data->at.file, (int)data->at.line, "%s of %s through a null pointer", access,
                     data->type->name);
    gk_sim_fault(data->at.file, (int)data->at.line,
                 "misaligned %s of %s at %p, which is not a multiple of %u", access,
                 data->type->name, (void *)pointer, 1u << data->log_alignment);
}

void GK_USERS(out_of_bounds)(const bounds *data, uintptr_t index) {
    gk_sim_fault(data->at.file, (int)data->at.line, "index %lld is out of bounds of %s",
                 (long long)index, data->array->name);
}

void GK_USERS(divrem_overflow)(const division *data, uintptr_t left, uintptr_t right) {
    (void)left, (void)right;
    gk_sim_fault(data->at.file, (int)data->at.line, "an integer division by zero");
}

void GK_USERS(missing_return)(const source *at) {
    gk_sim_fault(at->file, (int)at->line, "the end of a function that has to return a value");
}

#if !defined(GK_SIM_ASAN) && !defined(GK_SIM_UBSAN)

GK_SIM_HIDDEN void GK_EXTENSION(type_mismatch_v1)(const mismatch *, uintptr_t pointer);
GK_SIM_HIDDEN void GK_EXTENSION(out_of_bounds)(const bounds *, uintptr_t index);
GK_SIM_HIDDEN void GK_EXTENSION(divrem_overflow)(const division *, uintptr_t, uintptr_t);
GK_SIM_HIDDEN void GK_EXTENSION(missing_return)(const source *);

void GK_EXTENSION(type_mismatch_v1)(const mismatch *data, uintptr_t pointer) {
    GK_USERS(type_mismatch_v1)(data, pointer);
}

void GK_EXTENSION(out_of_bounds)(const bounds *data, uintptr_t index) {
    GK_USERS(out_of_bounds)(data, index);
}

void GK_EXTENSION(divrem_overflow)(const division *data, uintptr_t left, uintptr_t right) {
    GK_USERS(divrem_overflow)(data, left, right);
}

void GK_EXTENSION(missing_return)(const source *at) {
    GK_USERS(missing_return)(at);
}

#endif
