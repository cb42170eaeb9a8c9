/*
 * trace_file.h - writes traces to files in Triton's form: arrays of JSON
 *                objects, valid after each trace.
 *
 * Owner    The tracer owns it; a setting has the number of its current file.
 * Thread   the tracer's thread.
 * Units    traces.
 * Errors   The first of consecutive failures to write a file is logged.
 * Route    tracer -> [trace file] -> FILE, FILE.0, FILE.1, ...
 *
 * FILE has the traces of settings without log_frequency and count; other
 * settings fill FILE.N one after another.  A file from before the start is not
 * overwritten: FILE is renamed to FILE.before.
 */

#ifndef INF_SERVER_TRACE_FILE_H
#define INF_SERVER_TRACE_FILE_H

#include "core/base/buf.h"
#include "core/server/trace_record.h"

typedef struct inf_trace_file_s inf_trace_file_t;

/* Opens no file before the first trace. */
INF_CHECK inf_err_t *inf_trace_file_new(const char *path,
    inf_trace_file_t **out);

/* f may be NULL. */
void inf_trace_file_free(inf_trace_file_t *f);

/* Writes a list of records; returns the number lost. */
uint32_t inf_trace_file_write(inf_trace_file_t *f, inf_link_t *records);

/* Appends the objects of one record, separated by commas. */
void inf_trace_file_text(inf_trace_record_t *r, inf_buf_t *out);

#endif /* INF_SERVER_TRACE_FILE_H */
