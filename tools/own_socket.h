/*
 * own_socket.h - requests to nginx over the launcher's own socket.
 *
 * Owner    The caller frees the answer.
 * Thread   one.
 * Units    none.
 * Errors   NULL: no answer yet; a request takes at most some seconds.
 * Route    first load, start log -> [own socket] -> nginx
 */

#ifndef TOOLS_OWN_SOCKET_H
#define TOOLS_OWN_SOCKET_H

/* question: a whole request; the answer has head and body. */
char *own_ask(const char *path, const char *question);

#endif /* TOOLS_OWN_SOCKET_H */
