/*
 * memory_storage.h - a storage for tests: a table of paths and texts.
 *
 * Owner    The table is the test's; the storage has no memory of its own.
 * Thread   one.
 * Units    none.
 * Errors   as core/model/config_storage.h; a file whose text is NULL can't
 *          be read, one named in outside leaves its directory.
 * Route    unit tests only
 */

#ifndef INF_T_MODEL_MEMORY_STORAGE_H
#define INF_T_MODEL_MEMORY_STORAGE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/config_storage.h"

typedef struct {
    const char *path;       /* "m/1/model.onnx"; "m/1/" is a directory     */
    const char *text;
} memory_file_t;

typedef struct {
    inf_storage_t        base;
    const memory_file_t *files;     /* ends with path NULL                 */
    const char          *outside;   /* may be NULL                         */
} memory_storage_t;

/* The entry that path/rest makes in dir: its first component. */
static inline inf_err_t *
memory_add(inf_entries_t *out, const char *rest)
{
    size_t len = strcspn(rest, "/");
    char name[256];

    memcpy(name, rest, len);
    name[len] = '\0';
    if (len == 0 || inf_entries_find(out, name) != NULL) {
        return NULL;
    }

    inf_entry_t entry = { .kind = rest[len] == '/' ? INF_ENTRY_DIR
                                                   : INF_ENTRY_FILE };
    return inf_entries_add(out, &entry, name) ? NULL : inf_err_nomem();
}

static inline inf_err_t *
memory_list(const inf_storage_t *st, const char *dir, inf_entries_t *out)
{
    const memory_storage_t *m = (const memory_storage_t *) st;
    size_t len = strlen(dir);
    bool found = false;

    for (const memory_file_t *f = m->files; f->path != NULL; f++) {
        if (strncmp(f->path, dir, len) == 0 && f->path[len] == '/') {
            found = true;
            inf_err_t *err = memory_add(out, f->path + len + 1);
            if (err != NULL) {
                return err;
            }
        }
    }

    return found ? NULL : inf_err_new(INF_ERR_NOT_FOUND, "no %s", dir);
}

static inline inf_err_t *
memory_stat(const inf_storage_t *st, const char *path, inf_entry_t *out)
{
    const memory_storage_t *m = (const memory_storage_t *) st;
    size_t len = strlen(path);

    for (const memory_file_t *f = m->files; f->path != NULL; f++) {
        if (strncmp(f->path, path, len) != 0) {
            continue;
        }

        if (f->path[len] == '\0' || f->path[len] == '/') {
            *out = (inf_entry_t) {
                .kind = f->path[len] == '/' ? INF_ENTRY_DIR : INF_ENTRY_FILE
            };
            return NULL;
        }
    }

    return inf_err_new(INF_ERR_NOT_FOUND, "no %s", path);
}

static inline inf_err_t *
memory_read(const inf_storage_t *st, const char *path, size_t limit,
    char **data, size_t *len)
{
    const memory_storage_t *m = (const memory_storage_t *) st;

    for (const memory_file_t *f = m->files; f->path != NULL; f++) {
        if (strcmp(f->path, path) != 0) {
            continue;
        }

        if (f->text == NULL) {
            return inf_err_os(EACCES, "failed to open text file for read %s",
                path);
        }

        if (strlen(f->text) > limit) {
            return inf_err_new(INF_ERR_INVALID_ARG, "%s too large", path);
        }

        *len = strlen(f->text);
        *data = strdup(f->text);
        return *data == NULL ? inf_err_nomem() : NULL;
    }

    return inf_err_new(INF_ERR_NOT_FOUND, "no %s", path);
}

static inline inf_err_t *
memory_contain(const inf_storage_t *st, const char *dir, const char *path)
{
    const memory_storage_t *m = (const memory_storage_t *) st;

    if (m->outside != NULL && strcmp(m->outside, path) == 0) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "%s outside %s", path, dir);
    }

    return NULL;
}

static inline memory_storage_t
memory_storage(const memory_file_t *files)
{
    static const inf_storage_ops_t ops = {
        .list = memory_list, .stat = memory_stat, .read = memory_read,
        .contain = memory_contain,
    };

    return (memory_storage_t) { { &ops }, files, NULL };
}

#endif /* INF_T_MODEL_MEMORY_STORAGE_H */
