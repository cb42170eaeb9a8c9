#include "own_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_SECS 2
#define ANSWER_MAX    (64u << 20)

static int connect_to(const char *path);
static char *read_all(int fd);

char *
own_ask(const char *path, const char *question)
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

/* Reads the whole answer as a text; NULL: incomplete. */
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
