/* package.c - see package.h */

#include "package.h"

#include "library_file.h"

#include "common/config_json.h"
#include "common/path.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Packages of several models have one of these names each; Triton and PyTorch
   take this one unless told otherwise. */
#define MODEL_PREFIX "data/aotinductor/model/"

#define PREFIX        "torch-aoti-"
#define ENTRIES_MAX   65536
#define READ_SIZE     65536
#define METADATA_MAX  (1 << 20)
#define RATIO_MAX     128u      /* packed well, for code and weights         */
#define SIZE_FREE     (UINT64_C(64) << 20)

static const char *place(void);
static TRITONSERVER_Error *archive_unpack(pt_package_t *p);
static TRITONSERVER_Error *entries_unpack(pt_package_t *p, struct archive *a,
    uint64_t left);
static TRITONSERVER_Error *entry_unpack(pt_package_t *p, struct archive *a,
    struct archive_entry *entry, uint64_t *left);
static const char *model_part(const char *name);
static TRITONSERVER_Error *parents_make(const pt_package_t *p, char *path);
static TRITONSERVER_Error *file_write(const pt_package_t *p,
    struct archive *a, const char *path, uint64_t *left);
static TRITONSERVER_Error *file_note(pt_package_t *p, const char *part,
    char *path);
static bool ends_with(const char *name, const char *end);
static TRITONSERVER_Error *metadata_read(pt_package_t *p, const char *path);
static TRITONSERVER_Error *metadata_check(pt_package_t *p,
    const bk_json_t *root);
static TRITONSERVER_Error *isa_check(const char *isa);
static TRITONSERVER_Error *os_error(const char *what, const char *path);

TRITONSERVER_Error *
pt_package_open(pt_package_t *p, const char *path)
{
    *p = (pt_package_t) { .path = strdup(path) };

    TRITONSERVER_Error *err = p->path == NULL
        ? bk_err_nomem("path of a package")
        : bk_directory_make(&p->directory, place(), PREFIX);
    if (err == NULL) {
        err = archive_unpack(p);
    }
    if (err == NULL && p->library == NULL) {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "no " MODEL_PREFIX "*.so in it: it is no package of "
            "torch._inductor.aoti_compile_and_package, or its model is not "
            "called \"model\"");
    }
    if (err != NULL) {
        pt_package_close(p);
        return bk_err_add(err, "\"%s\"", path);
    }

    return NULL;
}

void
pt_package_close(pt_package_t *p)
{
    bk_directory_remove(&p->directory);
    free(p->path);
    free(p->library);
    free(p->device);
    *p = (pt_package_t) { 0 };
}

void
pt_packages_sweep(void)
{
    bk_directory_sweep(place(), PREFIX, 0);
}

static const char *
place(void)
{
    const char *dir = getenv("TMPDIR");

    return dir != NULL && dir[0] == '/' ? dir : "/tmp";
}

static TRITONSERVER_Error *
archive_unpack(pt_package_t *p)
{
    struct stat st;

    if (stat(p->path, &st) != 0) {
        return os_error("cannot read", p->path);
    }
    if (!S_ISREG(st.st_mode)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "no plain file");
    }

    struct archive *a = archive_read_new();
    if (a == NULL) {
        return bk_err_nomem("reader of a package");
    }

    TRITONSERVER_Error *err;
    if (archive_read_support_format_zip_seekable(a) != ARCHIVE_OK
        || archive_read_open_filename(a, p->path, READ_SIZE) != ARCHIVE_OK)
    {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "no zip archive, or "
            "only a part of one: %s", archive_error_string(a));

    } else {
        err = entries_unpack(p, a, SIZE_FREE
            + (uint64_t) st.st_size * RATIO_MAX);
    }

    archive_read_free(a);
    return err;
}

static TRITONSERVER_Error *
entries_unpack(pt_package_t *p, struct archive *a, uint64_t left)
{
    for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
        struct archive_entry *entry;

        int rc = archive_read_next_header(a, &entry);
        if (rc == ARCHIVE_EOF) {
            return NULL;
        }
        if (rc != ARCHIVE_OK) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "broken archive: %s", archive_error_string(a));
        }

        TRITONSERVER_Error *err = entry_unpack(p, a, entry, &left);
        if (err != NULL) {
            return err;
        }
    }

    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "archive has more than %d entries", ENTRIES_MAX);
}

/* Only the model's own files are taken out, but all names are checked. */
static TRITONSERVER_Error *
entry_unpack(pt_package_t *p, struct archive *a, struct archive_entry *entry,
    uint64_t *left)
{
    const char *name = archive_entry_pathname(entry);
    char *path;

    if (name == NULL || !bk_path_is_inner(name, strlen(name))) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "entry \"%s\" leads out of its directory",
            name == NULL ? "" : name);
    }
    if (archive_entry_filetype(entry) == AE_IFDIR) {
        return NULL;
    }
    if (archive_entry_filetype(entry) != AE_IFREG
        || archive_entry_hardlink(entry) != NULL
        || archive_entry_symlink(entry) != NULL)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "entry \"%s\" is no plain file", name);
    }

    const char *part = model_part(name);
    if (part == NULL) {
        return NULL;
    }

    if (asprintf(&path, "%s/%s", p->directory.path, part) < 0) {
        return bk_err_nomem("path of a package's file");
    }

    TRITONSERVER_Error *err = parents_make(p, path);
    if (err == NULL) {
        err = file_write(p, a, path, left);
    }
    if (err == NULL) {
        err = file_note(p, part, path);
    }

    free(path);
    return err == NULL ? NULL : bk_err_add(err, "entry \"%s\"", name);
}

/* Behind the prefix, which stands in front or in one directory; or NULL. */
static const char *
model_part(const char *name)
{
    const char *slash = strchr(name, '/');
    const char *at = strncmp(name, MODEL_PREFIX, strlen(MODEL_PREFIX)) == 0
        ? name : slash == NULL ? "" : slash + 1;

    return strncmp(at, MODEL_PREFIX, strlen(MODEL_PREFIX)) == 0
        && at[strlen(MODEL_PREFIX)] != '\0' ? at + strlen(MODEL_PREFIX)
        : NULL;
}

/* path is changed, and back again */
static TRITONSERVER_Error *
parents_make(const pt_package_t *p, char *path)
{
    for (char *at = path + strlen(p->directory.path) + 1;
         (at = strchr(at, '/')) != NULL; at++)
    {
        *at = '\0';
        bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        *at = '/';
        if (!made) {
            return os_error("cannot make the directory of", path);
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
file_write(const pt_package_t *p, struct archive *a, const char *path,
    uint64_t *left)
{
    TRITONSERVER_Error *err = NULL;

    (void) p;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd == -1) {
        return os_error("cannot make", path);
    }

    for (;;) {
        const void *block;
        size_t size;
        la_int64_t at;

        int rc = archive_read_data_block(a, &block, &size, &at);
        if (rc == ARCHIVE_EOF) {
            break;
        }
        if (rc != ARCHIVE_OK) {
            err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s",
                archive_error_string(a));
            break;
        }
        if (size > *left) {
            err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "archive is larger unpacked than %u times its size",
                RATIO_MAX);
            break;
        }
        *left -= size;
        while (size > 0) {
            ssize_t n = pwrite(fd, block, size, at);
            if (n <= 0) {
                break;
            }
            block = (const char *) block + n;
            size -= (size_t) n;
            at += n;
        }
        if (size > 0) {
            err = os_error("cannot write", path);
            break;
        }
    }

    (void) close(fd);
    return err;
}

static TRITONSERVER_Error *
file_note(pt_package_t *p, const char *part, char *path)
{
    if (strchr(part, '/') != NULL) {
        return NULL;
    }

    if (ends_with(part, "_metadata.json")) {
        return metadata_read(p, path);
    }

    if (!ends_with(part, ".so")) {
        return NULL;
    }
    if (p->library != NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "package has more than one library");
    }

    p->library = strdup(path);
    return p->library == NULL ? bk_err_nomem("path of a library")
        : pt_library_file_prepare(path);
}

static bool
ends_with(const char *name, const char *end)
{
    size_t len = strlen(name);

    return len >= strlen(end)
        && strcmp(name + len - strlen(end), end) == 0;
}

static TRITONSERVER_Error *
metadata_read(pt_package_t *p, const char *path)
{
    bk_json_t *root;

    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return os_error("cannot read", path);
    }

    char *text = malloc(METADATA_MAX);
    size_t len = text == NULL ? 0 : fread(text, 1, METADATA_MAX, f);
    fclose(f);
    TRITONSERVER_Error *err = text == NULL ? bk_err_nomem("metadata")
        : len == METADATA_MAX ? bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "larger than %d bytes", METADATA_MAX) : bk_json_parse(text, len,
        &root);
    free(text);
    if (err != NULL) {
        return err;
    }

    err = metadata_check(p, root);
    bk_json_free(root);
    return err;
}

static TRITONSERVER_Error *
metadata_check(pt_package_t *p, const bk_json_t *root)
{
    const char *device = bk_json_string(
        bk_json_member(root, "AOTI_DEVICE_KEY"), NULL);
    const char *isa = bk_json_string(
        bk_json_member(root, "AOTI_CPU_ISA"), "");

    if (device != NULL) {
        free(p->device);
        p->device = strdup(device);
        if (p->device == NULL) {
            return bk_err_nomem("device of a package");
        }
    }

    return isa_check(isa);
}

/* Code for instructions that the processor lacks would end the process. */
static TRITONSERVER_Error *
isa_check(const char *isa)
{
#if defined(__x86_64__)
    const struct {
        const char *name;
        bool        there;
    } sets[] = {
        { "AVX2",        __builtin_cpu_supports("avx2") },
        { "AVX512",      __builtin_cpu_supports("avx512f")
                         && __builtin_cpu_supports("avx512vl")
                         && __builtin_cpu_supports("avx512bw")
                         && __builtin_cpu_supports("avx512dq") },
        { "AVX512_VNNI", __builtin_cpu_supports("avx512vnni") },
        { "AVX512_BF16", __builtin_cpu_supports("avx512bf16") }
    };

    for (const char *at = isa; *at != '\0'; ) {
        size_t len = strcspn(at, " ,");

        for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
            if (len == strlen(sets[i].name) && !sets[i].there
                && memcmp(at, sets[i].name, len) == 0)
            {
                return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                    "package was compiled for processors with %s, which this "
                    "one has not", sets[i].name);
            }
        }

        at += len;
        at += strspn(at, " ,");
    }
#else
    (void) isa;
#endif

    return NULL;
}

static TRITONSERVER_Error *
os_error(const char *what, const char *path)
{
    char text[128];

    return bk_err_new(errno == ENOENT ? TRITONSERVER_ERROR_NOT_FOUND
        : TRITONSERVER_ERROR_INTERNAL, "%s \"%s\": %s", what, path,
        strerror_r(errno, text, sizeof(text)));
}
