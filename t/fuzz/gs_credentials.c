/* Any file of credentials of Google Cloud Storage: no crash; an account that is
   found has all its keys, and a token service that nobody else can listen
   to. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/storage/gs_credentials.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    check(c.file == NULL || strncmp(c.token_uri, "https://", 8) == 0
        || strncmp(c.token_uri, "http://localhost", 16) == 0
        || strncmp(c.token_uri, "http://127.0.0.1", 16) == 0
        || strncmp(c.token_uri, "http://[::1]", 12) == 0);
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
