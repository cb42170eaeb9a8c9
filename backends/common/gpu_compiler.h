/*
 * gpu_compiler.h - NVRTC, opened at run time: CUDA C to code for a device.
 *
 * Owner    gpu_compiler_open gives it to the caller; the code it makes is the
 *          caller's, for free().
 * Thread   open: one; then any.
 * Units    compute capability 8.6 is 86; versions as the driver's, 12040 is
 *          12.4.
 * Errors   NOT_FOUND: no library that suits the driver.  INVALID_ARG: the
 *          source does not compile; the text has the compiler's words, with
 *          file and line.  UNSUPPORTED: a device that it has no code for.
 * Route    runtime -> [gpu_compiler] -> libnvrtc.so
 */

#ifndef GPU_COMPILER_H
#define GPU_COMPILER_H

#include "error.h"

#define GPU_ARCH_MAX 32

typedef struct gpu_compiler_s gpu_compiler_t;

/* A source and the files that it may include. */
typedef struct {
    char        *path;
    char        *text;
    char       **header_names;
    char       **headers;
    int          header_count;
} gpu_source_t;

/* library: its path or name; NULL: the usual names, the newest first that the
 * driver can run code of. */
BK_CHECK TRITONSERVER_Error *gpu_compiler_open(gpu_compiler_t **out,
    const char *library, int driver_version);
void gpu_compiler_close(gpu_compiler_t *c);

/* CUDA's version that the compiler is of, as the driver's. */
int gpu_compiler_version(const gpu_compiler_t *c);

/* The architecture to compile for: sm_86, or compute_86, whose code the
 * driver finishes. */
BK_CHECK TRITONSERVER_Error *gpu_compiler_arch(const gpu_compiler_t *c,
    int capability, char arch[GPU_ARCH_MAX]);

/* options: words between blanks.  *len does not count the zero behind. */
BK_CHECK TRITONSERVER_Error *gpu_compiler_run(const gpu_compiler_t *c,
    const gpu_source_t *source, const char *arch, const char *options,
    char **code, size_t *len);

#endif /* GPU_COMPILER_H */
