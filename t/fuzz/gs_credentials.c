/* Any file of credentials of Google Cloud Storage: no crash; an account that is
   found has all its keys, and token services that nobody else can listen
   to. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/storage/gs_credentials.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
is_private(const char *url)
{
    return strncmp(url, "https://", 8) == 0
        || strncmp(url, "http://localhost", 16) == 0
        || strncmp(url, "http://127.0.0.1", 16) == 0
        || strncmp(url, "http://[::1]", 12) == 0;
}

static void
find(void)
{
    inf_gs_credentials_t c;

    inf_err_t *err = inf_gs_credentials_find("gs://bucket/r", true, &c);
    if (err != NULL) {
        check(c.file == NULL && c.private_key == NULL);
        inf_err_free(err);
        return;
    }

    check(c.account != INF_GS_USER || (c.client_id != NULL
        && c.client_secret != NULL && c.refresh_token != NULL));
    check(c.account != INF_GS_SERVICE || (c.client_email != NULL
        && c.private_key != NULL));
    check(c.account != INF_GS_EXTERNAL || (c.audience != NULL
        && c.subject_type != NULL
        && (c.source_file != NULL || c.source_url != NULL)
        && (c.source_header == NULL) == (c.source_value == NULL)));
    check(c.file == NULL || is_private(c.token_uri));
    check(c.impersonation_url == NULL || is_private(c.impersonation_url));
    inf_gs_credentials_fini(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[MEMORY_FILE_PATH];
    int fd = memory_file(data, size, path);

    setenv("GOOGLE_APPLICATION_CREDENTIALS", path, 1);
    find();
    close(fd);
    return 0;
}
