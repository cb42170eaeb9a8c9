/*
 * env_archive.h - extracts an archive (tar, plain or compressed, or zip) into
 *                 a directory, and nowhere else.
 *
 * Owner    All memory is the caller's.
 * Thread   any; several archives at once.
 * Units    bytes: of the files in an archive, and 4096 for each entry.
 * Errors   INVALID_ARG: not an archive, or an entry that leaves the directory
 *          or is no file, directory or link, or more bytes than permitted;
 *          INTERNAL: the system's reason.
 *          Each names archive and entry.
 * Route    environment -> [env archive] -> libarchive
 */

#ifndef PY_ENV_ARCHIVE_H
#define PY_ENV_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

/* directory is an absolute path without links.  After an error it holds what
 * has been extracted until then. */
BK_CHECK TRITONSERVER_Error *py_archive_extract(const char *file,
    const char *directory, uint64_t bytes_max);

/* Whether an entry of that name stays in the directory. */
bool py_archive_name_stays(const char *name);

/* Whether a symbolic link of that name and target leads to the directory and
 * below.  Where a link leads is only certain if ".." comes first in its
 * target: behind other names, which may be links, it may lead anywhere. */
bool py_archive_link_stays(const char *name, const char *target);

#endif /* PY_ENV_ARCHIVE_H */
