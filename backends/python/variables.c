#include "variables.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX  (8u << 20)    /* bytes of all variables                    */
#define TOLD_MAX  500           /* bytes of a failed script's output         */

/* bash: conda-pack's script is for bash and zsh */
static const char activate_script[] =
    ". \"$1\" >&2 && exec /usr/bin/env -0";

static TRITONSERVER_Error *read_list(py_variables_t *v,
    const char *const *from, size_t count);
static TRITONSERVER_Error *set(py_variables_t *v, const char *name,
    const char *value);
static void drop(py_variables_t *v, const char *name);
static size_t find(const py_variables_t *v, const char *name);
static bool has(const char *directory, const char *name);
static TRITONSERVER_Error *put_bin_first(py_variables_t *v,
    const char *directory);
static TRITONSERVER_Error *run_activate(py_variables_t *v,
    const char *directory, unsigned limit_s);
static TRITONSERVER_Error *run_script(py_variables_t *v, const char *script,
    unsigned limit_s, int out, int told);
static int spawn_script(py_variables_t *v, const char *script, int out,
    int told, pid_t *pid);
static bool ends_within(pid_t pid, unsigned limit_s);
static TRITONSERVER_Error *script_failed(const char *script, int status,
    int told);
static TRITONSERVER_Error *read_printed(py_variables_t *v, int fd);
static TRITONSERVER_Error *take_printed(py_variables_t *v, const char *text,
    size_t len);

TRITONSERVER_Error *
py_variables_own(py_variables_t *v)
{
    size_t count = 0;

    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    return read_list(v, (const char *const *) environ, count);
}

TRITONSERVER_Error *
py_variables_activated(py_variables_t *v, const char *directory,
    unsigned limit_s)
{
    TRITONSERVER_Error *err = py_variables_own(v);
    if (err != NULL) {
        return err;
    }

    drop(v, "PYTHONHOME");
    if (has(directory, "pyvenv.cfg")) {
        err = set(v, "VIRTUAL_ENV", directory);
    } else {
        if (has(directory, "bin/activate") && access("/bin/bash", X_OK) == 0) {
            err = run_activate(v, directory, limit_s);
        }
        if (err == NULL && has(directory, "conda-meta")) {
            err = set(v, "CONDA_PREFIX", directory);
        }
    }
    if (err == NULL) {
        err = put_bin_first(v, directory);
    }
    if (err != NULL) {
        py_variables_free(v);
    }
    return err;
}

const char *
py_variables_get(const py_variables_t *v, const char *name)
{
    size_t i = find(v, name);
    return i < v->count ? v->items[i] + strlen(name) + 1 : NULL;
}

void
py_variables_free(py_variables_t *v)
{
    for (size_t i = 0; i < v->count; i++) {
        free(v->items[i]);
    }
    free(v->items);
    *v = (py_variables_t) { .items = NULL };
}

/* Replaces v's list by a copy; on success the old one is freed. */
static TRITONSERVER_Error *
read_list(py_variables_t *v, const char *const *from, size_t count)
{
    py_variables_t made = { .items = calloc(count + 1, sizeof(char *)) };

    for (; made.items != NULL && made.count < count; made.count++) {
        made.items[made.count] = strdup(from[made.count]);
        if (made.items[made.count] == NULL) {
            break;
        }
    }
    if (made.items == NULL || made.count < count) {
        py_variables_free(&made);
        return bk_err_nomem("environment variables");
    }
    py_variables_free(v);
    *v = made;
    return NULL;
}

static TRITONSERVER_Error *
set(py_variables_t *v, const char *name, const char *value)
{
    char *item;
    if (asprintf(&item, "%s=%s", name, value) < 0) {
        return bk_err_nomem("an environment variable");
    }
    size_t i = find(v, name);
    if (i < v->count) {
        free(v->items[i]);
        v->items[i] = item;
        return NULL;
    }
    char **items = realloc(v->items, (v->count + 2) * sizeof(char *));
    if (items == NULL) {
        free(item);
        return bk_err_nomem("environment variables");
    }
    v->items = items;
    v->items[v->count++] = item;
    v->items[v->count] = NULL;
    return NULL;
}

static void
drop(py_variables_t *v, const char *name)
{
    size_t i = find(v, name);
    if (i < v->count) {
        free(v->items[i]);
        v->items[i] = v->items[--v->count];
        v->items[v->count] = NULL;
    }
}

/* The index of a variable; count: none. */
static size_t
find(const py_variables_t *v, const char *name)
{
    size_t len = strlen(name);
    size_t i = 0;

    while (i < v->count && (strncmp(v->items[i], name, len) != 0
        || v->items[i][len] != '='))
    {
        i++;
    }
    return i;
}

static bool
has(const char *directory, const char *name)
{
    char path[4096];
    int n = snprintf(path, sizeof(path), "%s/%s", directory, name);
    return n > 0 && (size_t) n < sizeof(path) && access(path, R_OK) == 0;
}

static TRITONSERVER_Error *
put_bin_first(py_variables_t *v, const char *directory)
{
    const char *path = py_variables_get(v, "PATH");
    char *bin;
    char *joined;

    if (asprintf(&bin, "%s/bin", directory) < 0) {
        return bk_err_nomem("a PATH");
    }
    size_t len = strlen(bin);
    if (path != NULL && strncmp(path, bin, len) == 0
        && (path[len] == ':' || path[len] == '\0'))
    {
        free(bin);
        return NULL;
    }
    int n = asprintf(&joined, "%s%s%s", bin, path != NULL ? ":" : "",
        path != NULL ? path : "");
    free(bin);
    if (n < 0) {
        return bk_err_nomem("a PATH");
    }
    TRITONSERVER_Error *err = set(v, "PATH", joined);
    free(joined);
    return err;
}

/* Replaces v by the script's environment. */
static TRITONSERVER_Error *
run_activate(py_variables_t *v, const char *directory, unsigned limit_s)
{
    TRITONSERVER_Error *err;
    char *script;
    if (asprintf(&script, "%s/bin/activate", directory) < 0) {
        return bk_err_nomem("the path of an activate script");
    }

    int out = memfd_create("python-variables", MFD_CLOEXEC);
    int told = memfd_create("python-activate", MFD_CLOEXEC);
    if (out < 0 || told < 0) {
        err = bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "cannot create a file in memory: %s", strerror(errno));
    } else {
        err = run_script(v, script, limit_s, out, told);
    }
    if (out >= 0) {
        close(out);
    }
    if (told >= 0) {
        close(told);
    }
    free(script);
    return err;
}

static TRITONSERVER_Error *
run_script(py_variables_t *v, const char *script, unsigned limit_s, int out,
    int told)
{
    pid_t pid;
    int status;

    int rc = spawn_script(v, script, out, told, &pid);
    if (rc != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "cannot run \"%s\": %s", script, strerror(rc));
    }
    bool ends = ends_within(pid, limit_s);
    if (!ends) {
        (void) kill(-pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
                "cannot wait for \"%s\": %s", script, strerror(errno));
        }
    }
    if (!ends) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "\"%s\" has not "
            "ended within the %u s of stub-timeout-seconds", script, limit_s);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return script_failed(script, status, told);
    }
    return read_printed(v, out);
}

/* Whether the process ends in time; it is still to be waited for. */
static bool
ends_within(pid_t pid, unsigned limit_s)
{
    int fd = (int) syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = { .fd = fd, .events = POLLIN };
    int n = -1;

    while (fd >= 0 && (n = poll(&end, 1, (int) limit_s * 1000)) < 0
        && errno == EINTR)
    {
        /* again, from the start */
    }
    if (fd >= 0) {
        close(fd);
    }
    return n != 0;
}

/* Starts the script; returns an error number. */
static int
spawn_script(py_variables_t *v, const char *script, int out, int told,
    pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    char *const arguments[] = { "bash", "-c", (char *) activate_script,
        "bash", (char *) script, NULL };

    int rc = posix_spawn_file_actions_init(&files);
    if (rc != 0) {
        return rc;
    }
    rc = posix_spawnattr_init(&attributes);
    if (rc != 0) {
        posix_spawn_file_actions_destroy(&files);
        return rc;
    }

    sigemptyset(&none);
    rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    rc = rc != 0 ? rc : posix_spawn_file_actions_adddup2(&files, out, 1);
    rc = rc != 0 ? rc : posix_spawn_file_actions_adddup2(&files, told, 2);
    rc = rc != 0 ? rc : posix_spawnattr_setsigmask(&attributes, &none);
    rc = rc != 0 ? rc : posix_spawnattr_setpgroup(&attributes, 0);
    rc = rc != 0 ? rc : posix_spawnattr_setflags(&attributes,
        POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    rc = rc != 0 ? rc : posix_spawn(pid, "/bin/bash", &files, &attributes,
        arguments, v->items);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return rc;
}

static TRITONSERVER_Error *
script_failed(const char *script, int status, int told)
{
    char text[TOLD_MAX + 1];

    ssize_t n = pread(told, text, TOLD_MAX, 0);
    n = n > 0 ? n : 0;
    while (n > 0 && text[n - 1] == '\n') {
        n--;
    }
    text[n] = '\0';
    if (WIFSIGNALED(status)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "\"%s\" was ended by signal %d: %s", script, WTERMSIG(status),
            text);
    }
    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "\"%s\" ended with status %d: %s", script, WEXITSTATUS(status), text);
}

/* Reads the output of env -0: strings, each with a NUL. */
static TRITONSERVER_Error *
read_printed(py_variables_t *v, int fd)
{
    off_t len = lseek(fd, 0, SEEK_END);
    if (len <= 0 || len > TEXT_MAX) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "an activate script leaves %lld bytes of variables; 1 to %u are "
            "accepted", (long long) len, TEXT_MAX);
    }
    char *text = malloc((size_t) len);
    if (text == NULL) {
        return bk_err_nomem("environment variables");
    }
    TRITONSERVER_Error *err;
    if (pread(fd, text, (size_t) len, 0) != len || text[len - 1] != '\0') {
        err = bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "the variables of an activate script cannot be read");
    } else {
        err = take_printed(v, text, (size_t) len);
    }
    free(text);
    return err;
}

/* Takes the variables, except those that bash itself sets. */
static TRITONSERVER_Error *
take_printed(py_variables_t *v, const char *text, size_t len)
{
    static const char *const shell[] = { "_", "SHLVL", "PWD", "OLDPWD" };
    py_variables_t made = { .items = NULL };
    TRITONSERVER_Error *err = NULL;
    size_t count = 0;

    for (size_t i = 0; i < len; i++) {
        count += text[i] == '\0';
    }
    const char **list = malloc(count * sizeof(char *));
    if (list == NULL) {
        return bk_err_nomem("environment variables");
    }
    for (size_t i = 0, at = 0; i < count; i++) {
        list[i] = text + at;
        at += strlen(text + at) + 1;
    }
    err = read_list(&made, list, count);
    free(list);
    for (size_t i = 0; err == NULL && i < sizeof(shell) / sizeof(*shell); i++)
    {
        const char *value = py_variables_get(v, shell[i]);
        drop(&made, shell[i]);
        if (value != NULL) {
            err = set(&made, shell[i], value);
        }
    }
    if (err != NULL) {
        py_variables_free(&made);
        return err;
    }
    py_variables_free(v);
    *v = made;
    return NULL;
}
