/*
 * configuration_socket.h - new configurations, as the supervisor sends them.
 *
 * Owner    A configuration that came is the caller's: its descriptor is to be
 *          closed.
 * Thread   the thread with the intake role.
 * Units    none.
 * Errors   A message that is no configuration is logged and ignored.
 * Route    supervisor -> [configuration socket] -> intake -> core main
 */

#ifndef INF_SERVICE_CONFIGURATION_SOCKET_H
#define INF_SERVICE_CONFIGURATION_SOCKET_H

#include <stdint.h>

typedef enum {
    INF_CONFIGURATION_NONE,     /* nothing that can be used                  */
    INF_CONFIGURATION_CAME,
    INF_CONFIGURATION_BEAT,     /* is the core alive?                        */
    INF_CONFIGURATION_CLOSED    /* neither master nor supervisor is left     */
} inf_configuration_event_t;

/* The next message; fd and generation are set with INF_CONFIGURATION_CAME. */
inf_configuration_event_t inf_configuration_receive(int socket_fd, int *fd,
    uint64_t *generation);

#endif /* INF_SERVICE_CONFIGURATION_SOCKET_H */
