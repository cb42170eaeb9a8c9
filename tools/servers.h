/*
 * servers.h - writes the server{} blocks of nginx.conf: one for each service,
 *             and one for the launcher's own requests.
 *
 * Owner    none.
 * Thread   one.
 * Units    none.
 * Errors   the stream's.
 * Route    options, services -> [servers] -> nginx.conf
 */

#ifndef TOOLS_SERVERS_H
#define TOOLS_SERVERS_H

#include <stdio.h>

#include "options.h"
#include "places.h"

/* places: where the launcher's socket is. */
void servers_write(FILE *f, const options_t *o, const places_t *places);

#endif /* TOOLS_SERVERS_H */
