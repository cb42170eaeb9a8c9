/*
 * quoted.h - words of nginx.conf.
 *
 * Owner    none.
 * Thread   one.
 * Units    none.
 * Errors   the stream's.
 * Route    nginx.conf, servers -> [quoted]
 */

#ifndef TOOLS_QUOTED_H
#define TOOLS_QUOTED_H

#include <stdio.h>

/* In quotes; text has no control characters. */
void write_word(FILE *f, const char *text);

/* Likewise; absolute, because nginx would read it from its own prefix. */
void write_path(FILE *f, const char *path);

#endif /* TOOLS_QUOTED_H */
