/*
 * report.h - what did not hold: each assertion by its section and sentence.
 *
 * Owner    A report is its caller's memory.  Errors given to a check are
 *          consumed by it.
 * Thread   one report, one thread; events and failures of several threads
 *          are whole lines of one file.
 * Units    none.
 * Errors   a failed check is an error's text, and a line "FAILED ..." of the
 *          file that INF_CONFORMANCE_EVENTS names.
 * Route    every file of this backend -> [report] -> load error, response
 *          error, events
 */

#ifndef CONFORMANCE_REPORT_H
#define CONFORMANCE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "triton/core/tritonbackend.h"

typedef struct {
    char     text[2048];        /* what failed, separated by "; "            */
    size_t   len;
    unsigned checks;
} cf_report_t;

void cf_check(cf_report_t *r, bool holds, const char *what);

/* err must be NULL. */
void cf_succeeds(cf_report_t *r, TRITONSERVER_Error *err, const char *what);

/* err must have that code and a text. */
void cf_fails(cf_report_t *r, TRITONSERVER_Error *err,
    TRITONSERVER_Error_Code code, const char *what);

/* NULL when everything held. */
TRITONSERVER_Error *cf_report_error(const cf_report_t *r);

/* A line "what name" of the events; unset: nothing happens. */
void cf_event(const char *what, const char *name);

#endif /* CONFORMANCE_REPORT_H */
