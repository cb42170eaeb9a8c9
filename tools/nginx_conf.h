/*
 * nginx_conf.h - writes nginx.conf from the options.
 *
 * Owner    none.
 * Thread   one.
 * Units    none.
 * Errors   die.
 * Route    options, pieces, places, run as -> [nginx.conf] -> nginx
 */

#ifndef TOOLS_NGINX_CONF_H
#define TOOLS_NGINX_CONF_H

#include <stdio.h>

#include "options.h"
#include "pieces.h"
#include "places.h"
#include "run_as.h"

/* Writes the whole file; the caller checks f. */
void nginx_conf_write(FILE *f, const places_t *places, const options_t *o,
    const pieces_t *p, const run_as_t *who);

#endif /* TOOLS_NGINX_CONF_H */
