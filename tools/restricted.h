/*
 * restricted.h - groups of endpoints that require a header
 *                (--http-restricted-api, --grpc-restricted-protocol).
 *
 * Owner    A rule points into the option's value.
 * Thread   one.
 * Units    none.
 * Errors   die, if a rule is invalid.
 * Route    options -> [restricted] -> nginx.conf
 */

#ifndef TOOLS_RESTRICTED_H
#define TOOLS_RESTRICTED_H

#include <stdio.h>

#include "options.h"

#define RESTRICTED_GRPC_PREFIX "triton-grpc-protocol-"

typedef struct {
    unsigned    groups;         /* bits, in the order of the table           */
    const char *header;         /* header_len bytes; without the prefix      */
    int         header_len;
    const char *value;
} restricted_t;

/* Parses "group,group:header=value"; name is the option's. */
void restricted_parse(restricted_t *rule, const char *name, const char *text);

/* Checks that a group is in only one rule of the list. */
void restricted_check(const char *name, const list_t *list);

/* Writes, in http{}, the map from paths to rules. */
void restricted_write_map(FILE *f, const options_t *o);

/* Write, in a server{}, the answer to requests without the header. */
void restricted_write_http(FILE *f, const list_t *list);
void restricted_write_grpc(FILE *f, const list_t *list);

#endif /* TOOLS_RESTRICTED_H */
