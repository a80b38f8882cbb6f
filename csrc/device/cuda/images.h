/* The compiled kernels that the build put into the extension: machine code a .cu file, for one or
   more architectures, and PTX a kernel. */
#ifndef GK_CUDA_IMAGES_H
#define GK_CUDA_IMAGES_H

#include <stdbool.h>

/* Lists of architectures with spaces between them, as "75 90a": all, and those that every file has
   machine code for and PTX of. */
extern const char gk_built_for[], gk_built_machine_code[], gk_built_ptx[];

/* The fatbin of a .cu file; NULL where the build made no machine code of it. */
const void *gk_machine_code(const char *family);

/* The kernel's PTX of the newest architecture that a GPU of this capability can take, or NULL. */
const void *gk_ptx(const char *family, const char *symbol, int capability);

/* Whether there is machine code that is for this capability alone, as that of "90a" is for 9.0. */
bool gk_compiled_exactly(const char *family, int capability);

/* The capability that the code was compiled for which such a GPU runs, of machine code and PTX or
   of PTX alone; 0 where there is none. */
int gk_compiled_for(const char *family, int capability, bool ptx_alone);

#endif
