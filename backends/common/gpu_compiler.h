/*
 * gpu_compiler.h - NVRTC, opened at run time: CUDA C to code for a device.
 *
 * Owner    The caller closes the compiler, and frees code with free().
 * Thread   open: one; then any.
 * Units    compute capability 8.6 is 86; versions as the driver's, 12040 is
 *          12.4.
 * Errors   NOT_FOUND: no library that suits the driver.  INVALID_ARG: the
 *          source does not compile; the text is the compiler's, with file and
 *          line.  UNSUPPORTED: the compiler does not know the device.
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

/* library: a path or name.  NULL: the usual names are tried, from the newest
 * version whose code the driver can run. */
BK_CHECK TRITONSERVER_Error *gpu_compiler_open(gpu_compiler_t **out,
    const char *library, int driver_version);
void gpu_compiler_close(gpu_compiler_t *c);

/* The compiler's version of CUDA; 12040 is 12.4. */
int gpu_compiler_version(const gpu_compiler_t *c);

/* The architecture to compile for: sm_86, or compute_86 for code that the
 * driver compiles further. */
BK_CHECK TRITONSERVER_Error *gpu_compiler_arch(const gpu_compiler_t *c,
    int capability, char arch[GPU_ARCH_MAX]);

/* options are separated by blanks.  *len does not count the final zero. */
BK_CHECK TRITONSERVER_Error *gpu_compiler_run(const gpu_compiler_t *c,
    const gpu_source_t *source, const char *arch, const char *options,
    char **code, size_t *len);

#endif /* GPU_COMPILER_H */
