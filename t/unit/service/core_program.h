/*
 * core_program.h - the core program as a child, and its log.
 *
 * Owner    the test: core_start, then core_stop.
 * Thread   one.
 * Units    ms.
 * Errors   a test fails at once.
 * Route    unit tests only
 *
 * The test holds both ends of what nginx's master would keep.
 */

#ifndef INF_T_SERVICE_CORE_PROGRAM_H
#define INF_T_SERVICE_CORE_PROGRAM_H

#include "temp_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "core/proto/message.h"
#include "core/proto/text_format.h"
#include "core/service/core_main.h"
#include "core/wire/sockets.h"
#include "core_config.pb-c.h"

#define PATIENCE_MS 60000
#define FDS         10          /* of the core, from 0                       */

static struct {
    char *tree;
    char  build[4096];
    pid_t core;
    int   registration[2];
    int   configure[2];
    int   records[2];
    int   lease;
    char  log[1 << 20];
    size_t log_len;
} w;

static inline void
assert_done(inf_err_t *err)
{
    if (err != NULL) {
        fail_msg("%s", inf_err_msg(err));
    }
}

static inline int
config_fd(const char *repository, uint64_t generation)
{
    char text[8192];
    ProtobufCMessage *m;
    int fd;

    snprintf(text, sizeof(text), "repositories: '%s' backend_directories:"
        " '%s/backends' generation: %llu response_arena_bytes: 67108864"
        " model_control: EXPLICIT load_models: '*'",
        repository, w.build, (unsigned long long) generation);
    assert_done(inf_text_parse(&nginx_inference__core_config__descriptor,
        inf_slice_str(text), "config", &m));
    size_t len = protobuf_c_message_get_packed_size(m);
    unsigned char *bytes = malloc(len + 1);
    assert_non_null(bytes);
    protobuf_c_message_pack(m, bytes);
    assert_done(inf_memfd_sealed("config", bytes, len, &fd));
    free(bytes);
    inf_message_free(m);
    return fd;
}

/* Of the models in the tree's repository. */
static inline void
core_start(void)
{
    char program[4200];
    ssize_t n = readlink("/proc/self/exe", w.build, sizeof(w.build) - 1);

    assert_true(n > 0);
    w.build[n] = '\0';
    *strrchr(w.build, '/') = '\0';
    int config = config_fd(tree_path(w.tree, "repository"), 1);

    assert_done(inf_socket_pair(w.registration));
    assert_done(inf_socket_pair(w.configure));
    assert_done(inf_socket_pair(w.records));
    assert_done(inf_memfd_new("lease", 4096, &w.lease));
    snprintf(program, sizeof(program), "%s/inference-core", w.build);

    int fds[FDS] = {
        0, 1, 2,
        [INF_CORE_FD_REGISTRATION] = w.registration[1],
        [INF_CORE_FD_LEASE] = w.lease,
        [INF_CORE_FD_CONFIG] = config,
        [INF_CORE_FD_LOG] = w.records[1],
        [INF_CORE_FD_JOURNAL] = -1,
        [INF_CORE_FD_CRASH_PAGE] = -1,
        [INF_CORE_FD_CONFIGURE] = w.configure[1]
    };

    w.core = fork();
    assert_true(w.core >= 0);
    if (w.core == 0) {
        for (int i = 3; i < FDS; i++) {
            fds[i] = fds[i] != -1 ? fcntl(fds[i], F_DUPFD, 100) : -1;
        }
        for (int i = 3; i < FDS; i++) {
            close(i);
            if (fds[i] != -1) {
                dup2(fds[i], i);
                close(fds[i]);
            }
        }
        execl(program, "inference-core", "--supervised", (char *) NULL);
        _exit(127);
    }

    close(config);
    inf_fds_close(&w.registration[1], 1);
    inf_fds_close(&w.configure[1], 1);
}

static inline void
read_log(void)
{
    char record[8192];
    ssize_t n;

    while ((n = recv(w.records[0], record, sizeof(record), MSG_DONTWAIT)) > 0)
    {
        if (w.log_len + (size_t) n + 2 > sizeof(w.log)) {
            w.log_len = 0;              /* only what is new is looked for    */
        }
        memcpy(w.log + w.log_len, record, (size_t) n);
        w.log_len += (size_t) n;
        w.log[w.log_len++] = '\n';
        w.log[w.log_len] = '\0';
    }
}

static inline bool
log_has(const char *text)
{
    read_log();
    return strstr(w.log, text) != NULL;
}

static inline void
wait_log(const char *text)
{
    for (int ms = 0; ms < PATIENCE_MS && !log_has(text); ms += 5) {
        poll(NULL, 0, 5);
    }
    if (!log_has(text)) {
        fail_msg("the core's log lacks \"%s\"", text);
    }
}

/* Its exit status as waitpid has it. */
static inline int
core_stop(void)
{
    int status = 0;

    inf_fds_close(w.registration, 2);
    inf_fds_close(w.configure, 2);
    for (int ms = 0; w.core > 0 && ms < PATIENCE_MS; ms += 5) {
        read_log();
        if (waitpid(w.core, &status, WNOHANG) != 0) {
            w.core = 0;
        }
        poll(NULL, 0, 5);
    }
    if (w.core > 0) {
        kill(w.core, SIGKILL);
        waitpid(w.core, &status, 0);
    }
    inf_fds_close(w.records, 2);
    close(w.lease);
    return status;
}

#endif /* INF_T_SERVICE_CORE_PROGRAM_H */
