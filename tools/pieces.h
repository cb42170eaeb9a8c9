/*
 * pieces.h - the paths of nginx, module, core and backends.
 *
 * Owner    none.
 * Thread   one.
 * Units    none.
 * Errors   die.
 * Route    program's own path, environment -> [pieces] -> nginx.conf
 */

#ifndef TOOLS_PIECES_H
#define TOOLS_PIECES_H

#include <limits.h>

typedef struct {
    char nginx[PATH_MAX];
    char module[PATH_MAX];
    char core[PATH_MAX];
    char backends[PATH_MAX];
} pieces_t;

/* Finds the files beside this program, or where `make install` puts them. */
void pieces_find(pieces_t *p);

#endif /* TOOLS_PIECES_H */
