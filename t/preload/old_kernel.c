/* old_kernel.c - a kernel without close_range(2), which is Linux before 5.9. */

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

long
syscall(long number, ...)
{
    long args[6];
    va_list ap;

    if (number == SYS_close_range) {
        errno = ENOSYS;
        return -1;
    }

    va_start(ap, number);
    for (int i = 0; i < 6; i++) {
        args[i] = va_arg(ap, long);
    }
    va_end(ap);

    long (*next)(long, ...) = (long (*)(long, ...)) dlsym(RTLD_NEXT,
        "syscall");
    return next(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
