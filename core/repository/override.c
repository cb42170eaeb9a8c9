#include "core/repository/override.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/path.h"
#include "core/model/config_storage.h"

static inf_err_t *write_file(const char *dir, const inf_override_file_t *f);
static inf_err_t *make_parents(const char *dir, char *path, const char *name);
static inf_err_t *write_bytes(const char *path, const char *data, size_t len);

inf_err_t *
inf_override_new(inf_override_t **out)
{
    *out = calloc(1, sizeof(**out));
    return *out != NULL ? NULL : inf_err_nomem();
}

void
inf_override_free(inf_override_t *o)
{
    if (o == NULL) {
        return;
    }

    for (size_t i = 0; i < o->file_count; i++) {
        free(o->files[i].path);
        free(o->files[i].data);
    }
    free(o->files);
    free(o->config);
    free(o);
}

inf_err_t *
inf_override_set_config(inf_override_t *o, inf_slice_t json)
{
    char *copy = malloc(json.len + 1);
    if (copy == NULL) {
        return inf_err_nomem();
    }

    if (json.len > 0) {
        memcpy(copy, json.data, json.len);
    }
    copy[json.len] = '\0';
    free(o->config);
    o->config = copy;
    return NULL;
}

inf_err_t *
inf_override_add_file(inf_override_t *o, const char *path, inf_slice_t bytes)
{
    inf_override_file_t *wider = realloc(o->files,
        (o->file_count + 1) * sizeof(*wider));
    if (wider == NULL) {
        return inf_err_nomem();
    }

    o->files = wider;
    inf_override_file_t *f = &wider[o->file_count];
    f->path = strdup(path);
    f->data = malloc(bytes.len + 1);
    f->len = bytes.len;
    if (f->path == NULL || f->data == NULL) {
        free(f->path);
        free(f->data);
        return inf_err_nomem();
    }

    if (bytes.len > 0) {
        memcpy(f->data, bytes.data, bytes.len);
    }
    o->file_count++;
    return NULL;
}

inf_err_t *
inf_override_write(const inf_override_t *o, const char *dir)
{
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < o->file_count; i++) {
        err = write_file(dir, &o->files[i]);
    }

    return err;
}

bool
inf_override_normalize(char *path)
{
    char *to = path;

    for (const char *from = path; *from != '\0'; from += strspn(from, "/")) {
        size_t len = strcspn(from, "/");
        if (len == 0 || (len == 1 && from[0] == '.')) {
            from += len;
            continue;
        }
        if (len == 2 && from[0] == '.' && from[1] == '.') {
            if (to == path) {
                return false;
            }
            while (--to > path && to[-1] != '/') {
                continue;
            }
            from += len;
            continue;
        }

        memmove(to, from, len);
        to += len;
        from += len;
        *to = *from != '\0' ? '/' : '\0';
        to += *from != '\0';
    }

    *to = '\0';
    return true;
}

/* Writes a file.  The directory is new and ours, so the path needs no resolving
   of links. */
static inf_err_t *
write_file(const char *dir, const inf_override_file_t *f)
{
    char *inner = strdup(f->path);
    if (inner == NULL) {
        return inf_err_nomem();
    }

    bool inside = inf_override_normalize(inner);
    size_t len = strlen(inner);
    inf_err_t *err = NULL;
    if (!inside || len == 0 || inner[len - 1] == '/') {
        err = inf_err_new(INF_ERR_INVALID_ARG, "Invalid file parameter"
            " 'file:%s' with normalized path '%s/%s' must stay within model"
            " directory.", f->path, dir, inside ? inner : f->path);
    }

    char *path = err == NULL ? inf_path_join(dir, inner) : NULL;
    if (err == NULL) {
        err = path == NULL ? inf_err_nomem()
            : make_parents(dir, path, f->path);
    }
    if (err == NULL) {
        err = inf_err_add(write_bytes(path, f->data, f->len),
            "file parameter 'file:%s'", f->path);
    }
    free(path);
    free(inner);
    return err;
}

static inf_err_t *
make_parents(const char *dir, char *path, const char *name)
{
    struct stat st;

    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        int rc = mkdir(path, 0700);
        int error = errno;
        bool file = rc != 0 && error == EEXIST && lstat(path, &st) == 0
            && !S_ISDIR(st.st_mode);
        *p = '/';

        if (file) {
            return inf_err_new(INF_ERR_INVALID_ARG, "Invalid file parameter"
                " 'file:%s', directory has been created as a file", name);
        }
        if (rc != 0 && error != EEXIST) {
            return inf_err_os(error, "file parameter 'file:%s': cannot create"
                " its directory", name);
        }
    }

    return NULL;
}

static inf_err_t *
write_bytes(const char *path, const char *data, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
        0600);
    if (fd < 0) {
        return inf_err_os(errno, "cannot create '%s'", path);
    }

    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            inf_err_t *err = inf_err_os(errno, "cannot write '%s'", path);
            close(fd);
            return err;
        }
        data += n;
        len -= (size_t) n;
    }

    return close(fd) == 0 ? NULL : inf_err_os(errno, "cannot write '%s'",
        path);
}
