/*
 * accept_encoding.h - the encoding of an answer, by the request's
 *                     Accept-Encoding.
 *
 * Owner    the caller's memory.
 * Thread   any.
 * Units    none.
 * Errors   none: unreadable parts are ignored.
 * Route    Accept-Encoding -> response.
 */

#ifndef INF_PROTO_ACCEPT_ENCODING_H
#define INF_PROTO_ACCEPT_ENCODING_H

#include "core/base/slice.h"

typedef enum {
    INF_ENCODING_IDENTITY,
    INF_ENCODING_DEFLATE,       /* zlib's format                             */
    INF_ENCODING_GZIP
} inf_encoding_t;

/* Of the three the one with the highest weight, the first of equal ones;
   identity if none is named.  "*" is ignored. */
inf_encoding_t inf_accept_encoding(inf_slice_t value);

#endif /* INF_PROTO_ACCEPT_ENCODING_H */
