/*
 * low_memory.h - whether the text of an error says that memory is short.
 *
 * Owner    nothing.
 * Thread   any.
 * Units    none.
 * Errors   none.
 * Route    errors of loads and inferences -> [low memory] -> cause NO_MEMORY
 *
 * Backends report it only in the texts of their runtimes.
 */

#ifndef INF_SERVER_LOW_MEMORY_H
#define INF_SERVER_LOW_MEMORY_H

#include <stdbool.h>

/* Whether text has one of the words by which Triton knows it. */
bool inf_low_memory(const char *text);

#endif /* INF_SERVER_LOW_MEMORY_H */
