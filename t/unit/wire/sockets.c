#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/wire/sockets.h"

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
expect_error(inf_err_t *err, const char *part)
{
    assert_non_null(err);
    assert_non_null(strstr(inf_err_msg(err), part));
    inf_err_free(err);
}

static void
descriptors_arrive_with_close_on_exec(void **state)
{
    (void) state;
    int before = open_fds();
    int pair[2], eventfd, got[3];
    size_t len, count;
    char text[16];
    inf_socket_result_t result;

    assert_null(inf_socket_pair(pair));
    assert_null(inf_socket_check(pair[0]));
    assert_null(inf_eventfd_new(&eventfd));
    int fds[] = { eventfd, eventfd };
    assert_null(inf_socket_send(pair[0], "hello", 5, fds, 2, &result));
    assert_int_equal(result, INF_SOCKET_DONE);

    assert_null(inf_socket_recv(pair[1], text, sizeof(text), &len, got, 3,
        &count, &result));
    assert_int_equal(result, INF_SOCKET_DONE);
    assert_int_equal(len, 5);
    assert_int_equal(count, 2);
    assert_int_equal(got[2], -1);
    assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
    assert_null(inf_eventfd_check(got[1]));

    assert_null(inf_socket_recv(pair[1], text, sizeof(text), &len, got + 2, 1,
        &count, &result));
    assert_int_equal(result, INF_SOCKET_AGAIN);

    close(pair[0]);
    assert_null(inf_socket_recv(pair[1], text, sizeof(text), &len, got + 2, 1,
        &count, &result));
    assert_int_equal(result, INF_SOCKET_CLOSED);
    assert_null(inf_socket_send(pair[1], "x", 1, NULL, 0, &result));
    assert_int_equal(result, INF_SOCKET_CLOSED);

    inf_fds_close(got, 2);
    close(pair[1]);
    close(eventfd);
    assert_int_equal(open_fds(), before);
}

static void
cut_or_crowded_or_empty_message_leaves_no_descriptor(void **state)
{
    (void) state;
    int before = open_fds();
    int pair[2], eventfd, got[8];
    size_t len, count;
    char text[4];
    inf_socket_result_t result;

    assert_null(inf_socket_pair(pair));
    assert_null(inf_eventfd_new(&eventfd));
    int fds[8] = {
        eventfd, eventfd, eventfd, eventfd, eventfd, eventfd, eventfd, eventfd
    };

    /* Too long. */
    assert_null(inf_socket_send(pair[0], "hello", 5, fds, 2, &result));
    expect_error(inf_socket_recv(pair[1], text, sizeof(text), &len, got, 2,
        &count, &result), "cut");
    assert_int_equal(count, 0);

    /* More descriptors than expected, and more than there is room for. */
    assert_null(inf_socket_send(pair[0], "x", 1, fds, 8, &result));
    expect_error(inf_socket_recv(pair[1], text, sizeof(text), &len, got, 2,
        &count, &result), "at most 2");
    struct iovec iov = { "x", 1 };
    union {
        char bytes[CMSG_SPACE(sizeof(int) * 40)];
        struct cmsghdr align;
    } control;
    memset(&control, 0, sizeof(control));
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
        .msg_control = &control, .msg_controllen = sizeof(control) };
    CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
    CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
    CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(int) * 40);
    for (int i = 0; i < 40; i++) {
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)) + i * 4, &eventfd, 4);
    }
    assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
    expect_error(inf_socket_recv(pair[1], text, sizeof(text), &len, got, 8,
        &count, &result), "a message");

    /* Empty is not the end. */
    assert_int_equal(send(pair[0], "", 0, 0), 0);
    expect_error(inf_socket_recv(pair[1], text, sizeof(text), &len, got, 2,
        &count, &result), "empty");
    assert_null(inf_socket_recv(pair[1], text, sizeof(text), &len, got, 2,
        &count, &result));
    assert_int_equal(result, INF_SOCKET_AGAIN);

    close(pair[0]);
    close(pair[1]);
    close(eventfd);
    assert_int_equal(open_fds(), before);
}

static void
full_socket_says_again(void **state)
{
    (void) state;
    int pair[2];
    static char big[16384];
    inf_socket_result_t result = INF_SOCKET_DONE;

    assert_null(inf_socket_pair(pair));
    for (int i = 0; i < 1000 && result == INF_SOCKET_DONE; i++) {
        assert_null(inf_socket_send(pair[0], big, sizeof(big), NULL, 0,
            &result));
    }
    assert_int_equal(result, INF_SOCKET_AGAIN);
    inf_fds_close(pair, 2);
}

static void
memfd_is_checked_for_seal_size_and_kind(void **state)
{
    (void) state;
    int fd;

    assert_null(inf_memfd_new("test", 8192, &fd));
    assert_null(inf_memfd_check(fd, 8192));
    assert_int_not_equal(ftruncate(fd, 0), 0);
    assert_int_not_equal(ftruncate(fd, 16384), 0);
    assert_int_not_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    expect_error(inf_memfd_check(fd, 8193), "8192");
    expect_error(inf_memfd_check(fd, 0), "8192");
    expect_error(inf_memfd_check(fd, UINT64_MAX), "8192");
    close(fd);

    fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, 8192), 0);
    expect_error(inf_memfd_check(fd, 8192), "shrink");
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
    expect_error(inf_memfd_check(fd, 8192), "shrink");
    close(fd);

    fd = open("/dev/null", O_RDWR);
    expect_error(inf_memfd_check(fd, 0), "not a memfd");
    expect_error(inf_eventfd_check(fd), "not an eventfd");
    expect_error(inf_socket_check(fd), "not a socket");
    close(fd);

    fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (fd >= 0) {
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
        expect_error(inf_memfd_check(fd, 0), "ordinary pages");
        close(fd);
    }

    expect_error(inf_memfd_new("too large", UINT64_MAX, &fd), "too large");
    assert_int_equal(fd, -1);
}

static void
a_watched_eventfd_can_only_be_polled(void **state)
{
    (void) state;
    const uint64_t full = UINT64_MAX - 1;
    int before = open_fds();
    int eventfd, watch;

    assert_null(inf_eventfd_new_watched(&eventfd, &watch));
    struct pollfd p = { .fd = watch, .events = POLLIN };
    assert_int_equal(poll(&p, 1, 0), 0);
    for (int i = 0; i < 3; i++) {       /* each time anew, nobody reads it   */
        inf_eventfd_notify(eventfd);
        assert_int_equal(poll(&p, 1, 0), 1);
        inf_eventfd_watch_clear(watch);
        assert_int_equal(poll(&p, 1, 0), 0);
    }

    assert_int_equal(write(watch, &full, sizeof(full)), -1);
    fcntl(watch, F_SETFL, 0);
    assert_true(fcntl(eventfd, F_GETFL) & O_NONBLOCK);
    assert_int_equal(epoll_ctl(watch, EPOLL_CTL_DEL, watch, NULL), -1);
    close(eventfd);
    close(watch);
    assert_int_equal(open_fds(), before);
}

static void
a_message_says_which_process_sent_it(void **state)
{
    (void) state;
    int pair[2], fds[1];
    size_t len, count;
    uint32_t pid;
    char text[8];
    inf_socket_result_t result;

    assert_null(inf_socket_pair(pair));
    assert_null(inf_socket_send(pair[0], "x", 1, NULL, 0, &result));
    assert_null(inf_socket_recv_from(pair[1], text, sizeof(text), &len, fds,
        1, &count, &pid, &result));
    assert_int_equal(pid, 0);

    assert_null(inf_socket_name_senders(pair[1]));
    pid_t child = fork();
    if (child == 0) {
        const int sent[] = { pair[0] };
        inf_err_free(inf_socket_send(pair[0], "x", 1, sent, 1, &result));
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_null(inf_socket_recv_from(pair[1], text, sizeof(text), &len, fds,
        1, &count, &pid, &result));
    assert_int_equal(result, INF_SOCKET_DONE);
    assert_int_equal(count, 1);
    assert_int_equal(pid, child);
    inf_fds_close(fds, 1);

    inf_fds_close(&pair[0], 1);         /* the end is told from a message    */
    assert_null(inf_socket_recv_from(pair[1], text, sizeof(text), &len, fds,
        1, &count, &pid, &result));
    assert_int_equal(result, INF_SOCKET_CLOSED);
    close(pair[1]);
}

static void
eventfd_check_rejects_other_kinds_and_makes_it_nonblocking(void **state)
{
    (void) state;
    int pair[2], pipes[2], eventfd;

    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    expect_error(inf_eventfd_check(pipes[1]), "not an eventfd");
    expect_error(inf_eventfd_check(pair[0]), "not an eventfd");
    expect_error(inf_socket_check(pair[0]), "seqpacket");
    inf_fds_close(pair, 2);
    inf_fds_close(pipes, 2);
    expect_error(inf_eventfd_check(-1), "examine");

    assert_null(inf_eventfd_new(&eventfd));
    assert_int_equal(fcntl(eventfd, F_SETFL, 0), 0);
    assert_null(inf_eventfd_check(eventfd));
    assert_true(fcntl(eventfd, F_GETFL) & O_NONBLOCK);

    struct pollfd p = { .fd = eventfd, .events = POLLIN };
    assert_int_equal(poll(&p, 1, 0), 0);
    inf_eventfd_notify(eventfd);
    inf_eventfd_notify(eventfd);
    assert_int_equal(poll(&p, 1, 0), 1);
    inf_eventfd_clear(eventfd);
    inf_eventfd_clear(eventfd);
    assert_int_equal(poll(&p, 1, 0), 0);
    close(eventfd);
}

static void
pidfd_tells_of_a_death(void **state)
{
    (void) state;
    int fd;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(0);
    }

    assert_null(inf_pidfd_open(pid, &fd));
    struct pollfd p = { .fd = fd, .events = POLLIN };
    assert_int_equal(poll(&p, 1, 10000), 1);
    close(fd);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    expect_error(inf_pidfd_open(-1, &fd), "process -1");
    assert_int_equal(fd, -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_arrive_with_close_on_exec),
        cmocka_unit_test(cut_or_crowded_or_empty_message_leaves_no_descriptor),
        cmocka_unit_test(full_socket_says_again),
        cmocka_unit_test(memfd_is_checked_for_seal_size_and_kind),
        cmocka_unit_test(a_watched_eventfd_can_only_be_polled),
        cmocka_unit_test(a_message_says_which_process_sent_it),
        cmocka_unit_test(
            eventfd_check_rejects_other_kinds_and_makes_it_nonblocking),
        cmocka_unit_test(pidfd_tells_of_a_death),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
