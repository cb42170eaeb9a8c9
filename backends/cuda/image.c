/* image.c - see image.h */

#include "image.h"

#include "image_check.h"
#include "includes.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OWN_PARTS 4             /* of a key, before the headers              */

static TRITONSERVER_Error *compile(gpu_runtime_t *rt,
    const gpu_source_t *source, const char *options,
    const gpu_device_t *device, char **code);
static bool make_key(gpu_key_t *key, const gpu_source_t *source,
    const char *options, const char *arch, int version);
static bool reads_other_files(const char *options);
static TRITONSERVER_Error *source_read(gpu_source_t *s,
    const gpu_model_file_t *file);
static TRITONSERVER_Error *headers_read(gpu_source_t *s,
    const gpu_model_file_t *file, struct dirent **names, int count);
static TRITONSERVER_Error *header_read(gpu_source_t *s,
    const gpu_model_file_t *file, const char *name);
static void source_fini(gpu_source_t *s);
static int is_header(const struct dirent *entry);

TRITONSERVER_Error *
gpu_image_make(gpu_runtime_t *rt, const gpu_model_file_t *file,
    const char *options, const gpu_device_t *device, char **code)
{
    gpu_source_t source = { .path = file->path };
    size_t len;

    if (file->kind != GPU_FILE_SOURCE) {
        TRITONSERVER_Error *err = gpu_file_read(file->path, code, &len);
        return err != NULL ? err : gpu_image_check(*code, len);
    }

    TRITONSERVER_Error *err = source_read(&source, file);
    if (err == NULL) {
        err = compile(rt, &source, options, device, code);
    }
    source_fini(&source);
    return err;
}

static TRITONSERVER_Error *
compile(gpu_runtime_t *rt, const gpu_source_t *source, const char *options,
    const gpu_device_t *device, char **code)
{
    char arch[GPU_ARCH_MAX];
    gpu_compiler_t *compiler;
    gpu_cache_t *cache;
    gpu_key_t key;
    size_t len;

    TRITONSERVER_Error *err = gpu_runtime_compiler(rt, &compiler, &cache);
    if (err == NULL) {
        err = gpu_compiler_arch(compiler, device->capability, arch);
    }
    if (err != NULL) {
        return err;
    }

    /* a key says nothing about files elsewhere */
    bool keeps = !reads_other_files(options)
        && gpu_includes_are_known(source) && make_key(&key, source, options,
            arch, gpu_compiler_version(compiler));
    if (keeps && gpu_cache_read(cache, &key, code, &len)) {
        bk_log(TRITONSERVER_LOG_INFO, "%s: the code compiled earlier for %s"
            " is used", source->path, arch);
        return NULL;
    }

    err = gpu_compiler_run(compiler, source, arch, options, code, &len);
    if (err == NULL) {
        bk_log(TRITONSERVER_LOG_INFO, "%s: compiled for %s by NVRTC %d.%d",
            source->path, arch, gpu_compiler_version(compiler) / 1000,
            gpu_compiler_version(compiler) % 1000 / 10);
    }
    if (err == NULL && keeps) {
        gpu_cache_write(cache, &key, *code, len);
    }
    return err;
}

static bool
make_key(gpu_key_t *key, const gpu_source_t *source, const char *options,
    const char *arch, int version)
{
    size_t count = OWN_PARTS + 2 * (size_t) source->header_count;
    size_t n = 0;

    gpu_key_part_t *parts = calloc(count, sizeof(*parts));
    if (parts == NULL) {
        return false;
    }

    /* not the path: a copy of the model has the same code */
    const char *const own[] = { source->text, options, arch };
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        parts[n++] = (gpu_key_part_t) { own[i], strlen(own[i]) };
    }
    parts[n++] = (gpu_key_part_t) { &version, sizeof(version) };
    for (int i = 0; i < source->header_count; i++) {
        const char *name = source->header_names[i];
        const char *text = source->headers[i];
        parts[n++] = (gpu_key_part_t) { name, strlen(name) };
        parts[n++] = (gpu_key_part_t) { text, strlen(text) };
    }

    bool made = gpu_key_make(key, parts, n);
    free(parts);
    return made;
}

/* Directories or files to include, by any spelling of the compiler's. */
static bool
reads_other_files(const char *options)
{
    return strstr(options, "-I") != NULL || strstr(options, "include") != NULL
        || strstr(options, "pch") != NULL
        || strstr(options, "options-file") != NULL;
}

static TRITONSERVER_Error *
source_read(gpu_source_t *s, const gpu_model_file_t *file)
{
    struct dirent **names;
    size_t len;

    TRITONSERVER_Error *err = gpu_file_read(file->path, &s->text, &len);
    if (err != NULL) {
        return err;
    }
    if (memchr(s->text, '\0', len) != NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "\"%s\" is no"
            " text: it has a zero byte", file->path);
    }

    int count = scandir(file->directory, &names, is_header, alphasort);
    if (count < 0) {
        return bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, "cannot list \"%s\":"
            " %s", file->directory, strerror(errno));
    }

    err = headers_read(s, file, names, count);
    for (int i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
    return err;
}

static TRITONSERVER_Error *
headers_read(gpu_source_t *s, const gpu_model_file_t *file,
    struct dirent **names, int count)
{
    s->headers = calloc((size_t) count + 1, sizeof(*s->headers));
    s->header_names = calloc((size_t) count + 1, sizeof(*s->header_names));
    if (s->headers == NULL || s->header_names == NULL) {
        return bk_err_nomem("headers of a model");
    }

    TRITONSERVER_Error *err = NULL;
    for (int i = 0; err == NULL && i < count; i++) {
        err = header_read(s, file, names[i]->d_name);
    }
    return err;
}

/* A directory, a pipe or a link to nothing is no file to include. */
static TRITONSERVER_Error *
header_read(gpu_source_t *s, const gpu_model_file_t *file, const char *name)
{
    struct stat st;
    char *path;
    size_t len;

    TRITONSERVER_Error *err = gpu_model_file_beside(file, name, &path);
    if (err != NULL) {
        return err;
    }

    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        int i = s->header_count++;
        s->header_names[i] = strdup(name);
        err = s->header_names[i] == NULL ? bk_err_nomem("headers of a model")
            : gpu_file_read(path, &s->headers[i], &len);
    }
    free(path);
    return err;
}

static void
source_fini(gpu_source_t *s)
{
    for (int i = 0; i < s->header_count; i++) {
        free(s->headers[i]);
        free(s->header_names[i]);
    }
    free(s->headers);
    free(s->header_names);
    free(s->text);
}

/* Editors hide what they have not saved behind a dot in front. */
static int
is_header(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return dot != NULL && entry->d_name[0] != '.'
        && (strcmp(dot, ".cuh") == 0 || strcmp(dot, ".h") == 0
            || strcmp(dot, ".hpp") == 0);
}
