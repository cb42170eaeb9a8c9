#include "env_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (1 << 18)
#define ENTRY_BYTES 4096u       /* minimum size of one on the disk           */

/* Owners, ACLs and extended attributes are not restored: the files belong to
   the server's user. */
#define DISK_FLAGS (ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME \
    | ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT)

typedef struct {
    const char     *file;
    const char     *directory;
    uint64_t        bytes_max;
    uint64_t        bytes;              /* so far                            */
    struct archive *from;
    struct archive *disk;
} extraction_t;

static TRITONSERVER_Error *open_reader(extraction_t *x);
static TRITONSERVER_Error *extract_all(extraction_t *x);
static TRITONSERVER_Error *extract_entry(extraction_t *x,
    struct archive_entry *entry);
static TRITONSERVER_Error *check_entry(const extraction_t *x,
    struct archive_entry *entry, const char *name);
static TRITONSERVER_Error *place_entry(const extraction_t *x,
    struct archive_entry *entry, const char *name);
static char *inside(const extraction_t *x, const char *name);
static TRITONSERVER_Error *copy_data(extraction_t *x, const char *name);
static TRITONSERVER_Error *count_bytes(extraction_t *x, uint64_t bytes);
static TRITONSERVER_Error *failed(const extraction_t *x, struct archive *a,
    const char *name);
static bool is_directory_itself(const char *name);
static const char *next_name(const char *path, const char **end);
static bool is_parent(const char *name, const char *end);

TRITONSERVER_Error *
py_archive_extract(const char *file, const char *directory,
    uint64_t bytes_max)
{
    extraction_t x = {
        .file = file, .directory = directory, .bytes_max = bytes_max
    };

    x.from = archive_read_new();
    x.disk = archive_write_disk_new();
    TRITONSERVER_Error *err = x.from == NULL || x.disk == NULL
        ? bk_err_nomem("the reader of an archive") : open_reader(&x);
    if (err == NULL) {
        archive_write_disk_set_options(x.disk, DISK_FLAGS);
        err = extract_all(&x);
    }
    if (err == NULL && archive_write_close(x.disk) < ARCHIVE_WARN) {
        err = failed(&x, x.disk, NULL);
    }

    archive_write_free(x.disk);
    archive_read_free(x.from);
    return err;
}

/* Opens the archive, without filters that are external programs. */
static TRITONSERVER_Error *
open_reader(extraction_t *x)
{
    archive_read_support_format_tar(x->from);
    archive_read_support_format_zip(x->from);
    archive_read_support_filter_gzip(x->from);
    archive_read_support_filter_bzip2(x->from);
    archive_read_support_filter_xz(x->from);
    archive_read_support_filter_zstd(x->from);
    if (archive_read_open_filename(x->from, x->file, BLOCK_BYTES)
        != ARCHIVE_OK)
    {
        return failed(x, x->from, NULL);
    }
    return NULL;
}

static TRITONSERVER_Error *
extract_all(extraction_t *x)
{
    size_t count = 0;

    for (;; count++) {
        struct archive_entry *entry;
        int rc = archive_read_next_header(x->from, &entry);
        if (rc == ARCHIVE_EOF) {
            break;
        }
        if (rc < ARCHIVE_WARN) {
            return failed(x, x->from, NULL);
        }
        TRITONSERVER_Error *err = count_bytes(x, ENTRY_BYTES);
        if (err == NULL) {
            err = extract_entry(x, entry);
        }
        if (err != NULL) {
            return err;
        }
    }
    return count > 0 ? NULL : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "archive \"%s\" is empty", x->file);
}

static TRITONSERVER_Error *
extract_entry(extraction_t *x, struct archive_entry *entry)
{
    const char *path = archive_entry_pathname(entry);
    char *name = path != NULL ? strdup(path) : NULL;
    if (name == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "archive \"%s\" has an entry whose name cannot be read", x->file);
    }

    TRITONSERVER_Error *err = check_entry(x, entry, name);
    if (err == NULL && is_directory_itself(name)) {
        free(name);                     /* it keeps its permissions          */
        return NULL;
    }
    if (err == NULL) {
        err = place_entry(x, entry, name);
    }
    if (err == NULL && archive_write_header(x->disk, entry) < ARCHIVE_WARN) {
        err = failed(x, x->disk, name);
    }
    if (err == NULL && archive_entry_size(entry) > 0) {
        err = copy_data(x, name);
    }
    if (err == NULL && archive_write_finish_entry(x->disk) < ARCHIVE_WARN) {
        err = failed(x, x->disk, name);
    }
    free(name);
    return err;
}

static TRITONSERVER_Error *
check_entry(const extraction_t *x, struct archive_entry *entry,
    const char *name)
{
    const char *hardlink = archive_entry_hardlink(entry);
    const char *symlink = archive_entry_symlink(entry);

    if (!py_archive_name_stays(name)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "entry \"%s\" of "
            "archive \"%s\" leaves the directory that the archive is "
            "extracted to", name, x->file);
    }
    if (hardlink != NULL && !py_archive_name_stays(hardlink)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "entry \"%s\" of "
            "archive \"%s\" is a link to \"%s\", outside the directory that "
            "the archive is extracted to", name, x->file, hardlink);
    }
    if (hardlink != NULL) {
        return NULL;                    /* hard links have no type */
    }
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
    case AE_IFDIR:
        return NULL;
    case AE_IFLNK:
        if (symlink != NULL && py_archive_link_stays(name, symlink)) {
            return NULL;
        }
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "entry \"%s\" of "
            "archive \"%s\" is a link to \"%s\", outside the directory that "
            "the archive is extracted to; an environment made by \"python3 -m "
            "venv --copies\" has no such links", name, x->file,
            symlink != NULL ? symlink : "");
    default:
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "entry \"%s\" of "
            "archive \"%s\" is no file, directory or link", name, x->file);
    }
}

/* Sets the entry's path on disk, and permissions that let its owner read and
   remove it, without set-user-ID and the like. */
static TRITONSERVER_Error *
place_entry(const extraction_t *x, struct archive_entry *entry,
    const char *name)
{
    const char *hardlink = archive_entry_hardlink(entry);
    char *path = inside(x, name);
    char *target = hardlink != NULL ? inside(x, hardlink) : NULL;

    if (path == NULL || (hardlink != NULL && target == NULL)) {
        free(path);
        free(target);
        return bk_err_nomem("the path of an archive's entry");
    }
    if (strlen(path) >= PATH_MAX) {     /* libarchive would change the
                                           directory                         */
        free(path);
        free(target);
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "the name of entry "
            "\"%.100s...\" of archive \"%s\" is too long", name, x->file);
    }
    archive_entry_set_pathname(entry, path);
    if (target != NULL) {
        archive_entry_set_hardlink(entry, target);
    }
    unsigned own = archive_entry_filetype(entry) == AE_IFDIR ? 0700 : 0400;
    archive_entry_set_perm(entry, (archive_entry_perm(entry) & 0777) | own);
    free(path);
    free(target);
    return NULL;
}

static char *
inside(const extraction_t *x, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", x->directory, name) >= 0 ? path : NULL;
}

static TRITONSERVER_Error *
copy_data(extraction_t *x, const char *name)
{
    for (;;) {
        const void *data;
        size_t len;
        int64_t at;
        int rc = archive_read_data_block(x->from, &data, &len, &at);
        if (rc == ARCHIVE_EOF) {
            return NULL;
        }
        if (rc < ARCHIVE_WARN) {
            return failed(x, x->from, name);
        }
        TRITONSERVER_Error *err = count_bytes(x, len);
        if (err != NULL) {
            return err;
        }
        if (archive_write_data_block(x->disk, data, len, at) < ARCHIVE_WARN) {
            return failed(x, x->disk, name);
        }
    }
}

static TRITONSERVER_Error *
count_bytes(extraction_t *x, uint64_t bytes)
{
    if (bytes > x->bytes_max - x->bytes) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "archive \"%s\" "
            "takes more than %" PRIu64 " bytes; setting environment-byte-size "
            "of backend python permits more", x->file, x->bytes_max);
    }
    x->bytes += bytes;
    return NULL;
}

/* name: of the entry, or NULL. */
static TRITONSERVER_Error *
failed(const extraction_t *x, struct archive *a, const char *name)
{
    const char *why = archive_error_string(a);

    if (why == NULL) {
        why = "no reason given";
    }
    if (name == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "cannot extract archive \"%s\": %s", x->file, why);
    }
    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "cannot extract entry \"%s\" of archive \"%s\": %s", name, x->file,
        why);
}

bool
py_archive_name_stays(const char *name)
{
    const char *end;

    if (name[0] == '\0' || name[0] == '/') {
        return false;
    }
    for (const char *n = next_name(name, &end); n != NULL;
        n = next_name(end, &end))
    {
        if (is_parent(n, end)) {
            return false;
        }
    }
    return true;
}

bool
py_archive_link_stays(const char *name, const char *target)
{
    const char *end;
    size_t depth = 0;           /* of the link's directory */
    bool below = false;

    if (target[0] == '\0' || target[0] == '/') {
        return false;
    }
    for (const char *n = next_name(name, &end); n != NULL;
        n = next_name(end, &end))
    {
        depth++;
    }
    depth = depth > 0 ? depth - 1 : 0;
    for (const char *n = next_name(target, &end); n != NULL;
        n = next_name(end, &end))
    {
        if (!is_parent(n, end)) {
            below = true;
        } else if (below || depth-- == 0) {
            return false;
        }
    }
    return true;
}

static bool
is_directory_itself(const char *name)
{
    const char *end;
    return next_name(name, &end) == NULL;
}

/* The next component other than ".", or NULL. */
static const char *
next_name(const char *path, const char **end)
{
    for (;;) {
        path += strspn(path, "/");
        *end = path + strcspn(path, "/");
        if (*end == path) {
            return NULL;
        }
        if (*end - path != 1 || path[0] != '.') {
            return path;
        }
        path = *end;
    }
}

static bool
is_parent(const char *name, const char *end)
{
    return end - name == 2 && name[0] == '.' && name[1] == '.';
}
