/* Addresses and credentials of Google Cloud Storage, and answers of services
   of tokens. */

#include "temp_tree.h"

#include "core/base/object_address.h"
#include "core/storage/access_token.h"
#include "core/storage/gs_credentials.h"

#define S 1e9

#define USER "\"client_id\":\"i\",\"client_secret\":\"s\"," \
             "\"refresh_token\":\"r\""
#define ROBOT "\"client_email\":\"e\",\"private_key\":\"k\""
#define OTHER "\"type\":\"external_account\",\"audience\":\"a\"," \
              "\"subject_token_type\":\"t\""
#define TARGET "\"service_account_impersonation_url\":\"https://x/t\""

static char *tree;

static int
setup(void **state)
{
    (void) state;
    tree = tree_new();
    unsetenv("TRITON_CLOUD_CREDENTIAL_PATH");
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    unsetenv("GCE_METADATA_HOST");
    setenv("HOME", tree, 1);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    tree_free(tree);
    return 0;
}

static void
addresses_name_bucket_and_prefix(void **state)
{
    (void) state;
    static const struct {
        const char *address;
        const char *bucket;         /* NULL: an error                        */
        const char *prefix;         /* or a part of its text                 */
    } rows[] = {
        { "gs://bucket", "bucket", "" },
        { "gs://my.dotted-bucket_1//a///b c+//", "my.dotted-bucket_1",
          "a/b c+" },
        { "gs:///bucket/a", "bucket", "a" },
        { "gs://", NULL, "names no bucket" },
        { "gs://host:80/bucket", NULL, "bucket's name" },
        { "gs://http://host/bucket", NULL, "bucket's name" },
        { "gs://../etc", NULL, "bucket's name" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_object_address_t a;
        inf_err_t *err = inf_object_address_parse(rows[i].address, &a);
        assert_true(inf_object_address_has_scheme(rows[i].address));
        if (rows[i].bucket == NULL) {
            assert_error(err, INF_ERR_INVALID_ARG, rows[i].prefix);
            continue;
        }
        assert_ok(err);
        assert_null(a.endpoint);
        assert_string_equal(a.bucket, rows[i].bucket);
        assert_string_equal(a.prefix, rows[i].prefix);
        inf_object_address_fini(&a);
    }
    char *root = inf_object_address_root("gs://b//a///b//");
    assert_string_equal(root, "gs://b/a/b");
    free(root);
}

/* Looks for the kind of account and its file, without the tree's path. */
static void
found(bool emulator, inf_gs_account_t account, const char *file)
{
    inf_gs_credentials_t c;

    assert_ok(inf_gs_credentials_find("gs://b/models/x", emulator, &c));
    assert_int_equal(c.account, account);
    if (file == NULL) {
        assert_null(c.file);
    } else {
        assert_string_equal(c.file, tree_path(tree, file));
    }
    inf_gs_credentials_fini(&c);
}

static void
rejected(const char *part)
{
    inf_gs_credentials_t c;
    inf_err_t *err = inf_gs_credentials_find("gs://b/models/x", false, &c);

    assert_non_null(err);
    if (strstr(inf_err_msg(err), part) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", inf_err_msg(err), part);
    }
    inf_err_free(err);
    assert_null(c.file);
}

static void
credentials_are_looked_for_in_order(void **state)
{
    (void) state;
    static const char gcloud[] = ".config/gcloud/"
        "application_default_credentials.json";

    found(false, INF_GS_METADATA, NULL);
    found(true, INF_GS_ANONYMOUS, NULL);
    setenv("GCE_METADATA_HOST", "127.0.0.1:1", 1);
    found(true, INF_GS_METADATA, NULL);

    tree_dir(tree, ".config");
    tree_dir(tree, ".config/gcloud");
    tree_file(tree, gcloud, "{\"type\":\"authorized_user\"," USER "}");
    found(false, INF_GS_USER, gcloud);
    found(true, INF_GS_METADATA, NULL);

    tree_file(tree, "key.json", "{\"type\":\"service_account\"," ROBOT "}");
    setenv("GOOGLE_APPLICATION_CREDENTIALS", tree_path(tree, "key.json"), 1);
    found(false, INF_GS_SERVICE, "key.json");
    found(true, INF_GS_SERVICE, "key.json");
    setenv("GOOGLE_APPLICATION_CREDENTIALS", tree_path(tree, "none"), 1);
    rejected("none': cannot open it: No such file");
}

static void
the_longest_prefix_of_the_file_wins(void **state)
{
    (void) state;
    char text[4096];

    tree_file(tree, "user.json", "{" USER "}");
    tree_file(tree, "robot.json", "{" ROBOT ",\"private_key_id\":\"1\"}");
    setenv("GOOGLE_APPLICATION_CREDENTIALS", tree_path(tree, "none"), 1);
    setenv("TRITON_CLOUD_CREDENTIAL_PATH", tree_path(tree, "cloud.json"), 1);

    size_t len = (size_t) snprintf(text, sizeof(text),
        "{\"gs\":{\"\":\"%s\",", tree_path(tree, "user.json"));
    snprintf(text + len, sizeof(text) - len, "\"gs://b/models\":\"%s\","
        "\"gs://b/models/y\":5}}", tree_path(tree, "robot.json"));
    tree_file(tree, "cloud.json", text);
    found(true, INF_GS_SERVICE, "robot.json");

    tree_file(tree, "cloud.json", "{\"gs\":{\"gs://b\":\"\"}}");
    found(false, INF_GS_METADATA, NULL);
    tree_file(tree, "cloud.json", "{\"gs\":{\"gs://c\":\"\"},\"s3\":{\"\":1}}");
    rejected("Cannot match credential for path  gs://b/models/x");
    tree_file(tree, "cloud.json", "{\"gs\":{\"\":{}}}");
    rejected("cloud.json': an entry of \"gs\" must be the name of a file");
}

static void
a_wrong_file_is_named_with_its_key(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        const char *part;
    } rows[] = {
        { "{}", "\"client_email\" is missing" },
        { "[]", "\"client_email\" is missing" },
        { "{\"client_email\":\"e\"}", "\"private_key\" is missing" },
        { "{\"client_email\":\"e\",\"private_key\":\"\"}",
          "\"private_key\" is missing" },
        { "{\"client_email\":5}", "\"client_email\" must be a string" },
        { "{\"refresh_token\":\"r\"}", "\"client_id\" is missing" },
        { "{\"type\":\"authorized_user\"," ROBOT "}",
          "\"client_id\" is missing" },
        { "{\"type\":\"x\"}", "\"type\" must be" },
        { "{\"type\":\"external_account\"}", "\"audience\" is missing" },
        { "{\"type\":\"external_account\",\"audience\":\"a\"}",
          "\"subject_token_type\" is missing" },
        { "{" OTHER "}", "\"credential_source\" must have a \"file\"" },
        { "{" OTHER ",\"credential_source\":{\"executable\":{}}}",
          "\"credential_source\" must have" },
        { "{" OTHER ",\"credential_source\":{\"environment_id\":\"aws1\","
          "\"url\":\"http://x\"}}", "\"credential_source\" must have" },
        { "{" OTHER ",\"credential_source\":{\"url\":\"file:///x\"}}",
          "\"credential_source\" must have" },
        { "{" OTHER ",\"credential_source\":{\"file\":5}}",
          "\"file\" must be a string" },
        { "{" OTHER ",\"credential_source\":{\"file\":\"f\","
          "\"format\":{\"type\":\"json\"}}}",
          "\"subject_token_field_name\" is missing" },
        { "{" OTHER ",\"credential_source\":{\"file\":\"f\","
          "\"format\":{\"type\":\"xml\"}}}", "json or text, not 'xml'" },
        { "{" OTHER ",\"credential_source\":{\"url\":\"http://x\","
          "\"headers\":{\"a\":\"b\",\"c\":\"d\"}}}", "more than one" },
        { "{" OTHER ",\"credential_source\":{\"url\":\"http://x\","
          "\"headers\":{\"a\":5}}}", "\"a\" must be a string" },
        { "{" OTHER ",\"client_id\":\"i\"}", "\"client_id\" of an external" },
        { "{" OTHER ",\"workforce_pool_user_project\":\"p\"}",
          "\"workforce_pool_user_project\" of an external" },
        { "{" OTHER ",\"credential_source\":{\"file\":\"f\"},\"token_url\":"
          "\"http://x\"}", "\"token_url\" must begin with https://" },
        { "{" OTHER ",\"credential_source\":{\"file\":\"f\"},"
          "\"service_account_impersonation_url\":\"http://x\"}",
          "\"service_account_impersonation_url\" must begin with https://" },
        { "{\"type\":\"impersonated_service_account\"}",
          "\"service_account_impersonation_url\" is missing" },
        { "{\"type\":\"impersonated_service_account\"," TARGET "}",
          "\"source_credentials\" must be an object" },
        { "{\"type\":\"impersonated_service_account\"," TARGET ","
          "\"source_credentials\":{\"type\":"
          "\"impersonated_service_account\"}}", "\"type\" must be" },
        { "{" USER ",\"token_uri\":\"ftp://x\"}", "\"token_uri\" must begin" },
        { "{" USER ",\"token_uri\":\"http://1.2.3.4/t\"}", "'http://1.2.3.4" },
        { "{" USER ",\"token_uri\":\"http://localhost.x/t\"}",
          "\"token_uri\"" },
        { "{" USER ",\"token_uri\":\"http://localhost@x/t\"}",
          "\"token_uri\"" },
        { "{" USER ",\"token_uri\":\"http://localhost:1@x/t\"}",
          "\"token_uri\"" },
        { "{" USER ",\"token_uri\":\"http://127.0.0.1.x/t\"}",
          "\"token_uri\"" },
        { "{\n\"private_key\": secret", "line 2" },
    };
    static const char *const good[] = {
        "https://x/t", "http://localhost/t", "http://127.0.0.1:80/t",
        "http://[::1]:80/t", "http://localhost",
    };

    setenv("GOOGLE_APPLICATION_CREDENTIALS", tree_path(tree, "key.json"), 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tree_file(tree, "key.json", rows[i].text);
        rejected(rows[i].part);
        rejected("/key.json': ");
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "{" USER ",\"token_uri\":\"%s\"}",
            good[i]);
        tree_file(tree, "key.json", text);
        found(false, INF_GS_USER, "key.json");
    }
}

static void
another_providers_token_is_found(void **state)
{
    (void) state;
    inf_gs_credentials_t c;

    setenv("GOOGLE_APPLICATION_CREDENTIALS", tree_path(tree, "key.json"), 1);
    tree_file(tree, "key.json", "{" OTHER ",\"credential_source\":{\"file\":"
        "\"f\"}}");
    assert_ok(inf_gs_credentials_find("gs://b", false, &c));
    assert_int_equal(c.account, INF_GS_EXTERNAL);
    assert_string_equal(c.token_uri, "https://sts.googleapis.com/v1/token");
    assert_string_equal(c.source_file, "f");
    assert_null(c.source_field);
    assert_null(c.impersonation_url);
    inf_gs_credentials_fini(&c);

    tree_file(tree, "key.json", "{" OTHER "," TARGET ",\"token_url\":"
        "\"https://sts\",\"service_account_impersonation\":"
        "{\"token_lifetime_seconds\":900},\"credential_source\":{\"url\":"
        "\"http://169.254.169.254/x\",\"headers\":{\"Metadata\":\"True\"},"
        "\"format\":{\"type\":\"json\",\"subject_token_field_name\":"
        "\"id\"}}}");
    assert_ok(inf_gs_credentials_find("gs://b", false, &c));
    assert_string_equal(c.token_uri, "https://sts");
    assert_string_equal(c.source_url, "http://169.254.169.254/x");
    assert_string_equal(c.source_header, "Metadata");
    assert_string_equal(c.source_value, "True");
    assert_string_equal(c.source_field, "id");
    assert_string_equal(c.impersonation_url, "https://x/t");
    assert_int_equal(c.lifetime_s, 900);
    inf_gs_credentials_fini(&c);
}

static void
an_impersonated_account_has_another_in_it(void **state)
{
    (void) state;
    inf_gs_credentials_t c;

    setenv("GOOGLE_APPLICATION_CREDENTIALS", tree_path(tree, "key.json"), 1);
    tree_file(tree, "key.json", "{\"type\":\"impersonated_service_account\","
        TARGET ",\"delegates\":[\"a\", \"b\"],\"source_credentials\":{" USER
        "}}");
    assert_ok(inf_gs_credentials_find("gs://b", false, &c));
    assert_int_equal(c.account, INF_GS_USER);
    assert_string_equal(c.token_uri, "https://oauth2.googleapis.com/token");
    assert_string_equal(c.impersonation_url, "https://x/t");
    assert_string_equal(c.delegates, "[\"a\",\"b\"]");
    assert_int_equal(c.lifetime_s, 3600);
    inf_gs_credentials_fini(&c);
}

static void
no_error_has_words_of_the_file(void **state)
{
    (void) state;
    static const char *const texts[] = {
        "{\"private_key\": secret}", "{\"private_key\": \"secret\n\"}",
        "{\"a\": \"secret\" \"b\"}", "secret", "{\"secret\": 1, \"secret\": 2}",
    };

    setenv("GOOGLE_APPLICATION_CREDENTIALS", tree_path(tree, "key.json"), 1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        inf_gs_credentials_t c;
        tree_file(tree, "key.json", texts[i]);
        inf_err_t *err = inf_gs_credentials_find("gs://b", false, &c);
        assert_non_null(err);
        if (strstr(inf_err_msg(err), "secret") != NULL) {
            fail_msg("%s", inf_err_msg(err));
        }
        inf_err_free(err);
    }
}

static void
a_token_ends_before_it_expires(void **state)
{
    (void) state;
    static const struct {
        const char *json;
        double      seconds;
    } rows[] = {
        { "{\"access_token\":\"t\",\"expires_in\":3599}", 3539 },
        { "{\"access_token\":\"t\",\"expires_in\":100}", 50 },
        { "{\"access_token\":\"t\",\"expires_in\":0}", 0 },
        { "{\"access_token\":\"t\",\"expires_in\":9223372036854775807}",
          86340 },
        { "{\"token_type\":\"Bearer\",\"access_token\":\"t\"}", 240 },
        { "{\"access_token\":\"t\",\"expires_in\":3599.5}", 3539.5 },
        { "{\"access_token\":\"t\",\"expires_in\":0.5}", 0.25 },
        { "{\"access_token\":\"t\",\"expires_in\":1e300}", 86340 },
        { "{\"access_token\":\"t\",\"expires_on\":9.5}", 0 },
        /* as Azure's services write them */
        { "{\"access_token\":\"t\",\"expires_in\":\"3599\","
          "\"expires_on\":\"9\"}", 3539 },
        { "{\"access_token\":\"t\",\"expires_in\":\"9999999999999999999"
          "99\"}", 86340 },
        { "{\"access_token\":\"t\",\"expires_on\":\"99999999999\"}", 86340 },
        { "{\"access_token\":\"t\",\"expires_on\":99999999999}", 86340 },
        { "{\"access_token\":\"t\",\"expires_on\":\"1586984735\"}", 0 },
        /* and as Google's generateAccessToken does */
        { "{\"accessToken\":\"t\",\"expireTime\":\"2099-01-01T00:00:00Z\"}",
          86340 },
        { "{\"accessToken\":\"t\",\"expireTime\":\"2001-01-01T00:00:00Z\"}",
          0 },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_access_token_t t;
        assert_ok(inf_access_token_parse(inf_slice(rows[i].json,
            strlen(rows[i].json)), 7, &t));
        assert_string_equal(t.bearer, "Bearer t");
        assert_true(t.until_ns == 7 + (uint64_t) (rows[i].seconds * S));
        inf_access_token_fini(&t);
        assert_null(t.bearer);
    }
}

static void
what_is_no_token_is_an_error(void **state)
{
    (void) state;
    static const struct {
        const char *json;
        const char *part;
    } rows[] = {
        { "", "no JSON" },
        { "<html>", "no JSON" },
        { "[]", "no \"access_token\"" },
        { "{\"access_token\":\"\"}", "no \"access_token\"" },
        { "{\"access_token\":7}", "no \"access_token\"" },
        { "{\"access_token\":\"a\\r\\nX: y\"}", "no \"access_token\"" },
        { "{\"access_token\":\"\\u00fc\"}", "no \"access_token\"" },
        { "{\"access_token\":\"t\",\"expires_in\":-1}", "\"expires_in\"" },
        { "{\"access_token\":\"t\",\"expires_in\":\"x\"}", "\"expires_in\"" },
        { "{\"access_token\":\"t\",\"expires_in\":\"-1\"}", "\"expires_in\"" },
        { "{\"accessToken\":5}", "no \"access_token\"" },
        { "{\"accessToken\":\"t\",\"expireTime\":5}", "\"expireTime\"" },
        { "{\"accessToken\":\"t\",\"expireTime\":\"tomorrow\"}",
          "\"expireTime\"" },
        { "{\"access_token\":\"t\",\"expires_in\":-0.5}", "\"expires_in\"" },
        { "{\"access_token\":\"t\",\"expires_in\":\"\"}", "\"expires_in\"" },
        { "{\"access_token\":\"t\",\"expires_in\":\"3 s\"}", "\"expires_in\"" },
        { "{\"access_token\":\"t\",\"expires_in\":null}", "\"expires_in\"" },
        { "{\"access_token\":\"t\",\"expires_in\":true}", "\"expires_in\"" },
        { "{\"access_token\":\"t\",\"expires_on\":\"1 h\"}", "\"expires_on\"" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_access_token_t t;
        inf_err_t *err = inf_access_token_parse(inf_slice(rows[i].json,
            strlen(rows[i].json)), 0, &t);
        assert_error(err, INF_ERR_INTERNAL, rows[i].part);
        assert_null(t.bearer);
    }
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(addresses_name_bucket_and_prefix),
        T(credentials_are_looked_for_in_order),
        T(the_longest_prefix_of_the_file_wins),
        T(a_wrong_file_is_named_with_its_key),
        T(another_providers_token_is_found),
        T(an_impersonated_account_has_another_in_it),
        T(no_error_has_words_of_the_file),
        T(a_token_ends_before_it_expires),
        T(what_is_no_token_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
