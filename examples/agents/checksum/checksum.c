/*
 * checksum.c - a repository agent that lets a model load only if its files
 *              are those that its configuration says.
 *
 * One parameter per file: the name is "<algorithm>:<path in the model's
 * directory>", the value its digest in hexadecimal.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digest.h"
#include "triton/core/tritonrepoagent.h"

#define CHUNK (64 * 1024)

static TRITONSERVER_Error *check_model(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model);
static TRITONSERVER_Error *check_file(const char *directory, const char *key,
    const char *expected);
static TRITONSERVER_Error *open_inside(const char *directory, const char *path,
    int *fd);
static TRITONSERVER_Error *digest_file(int fd, const char *path, digest_t *d);
static TRITONSERVER_Error *error(TRITONSERVER_Error_Code code,
    const char *fmt, ...) __attribute__((format(printf, 2, 3)));

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_Initialize(TRITONREPOAGENT_Agent *agent)
{
    uint32_t major, minor;

    (void) agent;
    TRITONSERVER_Error *err = TRITONREPOAGENT_ApiVersion(&major, &minor);
    if (err != NULL) {
        return err;
    }

    if (major != TRITONREPOAGENT_API_VERSION_MAJOR
        || minor < TRITONREPOAGENT_API_VERSION_MINOR)
    {
        return error(TRITONSERVER_ERROR_UNSUPPORTED, "the server has version"
            " %u.%u of the repository agents' interface, this agent needs"
            " %d.%d", major, minor, TRITONREPOAGENT_API_VERSION_MAJOR,
            TRITONREPOAGENT_API_VERSION_MINOR);
    }

    return NULL;
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ActionType action_type)
{
    return action_type == TRITONREPOAGENT_ACTION_LOAD
        ? check_model(agent, model) : NULL;
}

static TRITONSERVER_Error *
check_model(TRITONREPOAGENT_Agent *agent, TRITONREPOAGENT_AgentModel *model)
{
    TRITONREPOAGENT_ArtifactType type;
    const char *directory;
    uint32_t count;

    TRITONSERVER_Error *err = TRITONREPOAGENT_ModelRepositoryLocation(agent,
        model, &type, &directory);
    if (err == NULL && type != TRITONREPOAGENT_ARTIFACT_FILESYSTEM) {
        err = error(TRITONSERVER_ERROR_UNSUPPORTED,
            "Unsupported filesystem: %d", (int) type);
    }
    if (err == NULL) {
        err = TRITONREPOAGENT_ModelParameterCount(agent, model, &count);
    }

    for (uint32_t i = 0; err == NULL && i < count; i++) {
        const char *key, *value;

        err = TRITONREPOAGENT_ModelParameter(agent, model, i, &key, &value);
        if (err == NULL) {
            err = check_file(directory, key, value);
        }
    }

    return err;
}

static TRITONSERVER_Error *
check_file(const char *directory, const char *key, const char *expected)
{
    char text[DIGEST_TEXT_MAX];
    digest_t d;
    int fd;

    const char *colon = strchr(key, ':');
    if (colon == NULL) {
        return error(TRITONSERVER_ERROR_INVALID_ARG, "failed to parse key:"
            " %s", key);
    }
    if (!digest_init(&d, key, (size_t) (colon - key))) {
        return error(TRITONSERVER_ERROR_INVALID_ARG, "Unsupported checksum"
            " algorithm: %.*s", (int) (colon - key), key);
    }

    const char *path = colon + 1;
    TRITONSERVER_Error *err = open_inside(directory, path, &fd);
    if (err != NULL) {
        return err;
    }

    err = digest_file(fd, path, &d);
    close(fd);
    if (err != NULL) {
        return err;
    }

    digest_text(&d, text);
    return strcasecmp(text, expected) == 0 ? NULL
        : error(TRITONSERVER_ERROR_INVALID_ARG, "Mismatched %s hash for file"
            " %s, expect: %s, got: %s", digest_name(&d), path, expected,
            text);
}

/* A regular file that is below directory with all links followed. */
static TRITONSERVER_Error *
open_inside(const char *directory, const char *path, int *fd)
{
    char whole[PATH_MAX], real[PATH_MAX], root[PATH_MAX];
    struct stat sb;

    int len = snprintf(whole, sizeof(whole), "%s/%s", directory, path);
    if (len < 0 || (size_t) len >= sizeof(whole)) {
        return error(TRITONSERVER_ERROR_INVALID_ARG, "path of file %s is too"
            " long", path);
    }
    if (realpath(directory, root) == NULL) {
        return error(TRITONSERVER_ERROR_NOT_FOUND, "failed to open directory"
            " %s: %s", directory, strerror(errno));
    }
    if (realpath(whole, real) == NULL) {
        return error(TRITONSERVER_ERROR_NOT_FOUND, "failed to open file %s:"
            " %s", path, strerror(errno));
    }

    size_t root_len = strlen(root);
    if (strncmp(real, root, root_len) != 0 || real[root_len] != '/') {
        return error(TRITONSERVER_ERROR_INVALID_ARG, "file %s is outside the"
            " model's directory", path);
    }

    /* O_NONBLOCK: a fifo must not hold up the load */
    *fd = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) {
        return error(TRITONSERVER_ERROR_NOT_FOUND, "failed to open file %s:"
            " %s", path, strerror(errno));
    }
    if (fstat(*fd, &sb) != 0 || !S_ISREG(sb.st_mode)) {
        close(*fd);
        return error(TRITONSERVER_ERROR_INVALID_ARG, "%s is not a regular"
            " file", path);
    }

    return NULL;
}

static TRITONSERVER_Error *
digest_file(int fd, const char *path, digest_t *d)
{
    char *chunk = malloc(CHUNK);
    if (chunk == NULL) {
        return error(TRITONSERVER_ERROR_UNAVAILABLE, "out of memory");
    }

    for (;;) {
        ssize_t n = read(fd, chunk, CHUNK);
        if (n == 0) {
            break;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            int errnum = errno;
            free(chunk);
            return error(TRITONSERVER_ERROR_INTERNAL, "failed to read file"
                " %s: %s", path, strerror(errnum));
        }

        digest_add(d, chunk, (size_t) n);
    }

    free(chunk);
    return NULL;
}

static TRITONSERVER_Error *
error(TRITONSERVER_Error_Code code, const char *fmt, ...)
{
    char text[2 * PATH_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return TRITONSERVER_ErrorNew(code, text);
}
