/*
 * extraction.h - archives extracted into private directories, each once for
 *                all that use it.
 *
 * Owner    The set belongs to the backend.  A user has a directory from take
 *          to give; the last give removes it.
 * Thread   any: a thread waits for an archive that another one extracts.
 * Units    bytes.
 * Errors   those of py_archive_extract; INTERNAL: the system's reason.
 * Route    environment -> [extraction] -> env archive
 *
 * A process that is killed leaves its directories; the next set that is made
 * in the same place removes them: nobody holds their lock (flock).
 */

#ifndef PY_EXTRACTION_H
#define PY_EXTRACTION_H

#include <stdint.h>

#include "common/error.h"

typedef struct py_extractions_s py_extractions_t;
typedef struct py_extraction_s py_extraction_t;

/* place: NULL: TMPDIR, or /tmp.  bytes_max: of the files in an archive. */
BK_CHECK TRITONSERVER_Error *py_extractions_new(const char *place,
    uint64_t bytes_max, py_extractions_t **out);

/* Removes directories there that nobody has locked and that are older than so
 * many seconds: a younger one may not have its lock yet. */
void py_extractions_clean(const char *place, long older_s);

/* Every directory has been given back; set may be NULL. */
void py_extractions_free(py_extractions_t *set);

/* Of the archive as it is now: one whose size or time has changed is
 * extracted again, and users of the old directory keep it. */
BK_CHECK TRITONSERVER_Error *py_extractions_take(py_extractions_t *set,
    const char *file, py_extraction_t **out);
void py_extractions_give(py_extractions_t *set, py_extraction_t *x);

/* An absolute path without links. */
const char *py_extraction_directory(const py_extraction_t *x);

#endif /* PY_EXTRACTION_H */
