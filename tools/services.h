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

/* Checks that services that are on have different ports, and their other
   options. */
void services_check(const options_t *o);

/* Checks that the ports are free, before nginx logs many lines about it. */
void services_try(const options_t *o);

/* The name of the model that the options load, or the repositories have; NULL:
   several or none. */
const char *services_only_model(const options_t *o);

#endif /* TOOLS_SERVICES_H */
