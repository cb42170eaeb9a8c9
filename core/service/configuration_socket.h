/*
 * configuration_socket.h - receives new configurations from the supervisor.
 *
 * Owner    The caller owns a received configuration and closes its descriptor.
 * Thread   the thread with the intake role.
 * Units    none.
 * Errors   An invalid message is logged and ignored.
 * Route    supervisor -> [configuration socket] -> intake -> core main
 */

#ifndef INF_SERVICE_CONFIGURATION_SOCKET_H
#define INF_SERVICE_CONFIGURATION_SOCKET_H

#include <stdint.h>

typedef enum {
    INF_CONFIGURATION_NONE,     /* no usable message                         */
    INF_CONFIGURATION_CAME,
    INF_CONFIGURATION_BEAT,     /* question whether the core is alive        */
    INF_CONFIGURATION_CLOSED    /* master and supervisor have gone           */
} inf_configuration_event_t;

/* Receives the next message; sets fd and generation for
   INF_CONFIGURATION_CAME. */
inf_configuration_event_t inf_configuration_receive(int socket_fd, int *fd,
    uint64_t *generation);

#endif /* INF_SERVICE_CONFIGURATION_SOCKET_H */
