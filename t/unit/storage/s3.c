/* Addresses, credentials and listings of S3 storage. */

#include "temp_tree.h"

#include "core/base/buf.h"
#include "core/base/object_address.h"
#include "core/storage/s3_credentials.h"
#include "core/storage/s3_listing.h"

static void
addresses_name_service_bucket_and_prefix(void **state)
{
    (void) state;
    static const struct {
        const char *address;
        const char *endpoint;       /* NULL: the provider's own              */
        const char *bucket;
        const char *prefix;
        const char *root;
    } rows[] = {
        { "s3://bucket", NULL, "bucket", "", "s3://bucket" },
        { "s3://bucket/", NULL, "bucket", "", "s3://bucket" },
        { "s3://bucket//a///b//", NULL, "bucket", "a/b", "s3://bucket/a/b" },
        { "s3://my.dotted-bucket_1/x", NULL, "my.dotted-bucket_1", "x",
          "s3://my.dotted-bucket_1/x" },
        { "s3://localhost:9000/bucket/a b+c", "http://localhost:9000",
          "bucket", "a b+c", "s3://localhost:9000/bucket/a b+c" },
        { "s3://http://127.0.0.1:9000//bucket/a", "http://127.0.0.1:9000",
          "bucket", "a", "s3://http://127.0.0.1:9000/bucket/a" },
        { "s3://https://minio.example/bucket/", "https://minio.example",
          "bucket", "", "s3://https://minio.example/bucket" },
        { "s3:///bucket/a", NULL, "bucket", "a", "s3:///bucket/a" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_object_address_t a;
        assert_ok(inf_object_address_parse(rows[i].address, &a));
        if (rows[i].endpoint == NULL) {
            assert_null(a.endpoint);
        } else {
            assert_string_equal(a.endpoint, rows[i].endpoint);
        }
        assert_string_equal(a.bucket, rows[i].bucket);
        assert_string_equal(a.prefix, rows[i].prefix);
        inf_object_address_fini(&a);

        char *root = inf_object_address_root(rows[i].address);
        assert_string_equal(root, rows[i].root);
        free(root);
    }
}

static void
bad_addresses_say_what_is_missing(void **state)
{
    (void) state;
    static const struct {
        const char *address;
        const char *part;
    } rows[] = {
        { "s3://", "names no bucket" },
        { "s3:///", "names no bucket" },
        { "s3://localhost:9000/", "names no bucket" },
        { "s3://https://host:1/", "names no bucket" },
        { "s3://../etc", "bucket's name" },
        { "s3://buck et/a", "bucket's name" },
        { "s3://host:port/bucket", "bucket's name" },
        { "ftp://bucket", "does not begin with s3://" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_object_address_t a;
        inf_err_t *err = inf_object_address_parse(rows[i].address, &a);
        assert_error(err, INF_ERR_INVALID_ARG, rows[i].part);
    }
}

static void
clear_environment(void)
{
    static const char *const names[] = {
        "TRITON_CLOUD_CREDENTIAL_PATH", "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION",
        "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_CONFIG_FILE",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsetenv(names[i]);
    }
    setenv("HOME", "/nonexistent", 1);
}

static void
the_environment_gives_keys(void **state)
{
    (void) state;
    inf_s3_credentials_t c;

    clear_environment();
    assert_ok(inf_s3_credentials_find("s3://b", &c));
    assert_null(c.key_id);
    assert_string_equal(c.region, "us-east-1");
    inf_s3_credentials_fini(&c);

    setenv("AWS_ACCESS_KEY_ID", "id", 1);
    assert_ok(inf_s3_credentials_find("s3://b", &c));
    assert_null(c.key_id);              /* both are needed                   */
    inf_s3_credentials_fini(&c);

    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    setenv("AWS_SESSION_TOKEN", "token", 1);
    setenv("AWS_REGION", "eu-west-1", 1);   /* often the machine's own       */
    setenv("AWS_DEFAULT_REGION", "eu-west-3", 1);
    assert_ok(inf_s3_credentials_find("s3://b", &c));
    assert_string_equal(c.key_id, "id");
    assert_string_equal(c.secret_key, "secret");
    assert_string_equal(c.session_token, "token");
    assert_string_equal(c.region, "eu-west-3");
    inf_s3_credentials_fini(&c);
}

static void
a_profile_gives_keys_and_region(void **state)
{
    (void) state;
    inf_s3_credentials_t c;
    char *tree = tree_new();

    clear_environment();
    tree_file(tree, "credentials", "[default]\naws_access_key_id = d\n"
        "aws_secret_access_key=ds\n# comment\n[ other ]\n"
        "  aws_access_key_id=o\naws_secret_access_key = os = x\n"
        "aws_session_token=t\n");
    tree_file(tree, "config", "[profile other]\nregion=ap-south-1\n"
        "[default]\nregion = us-west-2\n");
    setenv("AWS_SHARED_CREDENTIALS_FILE", tree_path(tree, "credentials"), 1);
    setenv("AWS_CONFIG_FILE", tree_path(tree, "config"), 1);

    assert_ok(inf_s3_credentials_find("s3://b", &c));
    assert_string_equal(c.key_id, "d");
    assert_string_equal(c.region, "us-west-2");
    assert_null(c.session_token);
    inf_s3_credentials_fini(&c);

    setenv("AWS_PROFILE", "other", 1);
    assert_ok(inf_s3_credentials_find("s3://b", &c));
    assert_string_equal(c.key_id, "o");
    assert_string_equal(c.secret_key, "os = x");
    assert_string_equal(c.region, "ap-south-1");
    inf_s3_credentials_fini(&c);
    tree_free(tree);
}

static void
the_longest_prefix_of_the_file_wins(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        const char *key_id;         /* NULL: an error                        */
        const char *part;
    } rows[] = {
        { "{\"s3\":{\"\":{\"key_id\":\"any\",\"secret_key\":\"s\"},"
          "\"s3://b/\":{\"key_id\":\"b\",\"secret_key\":\"s\"},"
          "\"s3://b/models\":{\"key_id\":\"m\",\"secret_key\":\"s\","
          "\"region\":\"r\"},\"s3://c\":{\"key_id\":\"c\"}}}", "m", NULL },
        { "{\"s3\":{\"s3://b/\":{\"key_id\":\"b\",\"secret_key\":\"s\"},"
          "\"s3://other\":{}}}", "b", NULL },
        { "{\"s3\":{\"s3://other\":{}}}", NULL,
          "Cannot match credential for path  s3://b/models/x" },
        { "{\"gs\":{}}", NULL, "Cannot match credential" },
        { "{\"s3\":[]}", NULL, "\"s3\" must be an object" },
        { "{\"s3\":{\"\":[]}}", NULL, "must be an object" },
        { "{\"s3\":{\"\":{\"key_id\":5}}}", NULL, "\"key_id\"" },
        { "{\"s3\":{\"\":{\"key_id\":\"x\"}}}", NULL, "needed both" },
        { "{\n\"s3\":", NULL, "line 2" },
    };
    char *tree = tree_new();

    clear_environment();
    setenv("AWS_ACCESS_KEY_ID", "environment", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "x", 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_s3_credentials_t c;
        tree_file(tree, "cloud.json", rows[i].text);
        setenv("TRITON_CLOUD_CREDENTIAL_PATH", tree_path(tree, "cloud.json"),
            1);
        inf_err_t *err = inf_s3_credentials_find("s3://b/models/x", &c);
        if (rows[i].key_id == NULL) {
            assert_non_null(err);
            if (strstr(inf_err_msg(err), rows[i].part) == NULL) {
                fail_msg("row %zu: %s", i, inf_err_msg(err));
            }
            inf_err_free(err);
        } else {
            assert_ok(err);
            assert_string_equal(c.key_id, rows[i].key_id);
            inf_s3_credentials_fini(&c);
        }
    }
    tree_free(tree);
}

static void
pages_of_a_listing_join(void **state)
{
    (void) state;
    static const char first[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
        "<Prefix>m/</Prefix><IsTruncated>true</IsTruncated>\n"
        "<Contents><Key>m/a&amp;b.bin</Key><LastModified>2026-11-21T15:24:46"
        ".500Z</LastModified><ETag>&quot;abc-2&quot;</ETag><Size>12</Size>"
        "<Owner><ID>x</ID><Key>not this</Key></Owner></Contents>"
        "<CommonPrefixes><Prefix>m/1/</Prefix></CommonPrefixes>"
        "<NextContinuationToken>t+1/=</NextContinuationToken>"
        "</ListBucketResult>";
    static const char second[] = "<ListBucketResult><Contents>"
        "<Key>m/z</Key><ETag>e</ETag><Size>9223372036854775807</Size>"
        "</Contents></ListBucketResult>";
    inf_object_listing_t l;

    inf_object_listing_init(&l);
    assert_ok(inf_s3_listing_parse(&l, first, sizeof(first) - 1));
    assert_int_equal(l.count, 2);
    assert_string_equal(l.items[0].key, "m/a&b.bin");
    assert_string_equal(l.items[0].etag, "abc-2");
    assert_int_equal(l.items[0].size, 12);
    assert_int_equal(l.items[0].modified_ns, INT64_C(1795274686500000000));
    assert_string_equal(l.items[1].key, "m/1/");
    assert_null(l.items[1].etag);
    assert_string_equal(l.next, "t+1/=");

    assert_ok(inf_s3_listing_parse(&l, second, sizeof(second) - 1));
    assert_int_equal(l.count, 3);
    assert_true(l.items[2].size == INT64_MAX);
    assert_null(l.next);
    inf_object_listing_fini(&l);
}

static void
keys_of_an_encoded_page_are_decoded(void **state)
{
    (void) state;
    static const char page[] = "<ListBucketResult><IsTruncated>false"
        "</IsTruncated><NextContinuationToken></NextContinuationToken>"
        "<Contents><Key>m/a+b%2Bc%2525%07%C3%BC%00%2</Key><ETag>e</ETag>"
        "</Contents><CommonPrefixes><Prefix>m/%31/</Prefix></CommonPrefixes>"
        "<EncodingType>url</EncodingType></ListBucketResult>";
    inf_object_listing_t l;

    inf_object_listing_init(&l);
    assert_ok(inf_s3_listing_parse(&l, page, sizeof(page) - 1));
    assert_int_equal(l.count, 2);
    assert_string_equal(l.items[0].key, "m/a b+c%25\a\xc3\xbc%00%2");
    assert_string_equal(l.items[1].key, "m/1/");
    assert_null(l.next);
    inf_object_listing_fini(&l);
}

static void
what_is_no_listing_is_an_error_with_its_place(void **state)
{
    (void) state;
    static const struct {
        const char *xml;
        const char *part;
    } rows[] = {
        { "", "line 1" },
        { "<html><body>Login</body></html>", "no ListBucketResult" },
        { "<html/>", "no ListBucketResult" },
        { "<ListBucketResult>", "line 1" },
        { "<ListBucketResult>\n<Contents><Key>a</Key></Contents>"
          "</ListBucketResult>", "line 2" },
        { "<ListBucketResult><Contents><Key>a</Key><ETag>e</ETag>"
          "<Size>-4</Size></Contents></ListBucketResult>", "size" },
        { "<ListBucketResult><Contents><Key>a</Key><ETag>e</ETag>"
          "<Size> -4</Size></Contents></ListBucketResult>", "size" },
        { "<ListBucketResult><Contents><Key>a</Key><ETag>e</ETag>"
          "<Size>9223372036854775808</Size></Contents></ListBucketResult>",
          "size" },
        { "<ListBucketResult><Contents><Key>a</Key><ETag>e&#13;&#10;X: 1"
          "</ETag></Contents></ListBucketResult>", "ETag" },
        { "<ListBucketResult><CommonPrefixes><Prefix>m/x</Prefix>"
          "</CommonPrefixes></ListBucketResult>", "end in a slash" },
        { "<ListBucketResult><Contents><Key>a</Key><ETag>e</ETag>"
          "<LastModified>2026-11-21T15:24:46.5.5Z</LastModified></Contents>"
          "</ListBucketResult>", "time" },
        { "<ListBucketResult><Contents><Key>a</Key><ETag>e</ETag>"
          "<LastModified>yesterday</LastModified></Contents>"
          "</ListBucketResult>", "time" },
        { "<ListBucketResult><Contents><Key>a</Key><ETag>e</ETag>"
          "<LastModified>2600-11-21T15:24:46Z</LastModified></Contents>"
          "</ListBucketResult>", "time" },     /* more ns than 63 bits       */
        { "<ListBucketResult><a><b><c><d><e><f><g><h><i><j><k><l><m><n><o><p>"
          "</p></o></n></m></l></k></j></i></h></g></f></e></d></c></b></a>"
          "</ListBucketResult>", "too deep" },
        /* entities of a page's own, inside it and in a file */
        { "<!DOCTYPE ListBucketResult [<!ENTITY k \"m/a\">]>\n"
          "<ListBucketResult><Contents><Key>&k;</Key><ETag>e</ETag>"
          "</Contents></ListBucketResult>", "document type" },
        { "<!DOCTYPE ListBucketResult SYSTEM \"file:///etc/passwd\">\n"
          "<ListBucketResult></ListBucketResult>", "document type" },
        { "<ListBucketResult><Contents><Key>&k;</Key></Contents>"
          "</ListBucketResult>", "undefined entity" },
        { "<ListBucketResult><IsTruncated>true</IsTruncated><Contents>"
          "<Key>a</Key><ETag>e</ETag></Contents></ListBucketResult>",
          "truncated without" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_object_listing_t l;
        inf_object_listing_init(&l);
        inf_err_t *err = inf_s3_listing_parse(&l, rows[i].xml,
            strlen(rows[i].xml));
        assert_error(err, INF_ERR_INTERNAL, rows[i].part);
        inf_object_listing_fini(&l);
    }

    inf_buf_t big;
    inf_object_listing_t l;
    inf_buf_init(&big);
    for (size_t len = 1025; len < 6000; len += 4000) {
        inf_buf_reset(&big);
        inf_buf_puts(&big, "<ListBucketResult><Contents><Key>");
        for (size_t i = 0; i < len; i++) {
            inf_buf_putc(&big, 'k');
        }
        inf_buf_puts(&big, "</Key><ETag>e</ETag></Contents>"
            "</ListBucketResult>");
        inf_object_listing_init(&l);
        assert_error(inf_s3_listing_parse(&l, inf_buf_slice(&big).data,
            inf_buf_slice(&big).len), INF_ERR_INTERNAL,
            len == 1025 ? "more than 1024 bytes" : "too long");
        assert_int_equal(l.count, 0);
        inf_object_listing_fini(&l);
    }
    inf_buf_fini(&big);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_name_service_bucket_and_prefix),
        cmocka_unit_test(bad_addresses_say_what_is_missing),
        cmocka_unit_test(the_environment_gives_keys),
        cmocka_unit_test(a_profile_gives_keys_and_region),
        cmocka_unit_test(the_longest_prefix_of_the_file_wins),
        cmocka_unit_test(pages_of_a_listing_join),
        cmocka_unit_test(keys_of_an_encoded_page_are_decoded),
        cmocka_unit_test(what_is_no_listing_is_an_error_with_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
