/*
 * memory_file.h - an extension of Triton's interface for our backends: the
 *                 file that contains the bytes of an input, so that a process
 *                 of the backend can map it.
 *
 * Owner    The descriptor belongs to the server.
 * Thread   any; file: while the backend has the request of that input.
 * Units    bytes.
 * Errors   false: the bytes are in no file.
 * Route    backend -> [memory file] -> base's mapped files
 *
 * A backend declares both functions as weak symbols: other servers lack them.
 */

#ifndef INF_ABI_MEMORY_FILE_H
#define INF_ABI_MEMORY_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* offset: in the file; size: of the file; id: of the server's mapping of it. */
bool inf_memory_file(const void *data, uint64_t len_bytes, uint64_t *id,
    int *fd, uint64_t *offset, uint64_t *size)
    __attribute__((visibility("default")));

/* Whether that mapping has ended: no further input will lie in it. */
bool inf_memory_file_ended(uint64_t id)
    __attribute__((visibility("default")));

#endif /* INF_ABI_MEMORY_FILE_H */
