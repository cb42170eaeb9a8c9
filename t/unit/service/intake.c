#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/service/control.h"
#include "core/service/infer.h"
#include "core/service/intake.h"
#include "core/wire/client.h"
#include "core/wire/sockets.h"
#include "core_config_of.h"

/* An intake over a server without models, run by a thread. */
typedef struct {
    int                        registration[2];
    int                        configure[2];
    int                        listen_fd;
    struct sockaddr_un         address;
    inf_server_t              *server;
    inf_intake_t              *intake;
    pthread_t                  thread;
    _Atomic int                configured;
    _Atomic uint64_t           generation;
    int                        fds;         /* open before                   */
} world_t;

static world_t w;

static int
open_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) != -1;
    }
    return n;
}

static void
configure(void *userp, int fd, uint64_t generation)
{
    (void) userp;
    assert_int_equal(close(fd), 0);
    w.generation = generation;
    w.configured++;
}

static void *
run(void *arg)
{
    inf_intake_run(arg);
    return NULL;
}

#define FRIEND   65533
#define OTHER_USER 65534

static const uid_t users[] = { FRIEND };

/* All but the thread. */
static void
open_world(void)
{
    memset(&w, 0, sizeof(w));
    w.fds = open_fds();
    assert_null(inf_socket_pair(w.registration));
    assert_null(inf_socket_pair(w.configure));

    w.address.sun_family = AF_UNIX;
    snprintf(w.address.sun_path + 1, 60, "inf-unit-intake-%d", (int) getpid());
    w.listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK
        | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w.listen_fd, (void *) &w.address,
        sizeof(w.address)), 0);
    assert_int_equal(listen(w.listen_fd, 8), 0);

    const inf_intake_options_t options = {
        .registration_fd = w.registration[1],
        .configure_fd = w.configure[1],
        .listen_fd = w.listen_fd,
        .users = users,
        .user_count = 1,
        .response_bound = 1u << 20,
        .configure = configure
    };
    assert_null(inf_intake_new(&options, &w.intake));
    inf_core_config_t *config = core_config_of("%s", "");
    assert_null(inf_server_start(config, &inf_intake_host, w.intake, NULL,
        &w.server));
    inf_core_config_unref(config);
    assert_null(inf_intake_attach(w.intake, w.server));
}

static void
start_world(void)
{
    assert_int_equal(pthread_create(&w.thread, NULL, run, w.intake), 0);
}

static int
setup(void **state)
{
    (void) state;
    open_world();
    start_world();
    return 0;
}

/* The end that everyone has: nothing stays open. */
static int
teardown(void **state)
{
    (void) state;
    inf_fds_close(&w.registration[0], 1);   /* the last nginx process goes   */
    inf_fds_close(&w.configure[0], 1);
    pthread_join(w.thread, NULL);
    inf_intake_close(w.intake);
    assert_true(inf_server_stop(w.server, UINT64_C(60000000000)));
    inf_intake_free(w.intake);
    close(w.registration[1]);
    inf_fds_close(w.configure, 2);
    close(w.listen_fd);
    assert_int_equal(open_fds(), w.fds);
    return 0;
}

static int
dial(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
        0);
    assert_int_equal(connect(fd, (void *) &w.address, sizeof(w.address)), 0);
    return fd;
}

static void
join_with(int fd, uint64_t arena, inf_client_t **out)
{
    const inf_client_conf_t conf = { .arena_bound = arena, .slots = 16 };
    bool again = true;

    assert_null(inf_client_new(&conf, out));
    assert_null(inf_client_hello(*out, fd, &again));
    assert_false(again);
    do {
        struct pollfd p = {
            .fd = inf_client_control_fd(*out), .events = POLLIN
        };
        assert_int_equal(poll(&p, 1, 60000), 1);
        assert_null(inf_client_welcome(*out, &again));
    } while (again);
    assert_true(inf_client_connected(*out));
}

static void
join_at(int fd, inf_client_t **out)
{
    join_with(fd, 1u << 20, out);
}

static void
say(int fd, const void *data, size_t len, int fd_count)
{
    int fds[INF_SOCKET_MAX_FDS];
    inf_socket_result_t result;

    for (int i = 0; i < fd_count; i++) {
        fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
    }
    do {
        assert_null(inf_socket_send(fd, data, len, fds, (size_t) fd_count,
            &result));
    } while (result == INF_SOCKET_AGAIN);
    inf_fds_close(fds, (size_t) fd_count);
}

static inf_hello_t
hello_of(uint32_t kind)
{
    return (inf_hello_t) {
        .magic = INF_CHANNEL_MAGIC, .version = INF_CHANNEL_VERSION,
        .min_version = INF_CHANNEL_MIN_VERSION, .size = sizeof(inf_hello_t),
        .kind = kind, .ring_entries = INF_RING_ENTRIES,
        .entry_size = INF_RING_ENTRY_SIZE, .slots = 16,
        .rings_size = 1u << 20, .request_arena_size = 1u << 20,
        .generation = 3
    };
}

static void
workers_come_over_both_sockets(void **state)
{
    (void) state;
    inf_client_t *a, *b;
    int fd = dial();

    join_at(w.registration[0], &a);
    join_at(fd, &b);
    inf_client_free(a);
    inf_client_free(b);
    close(fd);
}

/* A process of that user registers; whether it was welcome. */
static bool
is_admitted(uid_t uid)
{
    int status;

    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const inf_client_conf_t conf = { .arena_bound = 1u << 20 };
        inf_client_t *c;
        bool again = true;

        alarm(60);
        if (setuid(uid) != 0) {
            _exit(2);
        }
        int fd = dial();
        if (inf_client_new(&conf, &c) != NULL) {
            _exit(2);
        }
        if (inf_client_hello(c, fd, &again) != NULL) {
            _exit(1);                       /* it is closed already          */
        }
        again = true;
        while (again) {
            struct pollfd p[] = {
                { .fd = inf_client_control_fd(c), .events = POLLIN },
                { .fd = fd, .events = POLLIN }
            };
            poll(p, 2, -1);
            if (inf_client_welcome(c, &again) != NULL || p[1].revents != 0) {
                _exit(1);
            }
        }
        _exit(0);
    }

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 0;
}

static void
other_users_are_not_admitted(void **state)
{
    (void) state;
    if (geteuid() != 0) {
        print_message("this needs root, to become another user\n");
        skip();
    }
    assert_true(is_admitted(0));
    assert_true(is_admitted(FRIEND));
    assert_false(is_admitted(OTHER_USER));
    assert_false(is_admitted(1));
}

/* However it comes: it can't take what others need. */
static void
one_process_has_few_channels_and_connections(void **state)
{
    (void) state;
    enum { ALLOWED = 4 };
    inf_client_t *c[ALLOWED], *further;
    int fds[ALLOWED + 1];
    char byte;
    bool again;
    const inf_client_conf_t conf = { .arena_bound = 1u << 20 };

    for (int i = 0; i <= ALLOWED; i++) {
        fds[i] = dial();
    }
    struct pollfd p = { .fd = fds[ALLOWED], .events = POLLIN };
    assert_int_equal(poll(&p, 1, 60000), 1);
    assert_true(recv(p.fd, &byte, 1, MSG_DONTWAIT) <= 0);

    for (int i = 0; i < ALLOWED; i++) {
        join_at(i % 2 != 0 ? w.registration[0] : fds[i], &c[i]);
    }
    assert_null(inf_client_new(&conf, &further));
    assert_null(inf_client_hello(further, w.registration[0], &again));
    p.fd = inf_client_control_fd(further);
    assert_int_equal(poll(&p, 1, 60000), 1);
    inf_err_t *err = inf_client_welcome(further, &again);
    assert_non_null(err);
    inf_err_free(err);
    inf_client_free(further);

    for (int i = 0; i < ALLOWED; i++) {
        inf_client_free(c[i]);
    }
    inf_fds_close(fds, ALLOWED + 1);
}

enum { PER_PROCESS = 4 };

/* A process of its own connects ours: the kernel takes its number. */
static void
dial_from_another_process(int *fds)
{
    int status;

    for (int i = 0; i < PER_PROCESS; i++) {
        fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK
            | SOCK_CLOEXEC, 0);
        assert_true(fds[i] >= 0);
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int i = 0; i < PER_PROCESS; i++) {
            if (connect(fds[i], (void *) &w.address, sizeof(w.address)) != 0) {
                _exit(1);
            }
        }
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static char expected_line[64];
static _Atomic bool line_came;

static void
see_line(void *userp, inf_log_level_t level, const char *file, int line_no,
    const char *line)
{
    (void) userp;
    (void) level;
    (void) file;
    (void) line_no;
    if (strstr(line, expected_line) != NULL) {
        line_came = true;
    }
}

/* They wait to be accepted, all at once. */
static void
has_room_for(int connections, rlim_t descriptors)
{
    struct rlimit before;
    int count = connections + PER_PROCESS;
    int *fds = calloc((size_t) count, sizeof(*fds));

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit limit = { descriptors, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    snprintf(expected_line, sizeof(expected_line), "there are %d connections",
        connections);
    line_came = false;

    open_world();
    assert_int_equal(listen(w.listen_fd, 4096), 0);
    for (int i = 0; i < count; i += PER_PROCESS) {
        dial_from_another_process(&fds[i]);
    }
    start_world();
    for (int ms = 0; !line_came && ms < 60000; ms++) {
        usleep(1000);
    }
    assert_true(line_came);

    inf_fds_close(fds, (size_t) count);
    free(fds);
    teardown(NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void
connections_leave_descriptors_for_models(void **state)
{
    (void) state;
    struct rlimit rl;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
    if (rl.rlim_max < 10000) {
        print_message("this needs 10,000 descriptors\n");
        skip();
    }

    inf_log_set_sink(see_line, NULL);
    inf_log_set_levels(false, false, true, 0);
    has_room_for(32, 256);              /* an eighth                         */
    has_room_for(1024, 10000);          /* at most                           */
    inf_log_set_levels(false, false, false, 0);
    inf_log_set_sink(NULL, NULL);
}

/* A registration that stays open until the core ends must not leak. */
static void
an_open_connection_ends_with_the_intake(void **state)
{
    (void) state;
    inf_client_t *a;
    int fd = dial();

    join_at(fd, &a);
    inf_client_free(a);
    w.fds++;                                /* ours stays open meanwhile     */
    teardown(state);
    close(fd);
    assert_int_equal(setup(state), 0);
}

static void
nonsense_is_rejected_and_harms_nobody_else(void **state)
{
    (void) state;
    static const uint32_t kinds[] = { 0, INF_HELLO_WORKER, INF_HELLO_CONFIG,
        3, UINT32_MAX };
    char junk[2 * sizeof(inf_hello_t)];
    inf_client_t *good, *after;
    int outside = dial();

    join_at(w.registration[0], &good);
    memset(junk, 0xa5, sizeof(junk));
    for (int i = 0; i < 2; i++) {
        int fd = i == 0 ? w.registration[0] : outside;

        for (size_t len = 1; len <= sizeof(junk); len += 7) {
            say(fd, junk, len, (int) (len % 6));
        }
        for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
            inf_hello_t hello = hello_of(kinds[k]);
            for (int fds = 0; fds <= INF_SOCKET_MAX_FDS; fds++) {
                say(fd, &hello, sizeof(hello), fds);
                hello.slots = UINT32_MAX;
                hello.rings_size = UINT64_MAX;
                say(fd, &hello, sizeof(hello), fds);
                hello = hello_of(kinds[k]);
                say(fd, &hello, sizeof(hello) - 1, fds);
            }
        }
    }

    /* everything was read by now: the next registration stands behind it */
    join_at(w.registration[0], &after);
    inf_client_free(after);
    join_at(outside, &after);
    inf_client_free(after);
    assert_int_equal(w.configured, 0);

    inf_slot_id_t id;                       /* the good one is still served  */
    assert_true(inf_client_take(good, NULL, &id));
    const inf_submission_t s = {
        .op = INF_SUBMIT_CALL, .method = INF_METHOD_SERVER_METADATA,
        .slot = id.slot, .generation = id.generation
    };
    assert_int_equal(inf_client_submit(good, &s), INF_CLIENT_OK);
    struct pollfd p = { .fd = inf_client_event_fd(good), .events = POLLIN };
    if (inf_client_arm(good)) {
        assert_int_equal(poll(&p, 1, 60000), 1);
    }
    inf_client_abandon(good, id, NULL);
    inf_client_free(good);
    close(outside);
}

/* The one message that counts comes last on the socket. */
static void
configured_once(void)
{
    for (int i = 0; i < 60000 && w.configured == 0; i++) {
        poll(NULL, 0, 1);
    }
    assert_int_equal(w.configured, 1);
    assert_int_equal(w.generation, 3);
}

static void
a_configuration_comes_over_the_supervisors_socket_alone(void **state)
{
    (void) state;
    inf_hello_t hello = hello_of(INF_HELLO_CONFIG);
    inf_client_t *after;
    int outside = dial();

    say(w.registration[0], &hello, sizeof(hello), INF_HELLO_CONFIG_FDS);
    join_at(w.registration[0], &after);
    inf_client_free(after);
    say(outside, &hello, sizeof(hello), INF_HELLO_CONFIG_FDS);
    join_at(outside, &after);
    inf_client_free(after);
    close(outside);
    assert_int_equal(w.configured, 0);

    say(w.configure[0], &hello, sizeof(hello), INF_HELLO_CONFIG_FDS);
    configured_once();
}

static void
what_is_no_configuration_is_ignored_on_that_socket(void **state)
{
    (void) state;
    inf_hello_t hello = hello_of(INF_HELLO_WORKER);
    inf_client_t *after;

    for (int fds = 0; fds <= INF_SOCKET_MAX_FDS; fds++) {
        say(w.configure[0], &hello, sizeof(hello), fds);
    }
    hello = hello_of(INF_HELLO_CONFIG);
    say(w.configure[0], &hello, sizeof(hello), 0);
    say(w.configure[0], &hello, sizeof(hello), 2);
    say(w.configure[0], &hello, sizeof(hello) - 1, 1);
    hello.magic++;
    say(w.configure[0], &hello, sizeof(hello), 1);
    hello = hello_of(INF_HELLO_CONFIG);
    say(w.configure[0], &hello, sizeof(hello), 1);
    configured_once();

    join_at(w.registration[0], &after);
    inf_client_free(after);
}

static void
workers_come_and_go(void **state)
{
    (void) state;
    for (int i = 0; i < 50; i++) {
        inf_client_t *a, *b;
        join_at(w.registration[0], &a);
        join_at(w.registration[0], &b);
        inf_client_free(a);
        inf_client_free(b);
    }
}

static void
wakes_and_stop_come_from_anywhere(void **state)
{
    (void) state;
    for (int i = 0; i < 1000; i++) {
        inf_intake_wake(w.intake);
    }
    inf_intake_stop(w.intake);
    inf_intake_stop(w.intake);
}

/* ---- whose turn it is ---------------------------------------------------- */

enum { LARGE = 8, MANY = 14 };      /* entries of the worker that hurries    */

static char taken[64];              /* R: a request, C: the other's call     */
static _Atomic uint32_t taken_count;
static _Atomic bool held;           /* the first waits to be taken           */

inf_infer_fed_t __real_inf_infer_submit(inf_session_t *session,
    inf_registry_reader_t *models, const inf_submission_t *submission,
    inf_server_t *server, uint64_t now_ns);
inf_infer_fed_t __wrap_inf_infer_submit(inf_session_t *session,
    inf_registry_reader_t *models, const inf_submission_t *submission,
    inf_server_t *server, uint64_t now_ns);
void __real_inf_control_submit(inf_control_t *control, inf_session_t *session,
    const inf_submission_t *submission);
void __wrap_inf_control_submit(inf_control_t *control, inf_session_t *session,
    const inf_submission_t *submission);

static void
note(char what)
{
    uint32_t n = atomic_load(&taken_count);
    taken[n] = what;
    atomic_store(&taken_count, n + 1);
    while (n == 0 && atomic_load(&held)) {
        usleep(1000);
    }
}

inf_infer_fed_t
__wrap_inf_infer_submit(inf_session_t *session, inf_registry_reader_t *models,
    const inf_submission_t *submission, inf_server_t *server,
    uint64_t now_ns)
{
    note('R');
    return __real_inf_infer_submit(session, models, submission, server,
        now_ns);
}

void
__wrap_inf_control_submit(inf_control_t *control, inf_session_t *session,
    const inf_submission_t *submission)
{
    note('C');
    __real_inf_control_submit(control, session, submission);
}

/* Entries of so many zero bytes, which are no record. */
static void
submit(inf_client_t *client, int count, uint64_t length, uint8_t op)
{
    inf_slot_id_t id;

    for (int i = 0; i < count; i++) {
        assert_true(inf_client_take(client, NULL, &id));
        const inf_region_t *region = inf_client_alloc(client, length);
        assert_non_null(region);
        const inf_submission_t s = {
            .op = op, .method = INF_METHOD_SERVER_METADATA,
            .slot = id.slot, .generation = id.generation,
            .offset = region->offset, .length = length
        };
        assert_int_equal(inf_client_submit(client, &s), INF_CLIENT_OK);
    }
}

static void
wait_taken(uint32_t count)
{
    while (atomic_load(&taken_count) < count) {
        usleep(1000);
    }
}

/* Two workers submit while the first entry of one is being taken. */
static void
takes(int count, uint64_t length, const char *order)
{
    inf_client_t *hurries, *waits;

    join_with(w.registration[0], 64u << 20, &hurries);
    join_at(w.registration[0], &waits);
    memset(taken, 0, sizeof(taken));
    atomic_store(&taken_count, 0);
    atomic_store(&held, true);

    submit(hurries, 1, 1024, INF_SUBMIT_INFER);
    wait_taken(1);
    submit(hurries, count, length, INF_SUBMIT_INFER);
    submit(waits, 1, 64, INF_SUBMIT_CALL);
    atomic_store(&held, false);
    wait_taken((uint32_t) count + 2);
    assert_string_equal(taken, order);
    inf_client_free(hurries);
    inf_client_free(waits);
}

static void
large_records_leave_the_others_their_turn(void **state)
{
    (void) state;
    takes(LARGE, 4u << 20, "RRCRRRRRRR");
}

static void
small_ones_are_taken_in_a_row(void **state)
{
    (void) state;
    takes(MANY, 1024, "RRRRRRRRRRRRRRRC");
}

int
main(void)
{
    alarm(300);
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(workers_come_over_both_sockets),
        T(other_users_are_not_admitted),
        T(one_process_has_few_channels_and_connections),
        cmocka_unit_test(connections_leave_descriptors_for_models),
        T(an_open_connection_ends_with_the_intake),
        T(nonsense_is_rejected_and_harms_nobody_else),
        T(a_configuration_comes_over_the_supervisors_socket_alone),
        T(what_is_no_configuration_is_ignored_on_that_socket),
        T(workers_come_and_go),
        T(wakes_and_stop_come_from_anywhere),
        T(large_records_leave_the_others_their_turn),
        T(small_ones_are_taken_in_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
