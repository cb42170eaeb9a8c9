/*
 * gpu_compiler_functions.h - the functions of NVRTC, the library that compiles
 *                            CUDA C, that backends call; declared here because
 *                            the toolkit's headers may be missing.
 *
 * Owner    nobody: declarations.
 * Thread   none.
 * Units    as the library's.
 * Errors   none.
 * Route    gpu_compiler.c looks the functions up by these rows.
 */

#ifndef GPU_COMPILER_FUNCTIONS_H
#define GPU_COMPILER_FUNCTIONS_H

#include <stddef.h>

typedef int   gpu_rtc_result_t;
typedef void *gpu_rtc_program_t;

enum {
    GPU_RTC_SUCCESS        = 0,
    GPU_RTC_INVALID_OPTION = 5,
    GPU_RTC_COMPILATION    = 6
};

/* field, exported name, parameters; every one returns gpu_rtc_result_t */
#define GPU_RTC_FUNCTIONS(ROW)                                                \
    ROW(version, nvrtcVersion, (int *major, int *minor))                      \
    ROW(arch_count, nvrtcGetNumSupportedArchs, (int *count))                  \
    ROW(archs, nvrtcGetSupportedArchs, (int *archs))                          \
    ROW(create, nvrtcCreateProgram, (gpu_rtc_program_t *program,              \
        const char *source, const char *name, int header_count,               \
        const char *const *headers, const char *const *header_names))         \
    ROW(destroy, nvrtcDestroyProgram, (gpu_rtc_program_t *program))           \
    ROW(compile, nvrtcCompileProgram, (gpu_rtc_program_t program, int count,  \
        const char *const *options))                                          \
    ROW(cubin_size, nvrtcGetCUBINSize, (gpu_rtc_program_t program,            \
        size_t *size))                                                        \
    ROW(cubin, nvrtcGetCUBIN, (gpu_rtc_program_t program, char *cubin))       \
    ROW(ptx_size, nvrtcGetPTXSize, (gpu_rtc_program_t program,                \
        size_t *size))                                                        \
    ROW(ptx, nvrtcGetPTX, (gpu_rtc_program_t program, char *ptx))             \
    ROW(log_size, nvrtcGetProgramLogSize, (gpu_rtc_program_t program,         \
        size_t *size))                                                        \
    ROW(log, nvrtcGetProgramLog, (gpu_rtc_program_t program, char *log))

typedef struct {
    const char *(*error_string)(gpu_rtc_result_t rc);  /* nvrtcGetErrorString */
#define GPU_RTC_FIELD(field, symbol, parameters)                              \
    gpu_rtc_result_t (*field) parameters;
    GPU_RTC_FUNCTIONS(GPU_RTC_FIELD)
#undef GPU_RTC_FIELD
} gpu_rtc_functions_t;

#endif /* GPU_COMPILER_FUNCTIONS_H */
