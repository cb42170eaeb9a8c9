/* no_ipv6.c - a kernel without IPv6. */

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int
socket(int domain, int type, int protocol)
{
    if (domain == AF_INET6) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    return (int) syscall(SYS_socket, domain, type, protocol);
}
