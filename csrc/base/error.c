#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

gk_status gk_fail(gk_error *error, gk_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    error->status = status;
    return status;
}

gk_status gk_fail_in(gk_error *error, const char *format, ...) {
    char inner[sizeof error->text];
    memcpy(inner, error->text, sizeof inner);
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    if (used >= 0 && (size_t)used < sizeof error->text)
        snprintf(error->text + used, sizeof error->text - (size_t)used, "%s", inner);
    return error->status;
}
