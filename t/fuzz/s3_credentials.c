/* Any file of credentials, as JSON and as profiles: no crash, and what comes
   out has its key and secret together, and a region. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/storage/s3_credentials.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
find(void)
{
    inf_s3_credentials_t c;

    inf_err_t *err = inf_s3_credentials_find("s3://host:1/bucket/r", &c);
    if (err != NULL) {
        inf_err_free(err);
        return;
    }

    if ((c.key_id == NULL) != (c.secret_key == NULL) || c.region == NULL
        || c.region[0] == '\0')
    {
        abort();
    }
    inf_s3_credentials_fini(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[MEMORY_FILE_PATH];
    int fd = memory_file(data, size, path);

    setenv("HOME", "/nonexistent", 1);
    unsetenv("AWS_ACCESS_KEY_ID");
    setenv("TRITON_CLOUD_CREDENTIAL_PATH", path, 1);
    find();

    unsetenv("TRITON_CLOUD_CREDENTIAL_PATH");
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    setenv("AWS_CONFIG_FILE", path, 1);
    find();
    setenv("AWS_PROFILE", "p", 1);
    find();
    unsetenv("AWS_PROFILE");

    close(fd);
    return 0;
}
