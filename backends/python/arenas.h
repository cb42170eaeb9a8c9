/*
 * arenas.h - finds the file of the server's memory that holds an input, for an
 *            interpreter that maps it.
 *
 * Owner    An instance has one table for each life of its interpreter.
 * Thread   the thread with the instance's consumer role.
 * Units    bytes.
 * Errors   false: memory without a file, or an unknown server; the input is
 *          copied then.
 * Route    messages -> [arenas] -> socket -> interpreter
 */

#ifndef PY_ARENAS_H
#define PY_ARENAS_H

#include <stdbool.h>
#include <stdint.h>

#define PY_ARENAS_MAX 256u

typedef struct py_arenas_s {
    uint64_t sent[PY_ARENAS_MAX];      /* ids known to the interpreter      */
    uint64_t used[PY_ARENAS_MAX];
    uint64_t clock;
} py_arenas_t;

typedef struct {
    uint64_t id;
    uint64_t offset;
} py_arena_place_t;

/* Finds the file and offset of data; sends the file's descriptor over socket_fd
   the first time. */
bool py_arenas_find(py_arenas_t *a, int socket_fd, const void *data,
    uint64_t len_bytes, py_arena_place_t *place);

#endif /* PY_ARENAS_H */
