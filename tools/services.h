/*
 * services.h - the addresses and ports of the services, and checks of them.
 *
 * Owner    that of options.
 * Thread   one.
 * Units    none.
 * Errors   die.
 * Route    options -> [services] -> servers of nginx.conf
 */

#ifndef TOOLS_SERVICES_H
#define TOOLS_SERVICES_H

#include "options.h"

/* Room for a socket of the longest path, or for any other. */
#define SERVICE_SOCKET_MAX 256

/* Writes where the service listens, in nginx's words: ADDRESS:PORT or
   unix:PATH.  Returns the path, NULL: not unix. */
const char *services_socket(const service_t *s,
    char socket[SERVICE_SOCKET_MAX]);

/* Copies the service for its other address, [::]; false: it has none, or the
   machine has no IPv6. */
bool services_other_family(const service_t *s, service_t *other);

/* Checks that services that are on have different ports, and their other
   options. */
void services_check(const options_t *o);

/* Checks that the ports are free, before nginx logs many lines about it. */
void services_try(const options_t *o);

/* The name of the model that the options load, or the repositories have; NULL:
   several or none. */
const char *services_only_model(const options_t *o);

#endif /* TOOLS_SERVICES_H */
