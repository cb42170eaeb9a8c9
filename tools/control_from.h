/*
 * control_from.h - the clients that may control the server: --control-from.
 *
 * Owner    none.
 * Thread   one.
 * Units    none.
 * Errors   -1, with the invalid part of the list.
 * Route    launcher -> [control from] -> nginx.conf
 *
 * Control is the calls that change the server for other clients: the
 * repository API, trace and log settings.  A list has loopback, all, none,
 * addresses and networks.
 */

#ifndef TOOLS_CONTROL_FROM_H
#define TOOLS_CONTROL_FROM_H

#include <stdio.h>

#define CONTROL_FROM_PART_MAX 80

/* Checks a list: 0; or -1, and part is its invalid piece. */
int control_from_check(const char *list, char part[CONTROL_FROM_PART_MAX]);

/* Writes the allow and deny lines of a location; the list must be valid. */
void control_from_write(FILE *f, const char *list);

/* Write the server's location that answers the rejected clients, over HTTP or
   gRPC. */
void control_from_write_answer(FILE *f, const char *list);
void control_from_write_grpc_answer(FILE *f, const char *list);

#endif /* TOOLS_CONTROL_FROM_H */
