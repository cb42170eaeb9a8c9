/*
 * A core without models, for tests of the nginx side: it takes the lease,
 * welcomes workers, answers calls, says on its log what it sees, and leaves a
 * child and a name in /dev/shm behind when it is killed.
 *
 * A call is answered with "true" (field 1 of the health messages).  The text
 * "never" in its bytes (a model's name) keeps the answer back for good, until
 * CANCEL; "slow" for half a second; "chatty" until stdout takes no more.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/wire/server.h"
#include "core/wire/sockets.h"
#include "core_config.pb-c.h"

#define FD_REGISTRATION 3
#define FD_LEASE        4
#define FD_CONFIG       5
#define FD_RECORDS      6
#define FD_JOURNAL      7
#define FD_CRASH_PAGE   8
#define FD_CONFIGURE    9

#define MAX_WORKERS     64
#define MAX_HELD        4096
#define SLOW_NS         500000000u
#define CHAT_BYTES      (64u << 20)

typedef struct {
    inf_channel_t *channel;
    uint32_t       slot;
    uint32_t       generation;
    uint64_t       due_ns;      /* 0: when it is cancelled                   */
} held_t;

typedef struct {
    inf_channel_t *workers[MAX_WORKERS];
    size_t         worker_count;
    held_t         held[MAX_HELD];
    size_t         held_count;
    uint64_t       generation;
    int            rejections;      /* of workers, still to come             */
    bool           end;
} core_t;

static void record(char level, const char *fmt, ...) INF_PRINTF(2, 3);
static bool take_lease(void);
static uint64_t read_config(int fd);
static void leave_traces(void);
static void registration(core_t *core);
static void configure(core_t *core);
static void welcome(core_t *core, const inf_hello_t *hello, size_t len,
    int *fds, size_t fd_count);
static void serve(core_t *core, inf_channel_t *ch);
static void submission(core_t *core, inf_channel_t *ch,
    const inf_submission_t *s);
static void hold(core_t *core, inf_channel_t *ch, const inf_submission_t *s,
    uint64_t due_ns);
static void fail_bare(inf_channel_t *ch, const inf_submission_t *s,
    inf_err_cause_t cause);
static void answer(inf_channel_t *ch, uint32_t slot, uint32_t generation,
    inf_status_t status, const void *data, size_t len);
static void answer_true(inf_channel_t *ch, uint32_t slot,
    uint32_t generation);
static void answer_due(core_t *core, uint64_t now_ns);
static void forget(core_t *core, size_t worker);
static void chat(void);
static bool contains(const void *data, size_t len, const char *text);

int
main(int argc, char **argv)
{
    static core_t core;

    if (argc != 2 || strcmp(argv[1], "--supervised") != 0) {
        fprintf(stderr, "usage: %s --supervised\n", argv[0]);
        return 2;
    }

    if (!take_lease()) {
        return 0;
    }

    for (int fd = 3; fd <= FD_CONFIGURE; fd++) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    }

    core.generation = read_config(FD_CONFIG);
    record('I', "fake core %d starts, configuration %llu", (int) getpid(),
        (unsigned long long) core.generation);
    printf("fake core writes to stdout\n");
    fflush(stdout);

    const char *env = getenv("INF_FAKE_ENV");
    record('I', "INF_FAKE_ENV=%s LD_PRELOAD=%s", env != NULL ? env : "",
        getenv("LD_PRELOAD") != NULL ? getenv("LD_PRELOAD") : "");
    if (getenv("INF_FAKE_DIE") != NULL) {
        fprintf(stderr, "fake core dies as it was told\n");
        abort();
    }

    if (getenv("INF_FAKE_REJECT") != NULL) {
        core.rejections = atoi(getenv("INF_FAKE_REJECT"));
    }

    leave_traces();

    while (!core.end) {
        struct pollfd fds[2 + 2 * MAX_WORKERS];
        nfds_t n = 0;
        int timeout = core.held_count > 0 ? 20 : -1;

        fds[n++] = (struct pollfd) { .fd = FD_REGISTRATION,
            .events = POLLIN };
        fds[n++] = (struct pollfd) { .fd = FD_CONFIGURE, .events = POLLIN };
        for (size_t i = 0; i < core.worker_count; i++) {
            fds[n++] = (struct pollfd) {
                .fd = inf_channel_control_fd(core.workers[i]),
                .events = POLLIN };
            fds[n++] = (struct pollfd) {
                .fd = inf_channel_event_fd(core.workers[i]),
                .events = POLLIN };
            if (!inf_channel_sleep(core.workers[i])) {
                timeout = 0;
            }
        }

        if (poll(fds, n, timeout) < 0 && errno != EINTR) {
            return 1;
        }

        size_t count = core.worker_count;
        for (size_t i = count; i-- > 0; ) {
            if (fds[3 + 2 * i].revents != 0) {
                inf_eventfd_clear(inf_channel_event_fd(core.workers[i]));
            }
            serve(&core, core.workers[i]);
            if (fds[2 + 2 * i].revents != 0) {
                forget(&core, i);
            }
        }

        answer_due(&core, inf_clock_ns());
        if (fds[0].revents != 0) {
            registration(&core);
        }
        if (fds[1].revents != 0) {
            configure(&core);
        }
    }

    char name[64];
    snprintf(name, sizeof(name), "/inference-core.%d.fake", (int) getpid());
    shm_unlink(name);
    record('I', "fake core %d ends", (int) getpid());
    kill(0, SIGTERM);
    return 0;
}

static void
record(char level, const char *fmt, ...)
{
    char text[512];
    va_list args;

    text[0] = level;
    va_start(args, fmt);
    int n = vsnprintf(text + 1, sizeof(text) - 1, fmt, args);
    va_end(args);

    if (n > 0) {
        send(FD_RECORDS, text, (size_t) n + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

static bool
take_lease(void)
{
    struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    return fcntl(FD_LEASE, F_SETLK, &fl) == 0;
}

static uint64_t
read_config(int fd)
{
    struct stat st;
    uint64_t generation = 0;

    if (fstat(fd, &st) != 0) {
        record('E', "no configuration");
        return 0;
    }

    uint8_t *data = malloc((size_t) st.st_size);
    if (data == NULL || pread(fd, data, (size_t) st.st_size, 0) < 0) {
        free(data);
        return 0;
    }

    NginxInference__CoreConfig *config =
        nginx_inference__core_config__unpack(NULL, (size_t) st.st_size, data);
    free(data);
    if (config == NULL) {
        record('E', "the configuration can't be read");
        return 0;
    }

    generation = config->generation;
    for (size_t i = 0; i < config->n_repositories; i++) {
        record('I', "repository %s", config->repositories[i]);
    }
    for (size_t i = 0; i < config->n_backend_settings; i++) {
        record('I', "setting %s: %s=%s", config->backend_settings[i]->backend,
            config->backend_settings[i]->key,
            config->backend_settings[i]->value);
    }
    nginx_inference__core_config__free_unpacked(config, NULL);
    return generation;
}

/* Leftovers of a kill that only the supervisor can clear up. */
static void
leave_traces(void)
{
    char name[64];

    snprintf(name, sizeof(name), "/inference-core.%d.fake", (int) getpid());
    int fd = shm_open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
    }

    if (fork() == 0) {
        prctl(PR_SET_NAME, "fake-stub");
        for (;;) {
            pause();
        }
    }

    signal(SIGTERM, SIG_IGN);
}

static void
registration(core_t *core)
{
    inf_hello_t hello;
    int fds[INF_SOCKET_MAX_FDS];
    size_t len, fd_count;
    inf_socket_result_t result;

    inf_err_t *err = inf_socket_recv(FD_REGISTRATION, &hello, sizeof(hello),
        &len, fds, INF_SOCKET_MAX_FDS, &fd_count, &result);
    if (err != NULL) {
        record('E', "registration: %s", inf_err_msg(err));
        inf_err_free(err);
        return;
    }

    if (result == INF_SOCKET_CLOSED) {
        core->end = true;
    } else if (result == INF_SOCKET_DONE) {
        welcome(core, &hello, len, fds, fd_count);
    }
}

static void
configure(core_t *core)
{
    inf_hello_t hello;
    int fd;
    size_t len, fd_count;
    inf_socket_result_t result;

    inf_err_t *err = inf_socket_recv(FD_CONFIGURE, &hello, sizeof(hello),
        &len, &fd, 1, &fd_count, &result);
    if (err != NULL) {
        record('E', "configuration: %s", inf_err_msg(err));
        inf_err_free(err);
        return;
    }

    if (result == INF_SOCKET_DONE && hello.kind == INF_HELLO_CONFIG
        && fd_count == 1)
    {
        record('I', "told of configuration %llu", (unsigned long long)
            hello.generation);
        if (hello.generation > core->generation) {
            core->generation = read_config(fd);
        }
        inf_fds_close(&fd, 1);
    }
}

static void
welcome(core_t *core, const inf_hello_t *hello, size_t len, int *fds,
    size_t fd_count)
{
    inf_channel_conf_t conf = {
        .response_bound = 64u << 20,
        .generation = core->generation
    };
    inf_channel_t *ch;
    inf_hello_t other = *hello;

    if (core->rejections > 0) {
        core->rejections--;
        other.magic++;
    }
    inf_err_t *err = inf_channel_accept(&other, len, fds, fd_count, &conf,
        &ch);
    if (err != NULL) {
        record('E', "worker rejected: %s", inf_err_msg(err));
        inf_err_free(err);
        return;
    }

    if (core->worker_count == MAX_WORKERS) {
        inf_channel_dead(ch);
        inf_channel_unref(ch);
        return;
    }

    core->workers[core->worker_count++] = ch;
    record('V', "worker %u", inf_channel_pid(ch));
}

static void
serve(core_t *core, inf_channel_t *ch)
{
    inf_submission_t s;

    for (;;) {
        switch (inf_channel_pop(ch, &s)) {
        case INF_CHANNEL_ENTRY:
            submission(core, ch, &s);
            break;
        case INF_CHANNEL_SKIPPED:
            break;
        case INF_CHANNEL_EMPTY:
        case INF_CHANNEL_BROKEN:
            return;
        }
    }
}

static void
submission(core_t *core, inf_channel_t *ch, const inf_submission_t *s)
{
    if (s->op == INF_SUBMIT_CANCEL) {
        for (size_t i = 0; i < core->held_count; i++) {
            held_t *h = &core->held[i];
            if (h->channel == ch && h->slot == s->slot
                && h->generation == s->generation)
            {
                record('I', "cancelled");
                answer(ch, s->slot, s->generation,
                    INF_STATUS(INF_ERR_CANCELLED), "cancelled", 9);
                *h = core->held[--core->held_count];
                return;
            }
        }
        return;
    }

    const void *data = inf_channel_request(ch, s->offset, s->length);
    if (data == NULL) {
        answer(ch, s->slot, s->generation, INF_STATUS(INF_ERR_INVALID_ARG),
            "no bytes", 8);
    } else if (contains(data, s->length, "never")) {
        hold(core, ch, s, 0);
    } else if (contains(data, s->length, "asleep")) {
        fail_bare(ch, s, INF_CAUSE_NOT_READY);
    } else if (contains(data, s->length, "silent")) {
        fail_bare(ch, s, INF_CAUSE_NONE);
    } else if (contains(data, s->length, "slow")) {
        hold(core, ch, s, inf_clock_ns() + SLOW_NS);
    } else {
        if (contains(data, s->length, "chatty")) {
            chat();
        }
        answer_true(ch, s->slot, s->generation);
    }
}

/* Until a write fails, which needs a reader that doesn't read. */
static void
chat(void)
{
    static const char line[] = "fake core writes what nobody reads\n";
    ssize_t n;

    for (size_t sent = 0; sent < CHAT_BYTES; sent += (size_t) n) {
        n = write(STDOUT_FILENO, line, sizeof(line) - 1);
        if (n <= 0) {
            record('I', "stdout takes no more");
            return;
        }
    }
}

/* No text: what a worker makes of it depends on the cause. */
static void
fail_bare(inf_channel_t *ch, const inf_submission_t *s, inf_err_cause_t cause)
{
    inf_completion_t c = {
        .flags = INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL
            | INF_COMPLETE_RELEASED,
        .status = INF_STATUS(INF_ERR_UNAVAILABLE),
        .cause = (uint8_t) cause,
        .slot = s->slot,
        .generation = s->generation
    };

    inf_channel_set_slot(ch, s->slot, INF_SLOT_ANSWERED);
    inf_channel_complete(ch, &c, NULL, 0);
}

static void
hold(core_t *core, inf_channel_t *ch, const inf_submission_t *s,
    uint64_t due_ns)
{
    if (core->held_count == MAX_HELD) {
        answer(ch, s->slot, s->generation, INF_STATUS(INF_ERR_UNAVAILABLE),
            "too many", 8);
        return;
    }

    core->held[core->held_count++] = (held_t) {
        .channel = ch, .slot = s->slot, .generation = s->generation,
        .due_ns = due_ns
    };
}

static void
answer(inf_channel_t *ch, uint32_t slot, uint32_t generation,
    inf_status_t status, const void *data, size_t len)
{
    inf_completion_t c = {
        .flags = INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL
            | INF_COMPLETE_RELEASED,
        .status = status,
        .slot = slot,
        .generation = generation
    };

    inf_channel_region_t *region = inf_channel_alloc(ch, len);
    if (region == NULL) {
        c.status = INF_STATUS(INF_ERR_UNAVAILABLE);
        len = 0;
    } else {
        memcpy(inf_channel_region_data(region), data, len);
    }

    inf_channel_set_slot(ch, slot, INF_SLOT_ANSWERED);
    inf_channel_complete(ch, &c, region, len);
}

static void
answer_true(inf_channel_t *ch, uint32_t slot, uint32_t generation)
{
    answer(ch, slot, generation, INF_OK, "\x08\x01", 2);
}

static void
answer_due(core_t *core, uint64_t now_ns)
{
    for (size_t i = core->held_count; i-- > 0; ) {
        held_t *h = &core->held[i];
        if (h->due_ns != 0 && h->due_ns <= now_ns) {
            answer_true(h->channel, h->slot, h->generation);
            *h = core->held[--core->held_count];
        }
    }
}

static void
forget(core_t *core, size_t worker)
{
    inf_channel_t *ch = core->workers[worker];

    for (size_t i = core->held_count; i-- > 0; ) {
        if (core->held[i].channel == ch) {
            core->held[i] = core->held[--core->held_count];
        }
    }

    record('V', "worker %u has left", inf_channel_pid(ch));
    inf_channel_dead(ch);
    inf_channel_unref(ch);
    core->workers[worker] = core->workers[--core->worker_count];
}

static bool
contains(const void *data, size_t len, const char *text)
{
    return memmem(data, len, text, strlen(text)) != NULL;
}
