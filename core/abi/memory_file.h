/*
 * memory_file.h - what a backend of ours may ask beyond Triton's interface:
 *                 which file the bytes of an input are a part of, so that a
 *                 process of the backend's can map them.
 *
 * Owner    The descriptor stays the server's.
 * Thread   any; file: while the request with that input is the backend's.
 * Units    bytes.
 * Errors   false: the bytes lie in no file.
 * Route    backend -> [memory file] -> base's mapped files
 *
 * A backend declares both itself, as weak symbols: other servers have none.
 */

#ifndef INF_ABI_MEMORY_FILE_H
#define INF_ABI_MEMORY_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* offset, size: in and of the file; id: of the server's mapping of it. */
bool inf_memory_file(const void *data, uint64_t len_bytes, uint64_t *id,
    int *fd, uint64_t *offset, uint64_t *size)
    __attribute__((visibility("default")));

/* Whether that mapping is gone: no input will lie there any more. */
bool inf_memory_file_ended(uint64_t id)
    __attribute__((visibility("default")));

#endif /* INF_ABI_MEMORY_FILE_H */
