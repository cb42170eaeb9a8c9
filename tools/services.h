/*
 * services.h - what listens: addresses and ports of the services, and whether
 *              they can be had.
 *
 * Owner    options.
 * Thread   one.
 * Units    none.
 * Errors   die.
 * Route    options -> [services] -> servers of nginx.conf
 */

#ifndef TOOLS_SERVICES_H
#define TOOLS_SERVICES_H

#include "options.h"

/* Services that are on have different ports, and what they need. */
void services_check(const options_t *o);

/* The ports are free now, as nginx would find out after many lines. */
void services_try(const options_t *o);

/* The model that Vertex AI's predict route is for. */
const char *services_vertex_model(const options_t *o);

#endif /* TOOLS_SERVICES_H */
