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

/* The first len bytes of text, in quotes where nginx needs them. */
void write_part(FILE *f, const char *text, size_t len);

/* Likewise; absolute, because nginx would read it from its own prefix. */
void write_path(FILE *f, const char *path);

/* The same with something in front, inside of the quotes. */
void write_word_after(FILE *f, const char *before, const char *text);
void write_path_after(FILE *f, const char *before, const char *path);

#endif /* TOOLS_QUOTED_H */
