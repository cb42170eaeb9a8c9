/*
 * config_storage.h - files as the model room sees them: a table of functions
 *                    that the repository room fills in, once per storage.
 *
 * Owner    The opener of a storage closes it.  Names, bytes and paths given
 *          out belong to the caller.
 * Thread   any; an open storage is not changed by its functions.
 * Units    bytes; times are ns since 1970.
 * Errors   NOT_FOUND: nothing there.  INTERNAL: the storage failed (text says
 *          how).  INVALID_ARG: not a regular file, or larger than the limit.
 *          UNSUPPORTED: a path that leaves the directory it must stay in.
 * Route    repository -> [storage] -> configuration, labels, scan
 *
 * Paths are whole and in the storage's own spelling: "/srv/models/m" here,
 * "s3://bucket/models/m" elsewhere.
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
    int               errnum;       /* why BROKEN                          */
    uint64_t          size;         /* of a FILE                           */
    int64_t           changed_ns;   /* later of content and attributes     */
    uint64_t          id;           /* the same for all links to one thing;
                                       0: the storage has no links         */
} inf_entry_t;

typedef struct {
    inf_entry_t *items;             /* sorted by name, bytewise            */
    size_t       count;
} inf_entries_t;

typedef struct {
    void (*close)(inf_storage_t *st);

    /* Adds entries to out, in any order, after an error too.  One bad entry is
       an entry of kind BROKEN, never a failed listing. */
    inf_err_t *(*list)(const inf_storage_t *st, const char *dir,
        inf_entries_t *out);

    inf_err_t *(*stat)(const inf_storage_t *st, const char *path,
        inf_entry_t *out);

    /* NUL-terminated, though the bytes may hold NULs of their own. */
    inf_err_t *(*read)(const inf_storage_t *st, const char *path,
        size_t limit, char **data, size_t *len);

    /* UNSUPPORTED unless path, with links resolved, stays within dir. */
    inf_err_t *(*contain)(const inf_storage_t *st, const char *dir,
        const char *path);

    /* A directory of the local disk with dir's content, and its return. */
    inf_err_t *(*localize)(inf_storage_t *st, const char *dir, char **local);
    void (*release)(inf_storage_t *st, char *local);

    /* Another machine has it: an answer may take minutes.  Once cancel, from
       any thread, was called, requests to it fail soon. */
    bool remote;
    void (*cancel)(inf_storage_t *st);
} inf_storage_ops_t;

struct inf_storage_s {
    const inf_storage_ops_t *ops;
};

/* As the operation of the same name. */
INF_CHECK inf_err_t *inf_storage_list(const inf_storage_t *st,
    const char *dir, inf_entries_t *out);
INF_CHECK inf_err_t *inf_storage_stat(const inf_storage_t *st,
    const char *path, inf_entry_t *out);
INF_CHECK inf_err_t *inf_storage_read(const inf_storage_t *st,
    const char *path, size_t limit, char **data, size_t *len);
INF_CHECK inf_err_t *inf_storage_contain(const inf_storage_t *st,
    const char *dir, const char *path);
/* A file of one of a model's directories: <model_dir>/<directory>/<file>, and
   nothing that a link or a ".." leads to outside the model. */
INF_CHECK inf_err_t *inf_storage_read_in(const inf_storage_t *st,
    const char *model_dir, const char *directory, const char *file,
    size_t limit, char **data, size_t *len);

/* As the operation: *local is given back with inf_storage_release. */
INF_CHECK inf_err_t *inf_storage_localize(inf_storage_t *st, const char *dir,
    char **local);

/* Takes local back; local may be NULL. */
void inf_storage_release(inf_storage_t *st, char *local);

/* st may be NULL. */
void inf_storage_close(inf_storage_t *st);

/* Whether the operations go over a network (ops->remote). */
bool inf_storage_is_remote(const inf_storage_t *st);

/* Requests to it under way, and later ones, fail soon: UNAVAILABLE.  Does
   nothing where no answer is waited for. */
void inf_storage_cancel(inf_storage_t *st);

/* For implementations: adds name (copied); false when out of memory. */
bool inf_entries_add(inf_entries_t *e, const inf_entry_t *entry,
    const char *name);
void inf_entries_sort(inf_entries_t *e);
const inf_entry_t *inf_entries_find(const inf_entries_t *e, const char *name);
void inf_entries_fini(inf_entries_t *e);

#endif /* INF_MODEL_CONFIG_STORAGE_H */
