/*
 * mapped_files.h - which memory of this process is a part of which file, for
 *                  processes that map the same.
 *
 * Owner    The descriptor stays that of the thread that adds a mapping, who
 *          removes it before the memory is unmapped.
 * Thread   any.
 * Units    bytes.
 * Errors   add gives 0 where the table is full: the memory has no file then.
 * Route    wire's arenas -> [mapped files] <- a backend with processes
 *
 * The table is global, as memory is.
 */

#ifndef INF_BASE_OS_MAPPED_FILES_H
#define INF_BASE_OS_MAPPED_FILES_H

#include <stdbool.h>
#include <stdint.h>

#define INF_MAPPED_FILES_MAX 1024u

typedef struct {
    uint64_t id;        /* of the mapping, never used twice                  */
    int      fd;
    uint64_t offset;    /* in the file                                       */
    uint64_t size;      /* of the file                                       */
} inf_mapped_file_t;

/* A whole file of size bytes, mapped at base.  The id, or 0. */
uint64_t inf_mapped_file_add(const void *base, uint64_t size, int fd);

/* id 0 does nothing. */
void inf_mapped_file_remove(uint64_t id);

/* false: these bytes lie in no file. */
bool inf_mapped_file_find(const void *data, uint64_t len,
    inf_mapped_file_t *out);

/* Whether a mapping of that id was removed, or never added. */
bool inf_mapped_file_ended(uint64_t id);

#endif /* INF_BASE_OS_MAPPED_FILES_H */
