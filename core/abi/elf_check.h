/*
 * elf_check.h - checks a library before it is mapped.
 *
 * Owner    none.
 * Thread   any.
 * Units    bytes of the file.
 * Errors   NOT_FOUND, as for a library that dlopen rejects: the path and the
 *          fault.
 * Route    plugin -> [elf_check] -> dlopen
 *
 * The dynamic loader maps a file by its program headers without checks: a
 * truncated file kills the process by SIGBUS.  A library for another machine
 * is reported as missing.
 */

#ifndef INF_ABI_ELF_CHECK_H
#define INF_ABI_ELF_CHECK_H

#include "core/base/error.h"

/* NULL also if path cannot be opened: the loader reports that, and searches
   further directories. */
INF_CHECK inf_err_t *inf_elf_check(const char *path);

#endif /* INF_ABI_ELF_CHECK_H */
