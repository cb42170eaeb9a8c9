/*
 * env_archive.h - extracts an archive (tar, plain or compressed, or zip) into a
 *                 directory only.
 *
 * Owner    All memory is the caller's.
 * Thread   any; several archives at once.
 * Units    bytes: of the files in an archive, and 4096 for each entry.
 * Errors   INVALID_ARG: not an archive, or an entry that leaves the directory
 *          or is not a file, directory or link, or too many bytes; INTERNAL:
 *          the system's error.  The text names archive and entry.
 * Route    environment -> [env archive] -> libarchive
 */

#ifndef PY_ENV_ARCHIVE_H
#define PY_ENV_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* Extracts file.  directory is an absolute path without links.  After an error
   it holds what was extracted so far. */
BK_CHECK TRITONSERVER_Error *py_archive_extract(const char *file,
    const char *directory, uint64_t bytes_max);

/* Whether an entry of that name stays in the directory. */
bool py_archive_name_stays(const char *name);

/* Whether a symbolic link of that name and target stays in the directory.  This
   is certain only if ".." comes first in its target: after other names, which
   may be links, it can lead anywhere. */
bool py_archive_link_stays(const char *name, const char *target);

#endif /* PY_ENV_ARCHIVE_H */
