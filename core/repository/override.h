/*
 * override.h - a configuration and files of a load request, instead of the
 *              repository's.
 *
 * Owner    The creator frees it, unless a load takes it.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INVALID_ARG: a file without a configuration, a path that leaves the
 *          model's directory, a file in place of a directory.
 * Route    C API, calls -> [override] -> model source
 */

#ifndef INF_REPOSITORY_OVERRIDE_H
#define INF_REPOSITORY_OVERRIDE_H

#include <stdbool.h>

#include "core/base/buf.h"
#include "core/base/slice.h"

typedef struct {
    char  *path;                /* below the model's directory               */
    char  *data;
    size_t len;
} inf_override_file_t;

typedef struct {
    char                *config;        /* JSON; NULL: none                  */
    inf_override_file_t *files;
    size_t               file_count;
} inf_override_t;

/* new: creates an empty one.  free: o may be NULL. */
INF_CHECK inf_err_t *inf_override_new(inf_override_t **out);
void inf_override_free(inf_override_t *o);

/* Whether the request brings the model's files; o may be NULL. */
static inline bool
inf_override_has_files(const inf_override_t *o)
{
    return o != NULL && o->file_count > 0;
}

/* Sets the configuration, or adds a file; copies the bytes. */
INF_CHECK inf_err_t *inf_override_set_config(inf_override_t *o,
    inf_slice_t json);
INF_CHECK inf_err_t *inf_override_add_file(inf_override_t *o,
    const char *path, inf_slice_t bytes);

/*
 * Writes the files into dir, which exists and belongs to the caller.  A path
 * with leading slashes is below dir, too.
 */
INF_CHECK inf_err_t *inf_override_write(const inf_override_t *o,
    const char *dir);

/* Normalizes a path as text: "/a//b/.." becomes "a".  false: it leaves the
   directory. */
bool inf_override_normalize(char *path);

#endif /* INF_REPOSITORY_OVERRIDE_H */
