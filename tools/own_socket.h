/*
 * own_socket.h - a question to nginx, over the launcher's own socket.
 *
 * Owner    The answer is the caller's, to be freed.
 * Thread   one.
 * Units    none.
 * Errors   NULL: no answer yet; a question takes some seconds at most.
 * Route    first load, start log -> [own socket] -> nginx
 */

#ifndef TOOLS_OWN_SOCKET_H
#define TOOLS_OWN_SOCKET_H

/* question: a whole request; the answer: its head and body. */
char *own_ask(const char *path, const char *question);

#endif /* TOOLS_OWN_SOCKET_H */
