/* silent.c - a process without standard output: that of it and its children
 *            goes nowhere. */

#include <fcntl.h>
#include <unistd.h>

__attribute__((constructor))
static void
silence(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0
        || close(null) < 0)
    {
        _exit(1);
    }
}
