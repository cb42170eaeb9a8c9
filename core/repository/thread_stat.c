#include "core/repository/thread_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* /proc/<thread>/task/<thread>/stat: "tid (name) state ...", the 14th and 15th
   are ticks in user and kernel mode, the 22nd when it began (proc(5)). */
bool
inf_thread_stat_read(pid_t thread, inf_thread_stat_t *out)
{
    unsigned long long user, system, began;
    char path[64], text[512];

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int) thread,
        (int) thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, sizeof(text) - 1);
    (void) close(fd);
    if (n <= 0) {
        return false;
    }

    text[n] = '\0';
    const char *p = strrchr(text, ')');         /* the name may hold any     */
    if (p == NULL
        || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu"
            " %llu %*d %*d %*d %*d %*d %*d %llu", &out->state, &user, &system,
            &began) != 4)
    {
        return false;
    }

    out->ran_ns = (user + system) * (1000000000ull
        / (unsigned long long) sysconf(_SC_CLK_TCK));
    out->began = began;
    return true;
}

uint64_t
inf_thread_ticks_now(void)
{
    struct timespec ts;
    uint64_t rate = (uint64_t) sysconf(_SC_CLK_TCK);

    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t) ts.tv_sec * rate
        + (uint64_t) ts.tv_nsec / (1000000000u / rate);
}
