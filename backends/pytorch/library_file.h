/*
 * library_file.h - makes a shared library's file fit to be loaded, and to be
 *                  unloaded again.
 *
 * Owner    nobody.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG naming the invalid part of the file.
 * Route    package -> [library_file]
 *
 * The system's loader maps a library by its headers, and a file that is
 * shorter than they say ends the process.  A library with a symbol that is
 * unique in the process (compilers make variables of templates such) is never
 * unmapped.  A compiled model shares nothing but C functions with others, so
 * its unique symbols become weak ones.
 */

#ifndef PT_LIBRARY_FILE_H
#define PT_LIBRARY_FILE_H

#include "common/error.h"

/* The file is checked and changed. */
BK_CHECK TRITONSERVER_Error *pt_library_file_prepare(const char *path);

#endif /* PT_LIBRARY_FILE_H */
