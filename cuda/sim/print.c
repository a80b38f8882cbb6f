/* What users' kernels call of the C library, and what they have printed. */
#define _GNU_SOURCE /* clock_gettime */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/lock.h"
#include "block.h"

enum { MOST_PRINTED = 16 << 20 }; /* bytes; what is printed beyond them is lost */

struct gk_sim_output {
    gk_lock lock;
    char *text;
    size_t used, room;
};

gk_sim_output *gk_sim_output_new(void) {
    gk_sim_output *output = calloc(1, sizeof *output);
    if (!output || gk_lock_init(&output->lock))
        return output;
    free(output);
    return NULL;
}

void gk_sim_output_free(gk_sim_output *output) {
    if (!output)
        return;
    gk_lock_free(&output->lock);
    free(output->text);
    free(output);
}

char *gk_sim_output_take(gk_sim_output *output, size_t *bytes) {
    (void)gk_lock_take(&output->lock);
    char *text = output->text;
    *bytes = output->used;
    output->text = NULL;
    output->used = output->room = 0;
    gk_lock_give(&output->lock);
    return text;
}

/* Room for so many bytes more; under the lock. */
static bool make_room(gk_sim_output *output, size_t bytes) {
    size_t wanted = output->used + bytes;
    if (wanted > MOST_PRINTED)
        return false;
    if (wanted <= output->room)
        return true;
    size_t room = 2 * wanted + 4096;
    char *text = realloc(output->text, room);
    if (!text)
        return false;
    output->text = text;
    output->room = room;
    return true;
}

GK_SIM_SHARED int gk_sim_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int gk_sim_printf(const char *format, ...) {
    gk_sim_output *output = gk_sim_now.worker->user->output;
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    (void)gk_lock_take(&output->lock);
    if (length > 0 && make_room(output, (size_t)length + 1)) {
        vsnprintf(output->text + output->used, (size_t)length + 1, format, again);
        output->used += (size_t)length;
    }
    gk_lock_give(&output->lock);
    va_end(again);
    va_end(arguments);
    return length;
}

/* Nanoseconds stand for the cycles of a clock of 1 GHz. */
GK_SIM_SHARED long gk_sim_clock(void);
long gk_sim_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

GK_SIM_SHARED void gk_sim___assertfail(const char *condition, const char *file, unsigned line,
                                       const char *function, size_t size);
void gk_sim___assertfail(const char *condition, const char *file, unsigned line,
                         const char *function, size_t size) {
    (void)function, (void)size;
    gk_sim_fault(file, (int)line, "assert(%s) does not hold", condition);
}
