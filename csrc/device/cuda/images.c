#include "device/cuda/images.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The build tells what it was made with. */
#ifndef GK_ARCHITECTURES
#error "define GK_ARCHITECTURES, GK_MACHINE_CODE_FOR and GK_PTX_OF, which list architectures"
#endif

const char gk_built_for[] = GK_ARCHITECTURES;
const char gk_built_machine_code[] = GK_MACHINE_CODE_FOR;
const char gk_built_ptx[] = GK_PTX_OF;

/* What is embedded: a fatbin under gk_machine_<family>, and under gk_ptx_<architecture>_<family> an
   index of the family's kernels with their images behind it. */
#define GK_MACHINE_CODE(family, architecture, exact)                                               \
    extern const unsigned char gk_machine_##family[];
#define GK_PTX(family, architecture) extern const unsigned char gk_ptx_##architecture##_##family[];
#include "gk_images.h"
#undef GK_MACHINE_CODE
#undef GK_PTX

typedef struct image_set {
    const char *family;
    const unsigned char *start;
    int architecture;
    bool is_ptx;
    bool exact; /* machine code of "90a", which is for 9.0 alone */
} image_set;

static const image_set sets[] = {
#define GK_MACHINE_CODE(family, architecture, exact)                                               \
    {#family, gk_machine_##family, architecture, false, exact},
#define GK_PTX(family, architecture)                                                               \
    {#family, gk_ptx_##architecture##_##family, architecture, true, false},
#include "gk_images.h"
};

enum { SETS = sizeof sets / sizeof sets[0] };

const void *gk_machine_code(const char *family) {
    for (int i = 0; i < SETS; i++)
        if (!sets[i].is_ptx && strcmp(sets[i].family, family) == 0)
            return sets[i].start;
    return NULL;
}

/* PTX goes to every newer GPU, machine code to those of its own major version. */
static bool reaches(const image_set *set, int capability) {
    if (set->exact)
        return set->architecture == capability;
    return set->architecture <= capability &&
           (set->is_ptx || set->architecture / 10 == capability / 10);
}

/* One kernel of an index: where its name and its image stand, counted from the index's start. */
typedef struct index_entry {
    uint32_t name, image;
} index_entry;

typedef struct wanted {
    const unsigned char *start;
    const char *symbol;
} wanted;

static int compare(const void *key, const void *element) {
    const wanted *kernel = key;
    const index_entry *entry = element;
    return strcmp(kernel->symbol, (const char *)kernel->start + entry->name);
}

static const void *find_kernel(const unsigned char *start, const char *symbol) {
    uint32_t count;
    memcpy(&count, start, sizeof count);
    const wanted key = {start, symbol};
    const index_entry *entry =
        bsearch(&key, start + sizeof count, count, sizeof(index_entry), compare);
    return entry ? start + entry->image : NULL;
}

const void *gk_ptx(const char *family, const char *symbol, int capability) {
    const image_set *best = NULL;
    for (int i = 0; i < SETS; i++)
        if (sets[i].is_ptx && strcmp(sets[i].family, family) == 0 &&
            reaches(&sets[i], capability) && (!best || sets[i].architecture > best->architecture))
            best = &sets[i];
    return best ? find_kernel(best->start, symbol) : NULL;
}

bool gk_compiled_exactly(const char *family, int capability) {
    for (int i = 0; i < SETS; i++)
        if (sets[i].exact && strcmp(sets[i].family, family) == 0 && reaches(&sets[i], capability))
            return true;
    return false;
}

int gk_compiled_for(const char *family, int capability, bool ptx_alone) {
    int best = 0;
    for (int i = 0; i < SETS; i++)
        if ((sets[i].is_ptx || !ptx_alone) && strcmp(sets[i].family, family) == 0 &&
            reaches(&sets[i], capability) && sets[i].architecture > best)
            best = sets[i].architecture;
    return best;
}
