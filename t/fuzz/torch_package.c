/* Any bytes as an AOTInductor package, and as the description of what one
   takes: nothing is written outside of its directory, an error has words, and
   all names are there. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/common/config_json.c"
#include "backends/common/directory.c"
#include "backends/common/error.c"
#include "backends/common/path.c"
#include "backends/pytorch/call_spec.c"
#include "backends/pytorch/engine.c"
#include "backends/pytorch/library_file.c"
#include "backends/pytorch/package.c"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
has_words(TRITONSERVER_Error *err)
{
    check(TRITONSERVER_ErrorMessage(err)[0] != '\0');
    TRITONSERVER_ErrorDelete(err);
}

static void
as_archive(const uint8_t *data, size_t size)
{
    pt_package_t package;
    char path[64];

    int fd = memfd_create("package", MFD_CLOEXEC);
    check(fd != -1 && write(fd, data, size) == (ssize_t) size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    TRITONSERVER_Error *err = pt_package_open(&package, path);
    if (err != NULL) {
        has_words(err);

    } else {
        check(strncmp(package.library, package.directory.path,
            strlen(package.directory.path)) == 0);
        check(access(package.library, R_OK) == 0);
        pt_package_close(&package);
    }

    check(package.directory.path == NULL);
    close(fd);
}

static void
as_description(const uint8_t *data, size_t size)
{
    pt_engine_t *engine = calloc(1, sizeof(*engine));
    char *text = malloc(size + 1);

    check(engine != NULL && text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';

    TRITONSERVER_Error *err = pt_call_spec_read(&engine->signature, text,
        text);
    if (err != NULL) {
        has_words(err);
    }
    for (uint32_t i = 0; err == NULL
         && i < engine->signature.parameter_count; i++)
    {
        check(engine->signature.parameters[i].name[0] != '\0');
    }

    pt_engine_free(engine);
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == '[') {
        as_description(data, size);

    } else if (size > 0) {
        as_archive(data, size);
    }

    return 0;
}
