/*
 * memory_file.h - a file in memory with a fuzzer's input.
 *
 * Owner    the fuzzer closes the descriptor; the path is valid until then.
 * Thread   any.
 * Units    bytes.
 * Errors   abort.
 * Route    libFuzzer -> fuzzer -> [memory file] -> readers of files
 */

#ifndef T_FUZZ_MEMORY_FILE_H
#define T_FUZZ_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#define MEMORY_FILE_PATH 64

static inline int
memory_file(const uint8_t *data, size_t size, char path[MEMORY_FILE_PATH])
{
    int fd = memfd_create("input", MFD_CLOEXEC);

    check(fd >= 0 && write(fd, data, size) == (ssize_t) size);
    snprintf(path, MEMORY_FILE_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

#endif /* T_FUZZ_MEMORY_FILE_H */
