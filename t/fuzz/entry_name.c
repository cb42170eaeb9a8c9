/* Any name of a directory: as a version it is what strtoull reads or nothing,
   as a model's it is printable, and what is shown of it always is. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/path.h"
#include "core/model/versions.h"
#include "core/proto/message_utf8.h"
#include "core/repository/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
need(bool truth)
{
    if (!truth) {
        abort();
    }
}

static bool
is_clean(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if ((unsigned char) *p < ' ' || *p == 0x7f) {
            return false;
        }
    }
    return inf_utf8_valid(inf_slice_str(text));
}

static void
check_version(const char *name)
{
    int64_t version = -1;
    char text[24];
    inf_version_verdict_t verdict = inf_version_parse(inf_slice_str(name),
        &version);

    errno = 0;
    unsigned long long n = strtoull(name, NULL, 10);
    bool digits = name[0] != '\0' && name[strspn(name, "0123456789")] == '\0';
    snprintf(text, sizeof(text), "%lld", (long long) version);
    if (verdict == INF_VERSION_OK) {
        need(strcmp(text, name) == 0);
    } else if (verdict == INF_VERSION_TOO_LARGE) {
        need(digits && (errno == ERANGE || n > INT64_MAX));
    } else {
        need(!digits || (name[0] == '0' && name[1] != '\0'));
    }
    need((inf_version_verdict_text(verdict) != NULL)
        == (verdict != INF_VERSION_OK && verdict != INF_VERSION_RESERVED));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = malloc(size + 1);
    char shown[INF_SCAN_PRINTABLE];

    if (size > 0) {
        memcpy(name, data, size);
    }
    name[size] = '\0';
    check_version(name);

    size_t len = strlen(name);
    if (inf_model_name_problem(name, len) == NULL) {
        need(is_clean(name) && len <= INF_MODEL_NAME_MAX);
        need(strchr(name, '/') == NULL && inf_path_is_inner(name));
    }
    need(size == len || inf_model_name_problem((const char *) data, size)
        != NULL);
    need(is_clean(inf_scan_printable(name, shown)));
    need(strlen(shown) < INF_SCAN_PRINTABLE);
    free(name);
    return 0;
}
