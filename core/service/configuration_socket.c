#include "core/service/configuration_socket.h"

#include <stddef.h>

#include "core/include/channel.h"
#include "core/wire/sockets.h"

inf_configuration_event_t
inf_configuration_receive(int socket_fd, int *fd, uint64_t *generation)
{
    inf_hello_t hello;
    int fds[INF_HELLO_CONFIG_FDS];
    size_t len = 0;
    size_t count = 0;
    inf_socket_result_t result;

    inf_err_t *err = inf_socket_recv(socket_fd, &hello, sizeof(hello), &len,
        fds, INF_HELLO_CONFIG_FDS, &count, &result);
    if (err == NULL && result == INF_SOCKET_AGAIN) {
        return INF_CONFIGURATION_NONE;
    }
    if (err == NULL && result == INF_SOCKET_CLOSED) {
        return INF_CONFIGURATION_CLOSED;
    }

    if (err == NULL && len == sizeof(hello) && count == 0
        && hello.magic == INF_CHANNEL_MAGIC && hello.kind == INF_HELLO_BEAT)
    {
        return INF_CONFIGURATION_BEAT;
    }
    if (err == NULL && (len != sizeof(hello) || count != INF_HELLO_CONFIG_FDS
        || hello.magic != INF_CHANNEL_MAGIC || hello.kind != INF_HELLO_CONFIG))
    {
        err = inf_err_new(INF_ERR_INVALID_ARG,
            "a message of %zu bytes with %zu descriptors is not a"
            " configuration", len, count);
    }
    if (err != NULL) {
        inf_fds_close(fds, count);
        inf_err_log(inf_err_add(err, "new configuration is ignored"));
        return INF_CONFIGURATION_NONE;
    }

    *fd = fds[0];
    *generation = hello.generation;
    return INF_CONFIGURATION_CAME;
}
