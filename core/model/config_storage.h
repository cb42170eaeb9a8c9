/*
 * config_storage.h - access to files for the model room: a table of functions,
 *                    set by the repository room for each storage.
 *
 * Owner    The opener closes the storage.  Returned names, bytes and paths
 *          belong to the caller.
 * Thread   any; an open storage is not changed by its functions.
 * Units    bytes; times are ns since 1970.
 * Errors   NOT_FOUND: no such file.  INTERNAL: the storage failed (with its
 *          text).  INVALID_ARG: not a regular file, or larger than the limit.
 *          UNSUPPORTED: a path leaves its directory.
 * Route    repository -> [storage] -> configuration, labels, scan
 *
 * Paths are full and in the storage's notation: "/srv/models/m", or
 * "s3://bucket/models/m".
 */

#ifndef INF_MODEL_CONFIG_STORAGE_H
#define INF_MODEL_CONFIG_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct inf_storage_s inf_storage_t;

typedef enum {
    INF_ENTRY_FILE,         /* symbolic links are followed                 */
    INF_ENTRY_DIR,
    INF_ENTRY_OTHER,        /* device, socket, fifo                        */
    INF_ENTRY_BROKEN        /* dangling or looping link, no permission     */
} inf_entry_kind_t;

typedef struct {
    char             *name;         /* last component; NULL from stat      */
    inf_entry_kind_t  kind;
    int               errnum;       /* why it is BROKEN                    */
    uint64_t          size;         /* of a FILE                           */
    int64_t           changed_ns;   /* later of content and attributes     */
    uint64_t          id;           /* equal for all links to a file; 0: no
                                       links                               */
} inf_entry_t;

typedef struct {
    inf_entry_t *items;             /* sorted by name, as bytes            */
    size_t       count;
} inf_entries_t;

typedef struct {
    void (*close)(inf_storage_t *st);

    /* Adds entries to out in any order, even before an error.  An unreadable
       entry has kind BROKEN and does not fail the listing. */
    inf_err_t *(*list)(const inf_storage_t *st, const char *dir,
        inf_entries_t *out);

    inf_err_t *(*stat)(const inf_storage_t *st, const char *path,
        inf_entry_t *out);

    /* Reads a file; adds a NUL, though the bytes may contain others. */
    inf_err_t *(*read)(const inf_storage_t *st, const char *path,
        size_t limit, char **data, size_t *len);

    /* UNSUPPORTED unless path, with links resolved, is within dir. */
    inf_err_t *(*contain)(const inf_storage_t *st, const char *dir,
        const char *path);

    /* localize: a directory on the local disk with dir's content; release gives
       it back. */
    inf_err_t *(*localize)(inf_storage_t *st, const char *dir, char **local);
    void (*release)(inf_storage_t *st, char *local);

    /* Whether the storage is remote, so that an operation may take minutes.
       After cancel, from any thread, its requests fail soon. */
    bool remote;
    void (*cancel)(inf_storage_t *st);
} inf_storage_ops_t;

struct inf_storage_s {
    const inf_storage_ops_t *ops;
};

/* The operations of the same names. */
INF_CHECK inf_err_t *inf_storage_list(const inf_storage_t *st,
    const char *dir, inf_entries_t *out);
INF_CHECK inf_err_t *inf_storage_stat(const inf_storage_t *st,
    const char *path, inf_entry_t *out);
INF_CHECK inf_err_t *inf_storage_read(const inf_storage_t *st,
    const char *path, size_t limit, char **data, size_t *len);
INF_CHECK inf_err_t *inf_storage_contain(const inf_storage_t *st,
    const char *dir, const char *path);
/* Reads <model_dir>/<directory>/<file>, unless a link or ".." leads outside the
   model. */
INF_CHECK inf_err_t *inf_storage_read_in(const inf_storage_t *st,
    const char *model_dir, const char *directory, const char *file,
    size_t limit, char **data, size_t *len);

/* The operation; give *local back with inf_storage_release. */
INF_CHECK inf_err_t *inf_storage_localize(inf_storage_t *st, const char *dir,
    char **local);

/* Gives local back; it may be NULL. */
void inf_storage_release(inf_storage_t *st, char *local);

/* st may be NULL. */
void inf_storage_close(inf_storage_t *st);

/* Whether operations use a network (ops->remote). */
bool inf_storage_is_remote(const inf_storage_t *st);

/* Makes running and later requests fail soon with UNAVAILABLE.  Does nothing
   for local storage. */
void inf_storage_cancel(inf_storage_t *st);

/* For implementations: adds an entry; name is copied.  false: out of memory. */
bool inf_entries_add(inf_entries_t *e, const inf_entry_t *entry,
    const char *name);
void inf_entries_sort(inf_entries_t *e);
const inf_entry_t *inf_entries_find(const inf_entries_t *e, const char *name);
void inf_entries_fini(inf_entries_t *e);

#endif /* INF_MODEL_CONFIG_STORAGE_H */
