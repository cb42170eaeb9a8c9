/*
 * temp_tree.h - a directory for one test, made and taken away again.
 *
 * Owner    tree_new and tree_free.
 * Thread   one; tree_path any, its buffers are each thread's own.
 * Units    none.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_TEMP_TREE_H
#define INF_T_TEMP_TREE_H

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/error.h"

/* A new directory below /tmp, canonical. */
static inline char *
tree_new(void)
{
    char name[] = "/tmp/inf_tree_XXXXXX";
    assert_non_null(mkdtemp(name));
    char *path = realpath(name, NULL);
    assert_non_null(path);
    return path;
}

static inline int
tree_remove(const char *path, const struct stat *sb, int type,
    struct FTW *ftw)
{
    (void) sb;
    (void) type;
    (void) ftw;
    return remove(path);
}

static inline void
tree_free(char *tree)
{
    assert_int_equal(nftw(tree, tree_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(tree);
}

/* tree/name in one of a few buffers; good for a statement. */
static inline const char *
tree_path(const char *tree, const char *name)
{
    static _Thread_local char paths[8][4096];
    static _Thread_local unsigned next;
    char *path = paths[next++ % 8];

    assert_true(snprintf(path, sizeof(paths[0]), "%s/%s", tree, name)
        < (int) sizeof(paths[0]));
    return path;
}

/* With the directories above it. */
static inline void
tree_dir(const char *tree, const char *name)
{
    char path[4096];

    assert_true(snprintf(path, sizeof(path), "%s/%s", tree, name)
        < (int) sizeof(path));
    for (char *p = path + strlen(tree) + 1; *p != '\0'; p++) {
        if (*p == '/') {
            *p = '\0';
            (void) mkdir(path, 0755);
            *p = '/';
        }
    }

    (void) mkdir(path, 0755);
}

static inline void
tree_file(const char *tree, const char *name, const char *text)
{
    char dir[4096];

    assert_true(snprintf(dir, sizeof(dir), "%s", name)
        < (int) sizeof(dir));
    char *slash = strrchr(dir, '/');
    if (slash != NULL) {
        *slash = '\0';
        tree_dir(tree, dir);
    }

    FILE *f = fopen(tree_path(tree, name), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static inline void
tree_link(const char *tree, const char *target, const char *name)
{
    assert_int_equal(symlink(target, tree_path(tree, name)), 0);
}

/* err has that code and part in its text.  Frees err. */
static inline void
assert_error(inf_err_t *err, inf_err_code_t code, const char *part)
{
    if (err == NULL) {
        fail_msg("no error, expected: %s", part);
    }

    if (strstr(inf_err_msg(err), part) == NULL) {
        fail_msg("expected \"%s\" in \"%s\"", part, inf_err_msg(err));
    }

    if (inf_err_code(err) != code) {
        fail_msg("code %d, expected %d: %s", (int) inf_err_code(err),
            (int) code, inf_err_msg(err));
    }

    inf_err_free(err);
}

static inline void
assert_ok(inf_err_t *err)
{
    if (err != NULL) {
        fail_msg("unexpected error: %s", inf_err_msg(err));
    }
}

#endif /* INF_T_TEMP_TREE_H */
