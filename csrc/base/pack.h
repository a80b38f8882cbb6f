/* Stretches of a strided host array, element by element in C order, to contiguous memory and back.
 */
#ifndef GK_PACK_H
#define GK_PACK_H

#include "base/array.h"

/* Elements [first, first + count) of `array` to `packed`, in native byte order. */
void gk_pack(void *packed, const gk_array *array, size_t first, size_t count);

/* The same, written past the caches where it lies side by side: lines that are written whole have
   not to be read before, and push out nothing that somebody reads. */
void gk_pack_past_caches(void *packed, const gk_array *array, size_t first, size_t count);

/* And from `packed` to those elements of `array`. */
void gk_unpack(const gk_array *array, const void *packed, size_t first, size_t count);
void gk_unpack_past_caches(const gk_array *array, const void *packed, size_t first, size_t count);

#endif
