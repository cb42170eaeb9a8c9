/*
 * extraction.h - archives extracted into private directories, once for all
 *                users.
 *
 * Owner    The backend owns the set.  A user has a directory from take to give;
 *          the last give removes it.
 * Thread   any: a thread waits for an archive being extracted by another one.
 * Units    bytes.
 * Errors   Errors of py_archive_extract; INTERNAL: the system's error.
 * Route    environment -> [extraction] -> env archive
 *
 * A killed process leaves its directories; the next set in the same place
 * removes them, because their lock (flock) is free.
 */

#ifndef PY_EXTRACTION_H
#define PY_EXTRACTION_H

#include <stdint.h>

#include "common/error.h"

typedef struct py_extractions_s py_extractions_t;
typedef struct py_extraction_s py_extraction_t;

/* Creates a set.  place NULL: TMPDIR, or /tmp.  bytes_max: limit of an
   archive's files. */
BK_CHECK TRITONSERVER_Error *py_extractions_new(const char *place,
    uint64_t bytes_max, py_extractions_t **out);

/* Removes unlocked directories in place that are older than older_s seconds: a
   younger one may not be locked yet. */
void py_extractions_clean(const char *place, long older_s);

/* Frees the set, which may be NULL; all directories were given back. */
void py_extractions_free(py_extractions_t *set);

/* Takes the directory of the archive in its present state: a changed one is
   extracted again, and users of the old directory keep that. */
BK_CHECK TRITONSERVER_Error *py_extractions_take(py_extractions_t *set,
    const char *file, py_extraction_t **out);
void py_extractions_give(py_extractions_t *set, py_extraction_t *x);

/* The directory's absolute path without links. */
const char *py_extraction_directory(const py_extraction_t *x);

#endif /* PY_EXTRACTION_H */
