/*
 * mapped_files.h - the files that memory of this process is mapped from, for
 *                  other processes that map the same.
 *
 * Owner    The descriptor belongs to the caller of add, who calls remove
 *          before unmapping the memory.
 * Thread   any.
 * Units    bytes.
 * Errors   add returns 0 if the table is full: the memory then has no file.
 * Route    wire's arenas -> [mapped files] <- a backend with processes
 *
 * The table is global.
 */

#ifndef INF_BASE_OS_MAPPED_FILES_H
#define INF_BASE_OS_MAPPED_FILES_H

#include <stdbool.h>
#include <stdint.h>

#define INF_MAPPED_FILES_MAX 1024u

typedef struct {
    uint64_t id;        /* of the mapping, never reused                      */
    int      fd;
    uint64_t offset;    /* in the file                                       */
    uint64_t size;      /* of the file                                       */
} inf_mapped_file_t;

/* Adds a whole file of size bytes, mapped at base, and returns the id, or 0. */
uint64_t inf_mapped_file_add(const void *base, uint64_t size, int fd);

/* Removes a mapping; id 0 is ignored. */
void inf_mapped_file_remove(uint64_t id);

/* Finds the file of these bytes; false: none. */
bool inf_mapped_file_find(const void *data, uint64_t len,
    inf_mapped_file_t *out);

/* Whether the mapping of that id was removed, or never existed. */
bool inf_mapped_file_ended(uint64_t id);

#endif /* INF_BASE_OS_MAPPED_FILES_H */
