/* gpu_compiler.c - see gpu_compiler.h */

#include "gpu_compiler.h"

#include "gpu_compiler_functions.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 63            /* of compile_options                        */

struct gpu_compiler_s {
    gpu_rtc_functions_t f;
    int                 version;
    int                *archs;          /* in rising order                   */
    int                 arch_count;
};

static TRITONSERVER_Error *open_one(gpu_compiler_t *c, const char *name,
    int driver_version);
static TRITONSERVER_Error *look_up(gpu_compiler_t *c, void *library,
    const char *name);
static TRITONSERVER_Error *read_archs(gpu_compiler_t *c, const char *name);
static TRITONSERVER_Error *failed(const gpu_compiler_t *c,
    gpu_rtc_result_t rc, const char *what);
static TRITONSERVER_Error *split(char *words, const char *options[],
    int *count);
static TRITONSERVER_Error *compile(const gpu_compiler_t *c,
    gpu_rtc_program_t program, const gpu_source_t *source, const char *arch,
    char *words);
static char *program_log(const gpu_compiler_t *c, gpu_rtc_program_t program);
static TRITONSERVER_Error *take_code(const gpu_compiler_t *c,
    gpu_rtc_program_t program, bool cubin, char **code, size_t *len);

TRITONSERVER_Error *
gpu_compiler_open(gpu_compiler_t **out, const char *library,
    int driver_version)
{
    static const char *const names[] = {
        "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"
    };
    TRITONSERVER_Error *err = NULL;

    gpu_compiler_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return bk_err_nomem("state of the compiler");
    }

    if (library != NULL) {
        err = open_one(c, library, driver_version);
    } else {
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            bk_err_drop(err);
            err = open_one(c, names[i], driver_version);
            if (err == NULL) {
                break;
            }
        }
    }
    if (err != NULL) {
        gpu_compiler_close(c);
        return bk_err_add(err, "no compiler of CUDA C (NVRTC)");
    }

    *out = c;
    return NULL;
}

/* The library stays: it has threads and files of its own. */
void
gpu_compiler_close(gpu_compiler_t *c)
{
    if (c != NULL) {
        free(c->archs);
        free(c);
    }
}

int
gpu_compiler_version(const gpu_compiler_t *c)
{
    return c->version;
}

/* Code for 8.0 runs on 8.6, not on 9.0; there the driver translates it. */
TRITONSERVER_Error *
gpu_compiler_arch(const gpu_compiler_t *c, int capability,
    char arch[GPU_ARCH_MAX])
{
    int best = 0;

    for (int i = 0; i < c->arch_count && c->archs[i] <= capability; i++) {
        best = c->archs[i];
    }
    if (best == 0) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "NVRTC %d.%d"
            " compiles for compute capability %d.%d and later, the GPU has"
            " %d.%d", c->version / 1000, c->version % 1000 / 10,
            c->archs[0] / 10, c->archs[0] % 10, capability / 10,
            capability % 10);
    }

    snprintf(arch, GPU_ARCH_MAX, "%s_%d", best / 10 == capability / 10 ? "sm"
        : "compute", best);
    return NULL;
}

TRITONSERVER_Error *
gpu_compiler_run(const gpu_compiler_t *c, const gpu_source_t *source,
    const char *arch, const char *options, char **code, size_t *len)
{
    gpu_rtc_program_t program = NULL;

    char *words = strdup(options);
    if (words == NULL) {
        return bk_err_nomem("options of the compiler");
    }

    TRITONSERVER_Error *err = failed(c, c->f.create(&program, source->text,
        source->path, source->header_count,
        (const char *const *) source->headers,
        (const char *const *) source->header_names), "cannot compile");
    if (err == NULL) {
        err = compile(c, program, source, arch, words);
    }
    if (err == NULL) {
        err = take_code(c, program, arch[0] == 's', code, len);
    }

    if (program != NULL) {
        (void) c->f.destroy(&program);
    }
    free(words);
    return err;
}

static TRITONSERVER_Error *
open_one(gpu_compiler_t *c, const char *name, int driver_version)
{
    int major = 0, minor = 0;

    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, "%s", dlerror());
    }

    TRITONSERVER_Error *err = look_up(c, library, name);
    if (err == NULL) {
        err = failed(c, c->f.version(&major, &minor), name);
    }
    if (err != NULL) {
        return err;
    }

    /* a driver runs what any compiler of its own major version makes */
    if (major > driver_version / 1000) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "%s is of CUDA"
            " %d.%d and the driver is older, of %d.%d: update the driver, or"
            " use the compiler of CUDA %d", name, major, minor,
            driver_version / 1000, driver_version % 1000 / 10,
            driver_version / 1000);
    }

    c->version = major * 1000 + minor * 10;
    return read_archs(c, name);
}

static TRITONSERVER_Error *
look_up(gpu_compiler_t *c, void *library, const char *name)
{
    const char *missing = NULL;

#define LOOK_UP(field, symbol, parameters)                                    \
    c->f.field = (gpu_rtc_result_t (*) parameters) dlsym(library, #symbol);   \
    missing = c->f.field == NULL && missing == NULL ? #symbol : missing;

    GPU_RTC_FUNCTIONS(LOOK_UP)
#undef LOOK_UP

    c->f.error_string = (const char *(*)(gpu_rtc_result_t)) dlsym(library,
        "nvrtcGetErrorString");
    if (c->f.error_string == NULL) {
        missing = "nvrtcGetErrorString";
    }

    return missing == NULL ? NULL : bk_err_new(TRITONSERVER_ERROR_NOT_FOUND,
        "%s has no function %s", name, missing);
}

static TRITONSERVER_Error *
read_archs(gpu_compiler_t *c, const char *name)
{
    int count = 0;

    TRITONSERVER_Error *err = failed(c, c->f.arch_count(&count), name);
    if (err != NULL) {
        return err;
    }
    if (count < 1 || count > 1000) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "%s compiles for %d architectures", name, count);
    }

    free(c->archs);                     /* of a library that failed          */
    c->arch_count = count;
    c->archs = calloc((size_t) count, sizeof(*c->archs));
    return c->archs == NULL ? bk_err_nomem("architectures")
        : failed(c, c->f.archs(c->archs), name);
}

static TRITONSERVER_Error *
failed(const gpu_compiler_t *c, gpu_rtc_result_t rc, const char *what)
{
    return rc == GPU_RTC_SUCCESS ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%s: %s", what,
            c->f.error_string(rc));
}

/* words is cut up, and count raised by how many there are. */
static TRITONSERVER_Error *
split(char *words, const char *options[], int *count)
{
    const int most = *count + WORDS_MAX;
    char *rest = words;

    for (char *w; (w = strtok_r(rest, " \t\r\n", &rest)) != NULL; ) {
        if (*count == most) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "compile_options has more than %d words", WORDS_MAX);
        }
        options[(*count)++] = w;
    }
    return NULL;
}

static TRITONSERVER_Error *
compile(const gpu_compiler_t *c, gpu_rtc_program_t program,
    const gpu_source_t *source, const char *arch, char *words)
{
    char option[GPU_ARCH_MAX + 32];
    const char *options[2 + WORDS_MAX] = { "--no-source-include", option };
    int count = 2;

    snprintf(option, sizeof(option), "--gpu-architecture=%s", arch);
    TRITONSERVER_Error *err = split(words, options, &count);
    if (err != NULL) {
        return err;
    }

    gpu_rtc_result_t rc = c->f.compile(program, count, options);
    if (rc == GPU_RTC_INVALID_OPTION) { /* an older compiler: without it     */
        rc = c->f.compile(program, count - 1, options + 1);
    }
    char *log = program_log(c, program);
    if (rc == GPU_RTC_COMPILATION || rc == GPU_RTC_INVALID_OPTION) {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s", log != NULL
            && log[0] != '\0' ? log : c->f.error_string(rc));
    } else {
        err = failed(c, rc, "cannot compile");
    }

    if (err == NULL && log != NULL && log[0] != '\0') {
        bk_log(TRITONSERVER_LOG_WARN, "%s: %s", source->path, log);
    }
    free(log);
    return err;
}

/* NULL: there is none, or no memory for it. */
static char *
program_log(const gpu_compiler_t *c, gpu_rtc_program_t program)
{
    size_t size = 0;

    if (c->f.log_size(program, &size) != GPU_RTC_SUCCESS || size == 0) {
        return NULL;
    }

    char *log = calloc(1, size + 1);
    if (log != NULL && c->f.log(program, log) != GPU_RTC_SUCCESS) {
        log[0] = '\0';
    }
    for (size_t len = log != NULL ? strlen(log) : 0;
         len > 0 && log[len - 1] == '\n'; len--)
    {
        log[len - 1] = '\0';
    }
    return log;
}

static TRITONSERVER_Error *
take_code(const gpu_compiler_t *c, gpu_rtc_program_t program, bool cubin,
    char **code, size_t *len)
{
    TRITONSERVER_Error *err = failed(c, cubin
        ? c->f.cubin_size(program, len) : c->f.ptx_size(program, len),
        "compiled code");
    if (err != NULL) {
        return err;
    }

    *code = calloc(1, *len + 1);
    if (*code == NULL) {
        return bk_err_nomem("compiled code");
    }

    err = failed(c, cubin ? c->f.cubin(program, *code)
        : c->f.ptx(program, *code), "compiled code");
    if (err != NULL) {
        free(*code);
        *code = NULL;
    }
    return err;
}
