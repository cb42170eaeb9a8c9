/*
 * quoted.h - writes words of nginx.conf.
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

/* Writes text in quotes; text has no control characters. */
void write_word(FILE *f, const char *text);

/* Writes the first len bytes of text, in quotes if nginx needs them. */
void write_part(FILE *f, const char *text, size_t len);

/* Writes an absolute path, since nginx resolves relative ones from its
   prefix. */
void write_path(FILE *f, const char *path);

/* Likewise with a text before it, inside the quotes. */
void write_word_after(FILE *f, const char *before, const char *text);
void write_path_after(FILE *f, const char *before, const char *path);

#endif /* TOOLS_QUOTED_H */
