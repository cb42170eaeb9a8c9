/* Requests for access tokens of Azure Storage. */

#include "temp_tree.h"

#include <stdbool.h>

#include "core/storage/azure_token.h"

#define RESOURCE "&resource=https%3A%2F%2Fstorage.azure.com%2F"

static int
clear_environment(void **state)
{
    (void) state;
    static const char *const names[] = {
        "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "AZURE_TENANT_ID",
        "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_AUTHORITY_HOST",
        "AZURE_FEDERATED_TOKEN_FILE", "AZURE_POD_IDENTITY_AUTHORITY_HOST",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsetenv(names[i]);
    }
    return 0;
}

/* NULL: none. */
static void
expect(bool any_identity, const char *client_id, const char *url,
    const char *header, const char *form)
{
    inf_azure_token_request_t r;
    char line[128];

    assert_ok(inf_azure_token_request(any_identity, client_id, &r));
    assert_string_equal(r.url, url);
    if (header != NULL) {
        snprintf(line, sizeof(line), "%s: %s", r.header, r.value);
        assert_string_equal(line, header);
    } else {
        assert_null(r.header);
    }
    if (form != NULL) {
        assert_string_equal(r.form, form);
    } else {
        assert_null(r.form);
    }
    inf_azure_token_request_fini(&r);
}

static void
a_managed_identity_is_asked_for_on_this_machine(void **state)
{
    (void) state;
    expect(false, NULL, "http://169.254.169.254/metadata/identity/oauth2/token"
        "?api-version=2018-02-01" RESOURCE, "Metadata: true", NULL);
    expect(true, "a b", "http://169.254.169.254/metadata/identity/oauth2/token"
        "?api-version=2018-02-01" RESOURCE "&client_id=a%20b",
        "Metadata: true", NULL);

    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://127.0.0.1:1/", 1);
    expect(false, NULL, "http://127.0.0.1:1/metadata/identity/oauth2/token"
        "?api-version=2018-02-01" RESOURCE, "Metadata: true", NULL);

    setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:2/msi/token", 1);
    setenv("IDENTITY_HEADER", "the-secret", 1);
    expect(false, "id", "http://127.0.0.1:2/msi/token?api-version=2019-08-01"
        RESOURCE "&client_id=id", "X-IDENTITY-HEADER: the-secret", NULL);
}

/* AZURE_CLIENT_ID is of "default" alone. */
static void
the_default_is_what_the_environment_has(void **state)
{
    (void) state;
    char *tree = tree_new();

    setenv("AZURE_CLIENT_ID", "client", 1);
    expect(true, NULL, "http://169.254.169.254/metadata/identity/oauth2/token"
        "?api-version=2018-02-01" RESOURCE "&client_id=client",
        "Metadata: true", NULL);
    expect(false, NULL, "http://169.254.169.254/metadata/identity/oauth2/token"
        "?api-version=2018-02-01" RESOURCE, "Metadata: true", NULL);

    tree_file(tree, "token", "a.b.c\n");
    setenv("AZURE_TENANT_ID", "tenant", 1);
    setenv("AZURE_FEDERATED_TOKEN_FILE", tree_path(tree, "token"), 1);
    expect(true, NULL,
        "https://login.microsoftonline.com/tenant/oauth2/v2.0/token", NULL,
        "grant_type=client_credentials&scope=https%3A%2F%2Fstorage.azure.com"
        "%2F.default&client_id=client&client_assertion_type=urn%3Aietf%3A"
        "params%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"
        "&client_assertion=a.b.c");
    expect(false, NULL, "http://169.254.169.254/metadata/identity/oauth2/token"
        "?api-version=2018-02-01" RESOURCE, "Metadata: true", NULL);

    setenv("AZURE_CLIENT_SECRET", "s&t=", 1);
    setenv("AZURE_AUTHORITY_HOST", "http://127.0.0.1:3/", 1);
    expect(true, NULL, "http://127.0.0.1:3/tenant/oauth2/v2.0/token", NULL,
        "grant_type=client_credentials&scope=https%3A%2F%2Fstorage.azure.com"
        "%2F.default&client_id=client&client_secret=s%26t%3D");
    tree_free(tree);
}

static void
what_cannot_be_asked_for_is_named(void **state)
{
    (void) state;
    inf_azure_token_request_t r;

    setenv("IDENTITY_ENDPOINT", "http://127.0.0.1:2/msi/token", 1);
    assert_error(inf_azure_token_request(false, NULL, &r),
        INF_ERR_UNSUPPORTED, "IDENTITY_ENDPOINT without IDENTITY_HEADER");
    assert_null(r.url);

    setenv("AZURE_TENANT_ID", "tenant", 1);
    setenv("AZURE_CLIENT_ID", "client", 1);
    setenv("AZURE_FEDERATED_TOKEN_FILE", "/nonexistent/token", 1);
    assert_error(inf_azure_token_request(true, NULL, &r),
        INF_ERR_INVALID_ARG, "AZURE_FEDERATED_TOKEN_FILE '/nonexistent/token':"
        " cannot open it: No such file");
    setenv("AZURE_FEDERATED_TOKEN_FILE", "/dev/zero", 1);
    assert_error(inf_azure_token_request(true, NULL, &r),
        INF_ERR_INVALID_ARG, "has more than 65536 bytes");

    setenv("AZURE_AUTHORITY_HOST", "http://login.example", 1);
    assert_error(inf_azure_token_request(true, NULL, &r),
        INF_ERR_INVALID_ARG, "AZURE_AUTHORITY_HOST must begin with https://");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_managed_identity_is_asked_for_on_this_machine,
            clear_environment),
        cmocka_unit_test_setup(the_default_is_what_the_environment_has,
            clear_environment),
        cmocka_unit_test_setup(what_cannot_be_asked_for_is_named,
            clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
