/*
 * elf_check.h - says what is wrong with a library before it is mapped.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    bytes of the file.
 * Errors   NOT_FOUND, as for a library that dlopen rejects: the path and what
 *          is wrong with it.
 * Route    plugin -> [elf_check] -> dlopen
 *
 * The loader maps a file by its program headers and trusts them: one that was
 * cut short kills the process by SIGBUS.  Another machine's library it calls
 * missing.
 */

#ifndef INF_ABI_ELF_CHECK_H
#define INF_ABI_ELF_CHECK_H

#include "core/base/error.h"

/* NULL also when path can't be opened: the loader says why, and knows other
   places to look. */
INF_CHECK inf_err_t *inf_elf_check(const char *path);

#endif /* INF_ABI_ELF_CHECK_H */
