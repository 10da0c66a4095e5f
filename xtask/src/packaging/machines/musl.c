// What LLVM's unwinder, as Debian builds it, needs of glibc: `fprintf` with a level of checks that musl does not make.

#include <stdarg.h>
#include <stdio.h>

int __fprintf_chk(FILE *file, int checks, const char *format, ...) {
    (void)checks;
    va_list values;
    va_start(values, format);
    const int written = vfprintf(file, format, values);
    va_end(values);
    return written;
}
