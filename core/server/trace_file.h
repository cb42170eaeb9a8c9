/*
 * trace_file.h - writes traces to files, in Triton's form: arrays of JSON
 *                objects, which are whole after each trace.
 *
 * Owner    The tracer owns it; a setting notes which file it is at.
 * Thread   the tracer's.
 * Units    traces.
 * Errors   A file that can't be written is logged once until it can again.
 * Route    tracer -> [trace file] -> FILE, FILE.0, FILE.1, ...
 *
 * FILE has the traces of settings without log_frequency and count; others fill
 * FILE.N one after another, each by one setting.  No file that is there before
 * the start is written over: FILE becomes FILE.before.
 */

#ifndef INF_SERVER_TRACE_FILE_H
#define INF_SERVER_TRACE_FILE_H

#include "core/base/buf.h"
#include "core/server/trace_record.h"

typedef struct inf_trace_file_s inf_trace_file_t;

/* Nothing is opened before the first trace. */
INF_CHECK inf_err_t *inf_trace_file_new(const char *path,
    inf_trace_file_t **out);

/* f may be NULL. */
void inf_trace_file_free(inf_trace_file_t *f);

/* Writes a list of records; how many of them are lost. */
uint32_t inf_trace_file_write(inf_trace_file_t *f, inf_link_t *records);

/* Appends the objects of one record, with commas between them. */
void inf_trace_file_text(inf_trace_record_t *r, inf_buf_t *out);

#endif /* INF_SERVER_TRACE_FILE_H */
