/*
 * elf_needed.h - reads the libraries that a shared object needs.
 *
 * Owner    The caller owns *out and calls fini.
 * Thread   any.
 * Units    offsets and sizes in bytes of the file.
 * Errors   INVALID_ARG: not a 64-bit ELF file of this byte order, or its
 *          tables lie outside it; otherwise the error of opening or reading.
 * Route    plugin -> forwarding -> [elf_needed] -> the file
 */

#ifndef INF_ABI_ELF_NEEDED_H
#define INF_ABI_ELF_NEEDED_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

typedef struct {
    char     **names;       /* in the order of the file                    */
    size_t     count;
    uint16_t   machine;     /* e_machine                                   */
} inf_elf_needed_t;

/* Reads the names; none and NULL for a statically linked file. */
INF_CHECK inf_err_t *inf_elf_needed_read(const char *path,
    inf_elf_needed_t *out);
void inf_elf_needed_fini(inf_elf_needed_t *needed);

#endif /* INF_ABI_ELF_NEEDED_H */
