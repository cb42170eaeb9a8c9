#define _GNU_SOURCE

#include "first_load.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_SECS 2
#define ANSWER_MAX    (64u << 20)

static char *ask(const char *path, const char *question);
static int connect_to(const char *path);
static char *read_all(int fd);
static first_load_t judge(const char *answer);

first_load_t
first_load_ask(const char *path, bool far)
{
    first_load_t verdict = FIRST_LOAD_PENDING;
    char        *answer = ask(path, "POST /v2/repository/index HTTP/1.0\r\n"
                              "Host: localhost\r\n"
                              "Content-Length: 0\r\n\r\n");

    if (answer != NULL) {
        verdict = judge(answer);
    }
    free(answer);
    if (verdict != FIRST_LOAD_GOOD || !far) {
        return verdict;
    }

    answer = ask(path, "GET /v2/health/ready HTTP/1.0\r\n"
                 "Host: localhost\r\n\r\n");
    if (answer == NULL || strncmp(strchrnul(answer, ' '), " 200", 4) != 0) {
        verdict = FIRST_LOAD_PENDING;
    }
    free(answer);
    return verdict;
}

/* NULL: no answer yet. */
static char *
ask(const char *path, const char *question)
{
    char  *answer = NULL;
    size_t len = strlen(question);
    int    fd = connect_to(path);

    if (fd < 0) {
        return NULL;
    }
    if (send(fd, question, len, MSG_NOSIGNAL) == (ssize_t) len) {
        answer = read_all(fd);
    }
    close(fd);
    return answer;
}

static int
connect_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct timeval     patience = { .tv_sec = PATIENCE_SECS };

    if (strlen(path) >= sizeof(address.sun_path)) {
        return -1;
    }
    strcpy(address.sun_path, path);

    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *) &address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The whole answer as a text; NULL: it didn't come whole. */
static char *
read_all(int fd)
{
    char  *text = NULL;
    size_t len = 0;
    size_t room = 0;

    for (;;) {
        if (len + 1 >= room) {
            room = room == 0 ? 65536 : room * 2;
            char *wider = room <= ANSWER_MAX ? realloc(text, room) : NULL;

            if (wider == NULL) {
                break;
            }
            text = wider;
        }

        ssize_t n = recv(fd, text + len, room - len - 1, 0);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            break;
        }
        if (n == 0) {
            text[len] = '\0';
            return text;
        }
        len += (size_t) n;
    }

    free(text);
    return NULL;
}

/* Quotes within a reason are escaped: such a text is a row's own.  Another
   error than that there is no core yet: a repository can't be listed. */
static first_load_t
judge(const char *answer)
{
    const char *body = strstr(answer, "\r\n\r\n");
    const char *status = strchr(answer, ' ');

    if (body == NULL || status == NULL || strncmp(status, " 503", 4) == 0
        || strncmp(status, " 502", 4) == 0)
    {
        return FIRST_LOAD_PENDING;
    }
    if (strncmp(status, " 200", 4) != 0) {
        return FIRST_LOAD_FAILED;
    }
    if (strstr(body, "\"state\":\"LOADING\"") != NULL) {
        return FIRST_LOAD_PENDING;
    }
    return strstr(body, "\"state\":\"UNAVAILABLE\"") != NULL
        ? FIRST_LOAD_FAILED : FIRST_LOAD_GOOD;
}
