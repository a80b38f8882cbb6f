#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* A limit of a container's, by the two versions of control groups. Where there is none the file is
   missing, or says "max", or a number that no machine reaches. */
static const char *const limits[] = {
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
};

static size_t pages(int which) {
    long count = sysconf(which), bytes = sysconf(_SC_PAGESIZE);
    return count > 0 && bytes > 0 ? (size_t)count * (size_t)bytes : 0;
}

size_t gk_memory_total(void) {
    size_t total = pages(_SC_PHYS_PAGES);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        unsigned long long limit;
        FILE *file = fopen(limits[i], "r");
        if (file && fscanf(file, "%llu", &limit) == 1 && limit < total)
            total = (size_t)limit;
        if (file)
            (void)fclose(file);
    }
    return total;
}

size_t gk_memory_most(void) {
    struct sysinfo machine;
    size_t swap = 0;
    if (sysinfo(&machine) == 0)
        swap = (size_t)machine.totalswap * machine.mem_unit;
    return gk_memory_total() + swap;
}

size_t gk_memory_free(void) {
    return pages(_SC_AVPHYS_PAGES);
}

/* No such way to change the mask of signals: the kernel says so once it has read the new one. */
bool gk_memory_is_readable(uintptr_t address) {
    const void *aligned = (const void *)(address & ~(uintptr_t)7);
    return syscall(SYS_rt_sigprocmask, -1, aligned, NULL, 8) == 0 || errno != EFAULT;
}
