#include "core/base/points.h"

#ifdef INF_POINTS

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POINT_NAME(name)  #name,

static const char *const names[] = {
    INF_POINTS_OF_A_REQUEST(POINT_NAME)
    INF_POINTS_OF_OTHERS(POINT_NAME)
};

static ssize_t read_file(const char *path, char *text, size_t size);

void
inf_point(unsigned number)
{
    const char *path = getenv("INF_POINT_AT");
    char text[64], kill_here[64], stop_here[64], hit[4096];

    assert(number < INF_POINT_COUNT);
    if (path == NULL || read_file(path, text, sizeof(text)) <= 0) {
        return;
    }

    snprintf(kill_here, sizeof(kill_here), "%s kill\n", names[number]);
    snprintf(stop_here, sizeof(stop_here), "%s stop\n", names[number]);
    int signo = strcmp(text, kill_here) == 0 ? SIGKILL
        : strcmp(text, stop_here) == 0 ? SIGSTOP : 0;
    snprintf(hit, sizeof(hit), "%s.hit", path);
    if (signo != 0 && rename(path, hit) == 0) {
        kill(getpid(), signo);
    }
}

static ssize_t
read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }

    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

#endif
