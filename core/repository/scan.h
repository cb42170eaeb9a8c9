/*
 * scan.h - the present contents of repositories: models, versions and their
 *          problems.
 *
 * Owner    The result belongs to the caller (fini); its texts with it.
 * Thread   any; a scan shares nothing.
 * Units    none.
 * Errors   Only out of memory.  An unreadable repository or entry is a problem
 *          in the result, and does not affect others.
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

#define INF_SCAN_NAME_SHOWN 64u     /* printed bytes of a name              */
#define INF_SCAN_PRINTABLE  (INF_SCAN_NAME_SHOWN * 4 + 4)

/* A model whose name differs from its directory's. */
typedef struct {
    const char *dir;
    const char *name;
} inf_scan_alias_t;

/* A repository to scan. */
typedef struct {
    const inf_storage_t    *storage;
    const char             *root;       /* from inf_storage_open             */
    const inf_scan_alias_t *aliases;    /* NULL: none                        */
    size_t                  alias_count;
    bool                    aliases_only;   /* its other directories are no
                                               models                        */
    const char             *space;      /* namespace of its models; NULL:
                                           none                              */
} inf_scan_root_t;

/* Name number i, from 0, of the model in that directory: its aliases, or the
   directory's name unless it is another's alias or no model.  NULL: end. */
const char *inf_scan_name(const inf_scan_root_t *root, const char *dir,
    size_t i);

/* The directory of a model of that name; NULL: a directory of this name holds
   another model. */
const char *inf_scan_dir(const inf_scan_root_t *root, const char *name);

/* Whether root number i has no model of that name because another root has an
   alias of it, by which a program chooses between directories of one name. */
bool inf_scan_is_hidden(const inf_scan_root_t *roots, size_t count, size_t i,
    const char *name);

typedef struct {
    const char    *name;
    const char    *space;           /* the root's; "": none                */
    const char    *dir;             /* root/name                           */
    uint32_t       repository;      /* index into roots                    */
    bool           mapped;          /* its name is an alias                */
    bool           duplicate;       /* also in another repository without a
                                       namespace of its own: never served  */
    const char    *unreadable;      /* why its directory cannot be listed
                                       now, with the path: versions are
                                       unknown; NULL: it can               */
    const int64_t *versions;        /* ascending                           */
    size_t         version_count;
} inf_scan_model_t;

typedef struct {
    inf_log_level_t level;          /* ERROR: a model or repository cannot be
                                       used.  WARN: an entry is ignored    */
    uint32_t        repository;
    const char     *model;          /* printable; NULL: the repository     */
    const char     *text;           /* a sentence with the path            */
} inf_scan_problem_t;

typedef struct {
    inf_scan_model_t   *models;     /* by name, then repository            */
    size_t              model_count;
    inf_scan_problem_t *problems;
    size_t              problem_count;
    bool               *root_failed;    /* per root: listing failed, its
                                           models are unknown              */
    inf_arena_t         arena;      /* memory of all above                 */
} inf_scan_t;

/* Scans all roots; a repeated root is scanned once. */
INF_CHECK inf_err_t *inf_scan(const inf_scan_root_t *roots, size_t count,
    inf_scan_t *out);

/* Scans one model's directory in each root. */
INF_CHECK inf_err_t *inf_scan_one(const inf_scan_root_t *roots, size_t count,
    const char *model_name, inf_scan_t *out);

/* Scans the model whose directory is where->root, of any name. */
INF_CHECK inf_err_t *inf_scan_model_dir(const inf_scan_root_t *where,
    const char *model_name, inf_scan_t *out);

/* Frees the result with its texts. */
void inf_scan_fini(inf_scan_t *s);

/* The first model of that name, followed by others of the name; NULL: none. */
const inf_scan_model_t *inf_scan_find(const inf_scan_t *s, const char *name);

/*
 * Why name cannot be a model's directory: empty, too long, a slash, a control
 * character, not UTF-8, "." or "..".  NULL: it can.
 */
const char *inf_model_name_problem(const char *name, size_t len);

/* The first character of name outside A-Z, a-z, 0-9, '_', '.', '-', which may
   be special to a shell; NULL: none. */
const char *inf_model_name_odd(const char *name);

/*
 * Why a directory or broken entry of the repository root is not a model's: a
 * sentence, malloc'ed.  *problem NULL: it is one.
 */
INF_CHECK inf_err_t *inf_scan_entry_problem(const char *root,
    const inf_entry_t *entry, char **problem);

/* Replaces control bytes and invalid UTF-8 by \xNN, and truncates long
   names. */
const char *inf_scan_printable(const char *name,
    char out[INF_SCAN_PRINTABLE]);

#endif /* INF_REPOSITORY_SCAN_H */
