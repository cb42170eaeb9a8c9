/*
 * control_from.h - from where clients may control the server: --control-from.
 *
 * Owner    nobody: it reads texts of the command line.
 * Thread   one.
 * Units    none.
 * Errors   -1, with the part of the list that is not valid.
 * Route    launcher -> [control from] -> nginx.conf
 *
 * Control is what changes the server for others: the repository API, trace
 * and log settings.  A list names loopback, all, none, addresses and networks.
 */

#ifndef TOOLS_CONTROL_FROM_H
#define TOOLS_CONTROL_FROM_H

#include <stdio.h>

#define CONTROL_FROM_PART_MAX 80

/* 0; or -1, and part is the piece of the list that is not valid. */
int control_from_check(const char *list, char part[CONTROL_FROM_PART_MAX]);

/* The allow and deny lines of a location; the list has been checked. */
void control_from_write(FILE *f, const char *list);

/* The server's location that answers the clients that those lines reject, over
   HTTP or gRPC. */
void control_from_write_answer(FILE *f, const char *list);
void control_from_write_grpc_answer(FILE *f, const char *list);

#endif /* TOOLS_CONTROL_FROM_H */
