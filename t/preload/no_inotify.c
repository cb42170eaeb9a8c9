/* no_inotify.c - a user whose inotify instances are all in use. */

#include <errno.h>
#include <sys/inotify.h>

int
inotify_init1(int flags)
{
    (void) flags;
    errno = EMFILE;
    return -1;
}
