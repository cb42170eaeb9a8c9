/*
 * scan.h - what repositories hold now: models, their versions, and what is
 *          wrong with either.
 *
 * Owner    The result belongs to the caller (fini); its texts with it.
 * Thread   any; a scan shares nothing.
 * Units    none.
 * Errors   Only out of memory.  A repository or an entry that can't be read
 *          is a problem in the result and holds up nothing else.
 * Route    repositories -> [scan] -> index, lifecycle
 */

#ifndef INF_REPOSITORY_SCAN_H
#define INF_REPOSITORY_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/model/config_storage.h"

#define INF_MODEL_NAME_MAX 255u

#define INF_SCAN_NAME_SHOWN 64u     /* bytes of a name that is printed      */
#define INF_SCAN_PRINTABLE  (INF_SCAN_NAME_SHOWN * 4 + 4)

/* A model that is not called like its directory. */
typedef struct {
    const char *dir;
    const char *name;
} inf_scan_alias_t;

/* One repository to be scanned. */
typedef struct {
    const inf_storage_t    *storage;
    const char             *root;       /* as inf_storage_open gave it       */
    const inf_scan_alias_t *aliases;    /* NULL: none                        */
    size_t                  alias_count;
    const char             *space;      /* its models' namespace; NULL: none */
} inf_scan_root_t;

/* Name i, from 0, of the model in that directory: its aliases, or what the
   directory is called unless that is another's alias.  NULL: no more. */
const char *inf_scan_name(const inf_scan_root_t *root, const char *dir,
    size_t i);

/* Where a model of that name would be; NULL: the directory that is called so
   is another model's. */
const char *inf_scan_dir(const inf_scan_root_t *root, const char *name);

typedef struct {
    const char    *name;
    const char    *space;           /* the root's; "": none                */
    const char    *dir;             /* root/name                           */
    uint32_t       repository;      /* index into the roots                */
    bool           mapped;          /* its name is an alias                */
    bool           duplicate;       /* another repository has it too, in no
                                       namespace of its own: never served  */
    bool           unreadable;      /* its directory can't be listed now:
                                       versions are unknown, not gone      */
    const int64_t *versions;        /* ascending                           */
    size_t         version_count;
} inf_scan_model_t;

typedef struct {
    inf_log_level_t level;          /* ERROR: a model or repository can't
                                       be used.  WARN: an entry is ignored */
    uint32_t        repository;
    const char     *model;          /* printable; NULL: the repository     */
    const char     *text;           /* whole sentence, names the path      */
} inf_scan_problem_t;

typedef struct {
    inf_scan_model_t   *models;     /* by name, then repository            */
    size_t              model_count;
    inf_scan_problem_t *problems;
    size_t              problem_count;
    bool               *root_failed;    /* per root: listing failed, so its
                                           models are unknown, not gone    */
    inf_arena_t         arena;      /* everything above                    */
} inf_scan_t;

/* A root named twice is scanned once. */
INF_CHECK inf_err_t *inf_scan(const inf_scan_root_t *roots, size_t count,
    inf_scan_t *out);

/* One model's directory; the roots may hold others. */
INF_CHECK inf_err_t *inf_scan_one(const inf_scan_root_t *roots, size_t count,
    const char *model_name, inf_scan_t *out);

/* The model whose directory is where->root itself, of any name. */
INF_CHECK inf_err_t *inf_scan_model_dir(const inf_scan_root_t *where,
    const char *model_name, inf_scan_t *out);

/* Frees all that the scan has found; its texts go with it. */
void inf_scan_fini(inf_scan_t *s);

/* The first model of that name (others follow it); NULL when there is none. */
const inf_scan_model_t *inf_scan_find(const inf_scan_t *s, const char *name);

/*
 * NULL when a directory of that name may be a model, else why not: empty,
 * too long, a slash, a control character, not UTF-8, "." or "..".
 */
const char *inf_model_name_problem(const char *name, size_t len);

/* The first character of name that isn't of A-Z, a-z, 0-9, '_', '.', '-'; NULL:
   there is none.  Others may mean something to a shell. */
const char *inf_model_name_odd(const char *name);

/*
 * Why a directory or broken entry of the repository root is no model's
 * directory: a sentence, malloc'ed.  *problem NULL: it is one.
 */
INF_CHECK inf_err_t *inf_scan_entry_problem(const char *root,
    const inf_entry_t *entry, char **problem);

/* Control bytes and bytes that are not UTF-8 become \xNN; long names end. */
const char *inf_scan_printable(const char *name,
    char out[INF_SCAN_PRINTABLE]);

#endif /* INF_REPOSITORY_SCAN_H */
