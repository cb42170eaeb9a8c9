#include "die.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void
die(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fputs("inference-server: ", stderr);
    vfprintf(stderr, fmt, args);
    fputs("\n(--help lists the options)\n", stderr);
    va_end(args);
    exit(1);
}
