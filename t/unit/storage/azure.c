/* Addresses, credentials, listings, dates and signatures of Azure Blob
   Storage. */

#include "temp_tree.h"

#include "core/base/buf.h"
#include "core/base/object_address.h"
#include "core/storage/azure_credentials.h"
#include "core/storage/azure_signature.h"
#include "core/storage/http_date.h"
#include "core/storage/azure_listing.h"

/* The emulator's well-known one. */
#define KEY "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/" \
    "K1SZFPTOtr/KBHBeksoGMGw=="

#define PAGE(blobs) "<EnumerationResults><Blobs>" blobs "</Blobs>" \
    "</EnumerationResults>"

static void
addresses_name_account_container_and_prefix(void **state)
{
    (void) state;
    static const struct {
        const char *address;
        const char *container;
        const char *prefix;
        const char *query;          /* NULL: none                            */
        const char *root;
    } rows[] = {
        { "as://acc/c", "c", "", NULL, "as://acc/c" },
        { "as://acc.blob.core.windows.net/my-c//a///b//", "my-c", "a/b", NULL,
          "as://acc.blob.core.windows.net/my-c/a/b" },
        { "as://acc//$web/a b", "$web", "a b", NULL, "as://acc/$web/a b" },
        { "as://acc/c?sv=2021&sig=a%2Fb/c", "c", "", "sv=2021&sig=a%2Fb/c",
          "as://acc/c" },
        { "as://acc/c/a/?sig=x?y", "c", "a", "sig=x?y", "as://acc/c/a" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_object_address_t a;
        assert_ok(inf_object_address_parse(rows[i].address, &a));
        assert_null(a.endpoint);
        assert_string_equal(a.account, "acc");
        assert_string_equal(a.bucket, rows[i].container);
        assert_string_equal(a.prefix, rows[i].prefix);
        if (rows[i].query == NULL) {
            assert_null(a.query);
        } else {
            assert_string_equal(a.query, rows[i].query);
        }
        inf_object_address_fini(&a);

        char *root = inf_object_address_root(rows[i].address);
        assert_string_equal(root, rows[i].root);
        free(root);
    }
}

static void
bad_addresses_say_what_is_missing_and_no_signature(void **state)
{
    (void) state;
    static const struct {
        const char *address;
        const char *part;
    } rows[] = {
        { "as://", "names no storage account" },
        { "as:///c", "names no storage account" },
        { "as://.blob.core.windows.net/c", "such as as://account/container" },
        { "as://acc", "names no container" },
        { "as://acc/?sig=secret", "names no container" },
        { "as://acc.example.com/c?sig=secret", "storage account" },
        { "as://127.0.0.1:10000/acc/c", "storage account" },
        { "as://acc/c.d/x?sig=secret", "container's name" },
        { "as://acc/c/x?secret", "no shared access signature" },
        { "as://acc/c/x?", "no shared access signature" },
        { "as://acc/c/x?sig=secret#", "percent-encoded" },
        { "as://acc/c/x?a=b c&sig=secret", "percent-encoded" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_object_address_t a;
        inf_err_t *err = inf_object_address_parse(rows[i].address, &a);
        assert_non_null(err);
        assert_null(strstr(inf_err_msg(err), "secret"));
        assert_error(err, INF_ERR_INVALID_ARG, rows[i].part);
        assert_null(a.bucket);
    }
}

static void
clear_environment(void)
{
    static const char *const names[] = {
        "TRITON_CLOUD_CREDENTIAL_PATH", "AZURE_STORAGE_ACCOUNT",
        "AZURE_STORAGE_KEY", "AZURE_STORAGE_AUTH_TYPE",
        "AZURE_STORAGE_CLIENT_ID",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsetenv(names[i]);
    }
}

static void
the_environment_gives_a_key_or_an_identity(void **state)
{
    (void) state;
    inf_azure_credentials_t c;

    clear_environment();
    assert_ok(inf_azure_credentials_find("as://a/c", &c));
    assert_int_equal(c.auth, INF_AZURE_ANONYMOUS);
    assert_null(c.account);

    setenv("AZURE_STORAGE_AUTH_TYPE", "key", 1);
    assert_ok(inf_azure_credentials_find("as://a/c", &c));
    assert_int_equal(c.auth, INF_AZURE_ANONYMOUS);

    setenv("AZURE_STORAGE_ACCOUNT", "acc", 1);
    setenv("AZURE_STORAGE_KEY", "a2V5", 1);
    setenv("AZURE_STORAGE_CLIENT_ID", "id", 1);
    assert_ok(inf_azure_credentials_find("as://a/c", &c));
    assert_int_equal(c.auth, INF_AZURE_KEY);
    assert_string_equal(c.account, "acc");
    assert_string_equal(c.key, "a2V5");
    assert_string_equal(c.client_id, "id");
    inf_azure_credentials_fini(&c);
    assert_null(c.key);

    setenv("AZURE_STORAGE_AUTH_TYPE", "managed_identity", 1);
    assert_ok(inf_azure_credentials_find("as://a/c", &c));
    assert_int_equal(c.auth, INF_AZURE_MANAGED_IDENTITY);
    inf_azure_credentials_fini(&c);
    setenv("AZURE_STORAGE_AUTH_TYPE", "default", 1);
    assert_ok(inf_azure_credentials_find("as://a/c", &c));
    assert_int_equal(c.auth, INF_AZURE_ANY_IDENTITY);
    inf_azure_credentials_fini(&c);

    setenv("AZURE_STORAGE_AUTH_TYPE", "msi", 1);
    assert_error(inf_azure_credentials_find("as://a/c", &c),
        INF_ERR_INVALID_ARG, "AZURE_STORAGE_AUTH_TYPE: 'msi' is not key,"
        " managed_identity or default");
    assert_null(c.key);
}

static void
the_longest_prefix_of_the_file_wins(void **state)
{
    (void) state;
    static const struct {
        const char      *text;
        inf_azure_auth_t auth;
        const char      *part;      /* of an error; NULL: none               */
    } rows[] = {
        { "{\"as\":{\"\":{},\"as://a/c\":{\"account_str\":\"\","
          "\"account_key\":\"a2V5\"}}}", INF_AZURE_KEY, NULL },
        { "{\"as\":{\"as://a/c\":{\"auth_type\":\"default\"}}}",
          INF_AZURE_ANY_IDENTITY, NULL },
        { "{\"as\":{\"\":{\"auth_type\":\"managed_identity\","
          "\"client_id\":\"id\"}}}", INF_AZURE_MANAGED_IDENTITY, NULL },
        { "{\"as\":{\"\":{}}}", INF_AZURE_ANONYMOUS, NULL },
        { "{\"as\":{\"as://b\":{}}}", INF_AZURE_ANONYMOUS,
          "Cannot match credential for path  as://a/c/m" },
        { "{\"s3\":{}}", INF_AZURE_ANONYMOUS, "Cannot match credential" },
        { "{\"as\":{\"\":\"x\"}}", INF_AZURE_ANONYMOUS,
          "an entry of \"as\" must be an object" },
        { "{\"as\":{\"\":{\"account_key\":5}}}", INF_AZURE_ANONYMOUS,
          "\"account_key\" must be a string" },
        { "{\"as\":{\"\":{\"auth_type\":\"sas\"}}}", INF_AZURE_ANONYMOUS,
          "\"auth_type\": 'sas' is not key" },
    };
    char *tree = tree_new();

    clear_environment();
    setenv("AZURE_STORAGE_KEY", "ZW52", 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_azure_credentials_t c;
        tree_file(tree, "cloud.json", rows[i].text);
        setenv("TRITON_CLOUD_CREDENTIAL_PATH", tree_path(tree, "cloud.json"),
            1);
        inf_err_t *err = inf_azure_credentials_find("as://a/c/m?sig=secret",
            &c);
        if (rows[i].part != NULL) {
            assert_non_null(err);
            assert_non_null(strstr(inf_err_msg(err), rows[i].part));
            assert_null(strstr(inf_err_msg(err), "secret"));
            inf_err_free(err);
        } else {
            assert_ok(err);
            assert_int_equal(c.auth, rows[i].auth);
            assert_null(c.account);
            inf_azure_credentials_fini(&c);
        }
    }
    tree_free(tree);
}

static void
pages_of_a_listing_join(void **state)
{
    (void) state;
    static const char first[] =
        "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"
        "<EnumerationResults ServiceEndpoint=\"https://a.blob.core.windows.net"
        "/\" ContainerName=\"c\"><Prefix>m/</Prefix><Delimiter>/</Delimiter>"
        "<Blobs>\n<Blob><Name>m/a&amp;b.bin</Name><Properties><Creation-Time>"
        "Fri, 20 Nov 2026 15:24:46 GMT</Creation-Time><Last-Modified>"
        "Sat, 21 Nov 2026 15:24:46 GMT</Last-Modified><Etag>0x8DCACB31CE7DB5C"
        "</Etag><Content-Length>12</Content-Length><Content-MD5 />"
        "<ResourceType>file</ResourceType></Properties><Metadata><Name>not "
        "this</Name></Metadata></Blob><BlobPrefix><Name>m/1/</Name>"
        "<Properties><Etag>0x8D</Etag><ResourceType>directory</ResourceType>"
        "<Content-Length>0</Content-Length></Properties></BlobPrefix></Blobs>"
        "<NextMarker>2!88!MDAw</NextMarker></EnumerationResults>";
    static const char second[] = PAGE("<Blob><Name>m/z</Name><Properties>"
        "<Etag>&quot;e&quot;</Etag><Content-Length>9223372036854775807"
        "</Content-Length></Properties></Blob>");
    inf_object_listing_t l;

    inf_object_listing_init(&l);
    assert_ok(inf_azure_listing_parse(&l, first, sizeof(first) - 1));
    assert_int_equal(l.count, 2);
    assert_string_equal(l.items[0].key, "m/a&b.bin");
    assert_string_equal(l.items[0].etag, "0x8DCACB31CE7DB5C");
    assert_int_equal(l.items[0].size, 12);
    assert_int_equal(l.items[0].modified_ns, INT64_C(1795274686000000000));
    assert_string_equal(l.items[1].key, "m/1/");
    assert_null(l.items[1].etag);
    assert_string_equal(l.next, "2!88!MDAw");

    assert_ok(inf_azure_listing_parse(&l, second, sizeof(second) - 1));
    assert_int_equal(l.count, 3);
    assert_string_equal(l.items[2].etag, "e");
    assert_true(l.items[2].size == INT64_MAX);
    assert_null(l.next);
    inf_object_listing_fini(&l);
}

/* U+FFFE cannot be in XML; other names hold percent signs of their own. */
static void
names_that_say_so_are_decoded(void **state)
{
    (void) state;
    static const char page[] = PAGE(
        "<Blob><Name Encoded=\"true\">m%2Fa%20b+%EF%BF%BE</Name><Properties>"
        "<Etag>e</Etag></Properties></Blob><Blob><Name>m/%41</Name>"
        "<Properties><Etag>e</Etag></Properties></Blob>"
        "<Blob><Name Encoded=\"false\">m/%42</Name><Properties><Etag>e</Etag>"
        "</Properties></Blob>"
        "<BlobPrefix><Name Encoded=\"true\">m%2F%EF%BF%BF%2F</Name>"
        "</BlobPrefix>");
    inf_object_listing_t l;

    inf_object_listing_init(&l);
    assert_ok(inf_azure_listing_parse(&l, page, sizeof(page) - 1));
    assert_int_equal(l.count, 4);
    assert_string_equal(l.items[0].key, "m/a b+\xef\xbf\xbe");
    assert_string_equal(l.items[1].key, "m/%41");
    assert_string_equal(l.items[2].key, "m/%42");
    assert_string_equal(l.items[3].key, "m/\xef\xbf\xbf/");
    inf_object_listing_fini(&l);
}

/* In an account with a hierarchical namespace. */
static void
directories_that_are_blobs_are_left_out(void **state)
{
    (void) state;
    static const char page[] = PAGE(
        "<Blob><Name>m/1</Name><Properties><Etag>d</Etag><ResourceType>"
        "directory</ResourceType></Properties></Blob>"
        "<Blob><Name>m/1/x</Name><Properties><Etag>e</Etag></Properties>"
        "</Blob>");
    inf_object_listing_t l;

    inf_object_listing_init(&l);
    assert_ok(inf_azure_listing_parse(&l, page, sizeof(page) - 1));
    assert_int_equal(l.count, 1);
    assert_string_equal(l.items[0].key, "m/1/x");
    assert_string_equal(l.items[0].etag, "e");
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
        { "<ListBucketResult/>", "no EnumerationResults" },
        { "<EnumerationResults>", "line 1" },
        { PAGE("\n<Blob><Name>a</Name></Blob>"), "line 2" },
        { PAGE("<Blob><Properties><Etag>e</Etag></Properties></Blob>"),
          "no key" },
        { PAGE("<Blob><Name></Name><Properties><Etag>e</Etag></Properties>"
          "</Blob>"), "no key" },
        { PAGE("<Blob><Properties><Content-Length>1k</Content-Length>"
          "</Properties></Blob>"), "size" },
        { PAGE("<Blob><Properties><Last-Modified>2026-11-21T15:24:46Z"
          "</Last-Modified></Properties></Blob>"), "Sat, 21 Nov" },
        { "<!DOCTYPE EnumerationResults []><EnumerationResults/>",
          "document type" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_object_listing_t l;
        inf_object_listing_init(&l);
        inf_err_t *err = inf_azure_listing_parse(&l, rows[i].xml,
            strlen(rows[i].xml));
        assert_error(err, INF_ERR_INTERNAL, rows[i].part);
        inf_object_listing_fini(&l);
    }
}

static void
dates_are_read_and_written(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        time_t      seconds;
    } rows[] = {
        { "Thu, 01 Jan 1970 00:00:00 GMT", 0 },
        { "Thu, 29 Feb 2024 23:59:59 GMT", 1709251199 },
        { "Sat, 21 Nov 2026 15:24:46 GMT", 1795274686 },
    };
    static const char *const wrong[] = {
        "", "Sat, 21 Nov 2026 15:24:46", "Sat, 21 Nov 2026 15:24:46 GMT+1",
        "Sun, 21 Nov 2026 15:24:46 GMT", "Sat, 21 Nov 2026 25:24:46 GMT",
        "Sat, 31 Feb 2026 15:24:46 GMT", "Sat, 21 Foo 2026 15:24:46 GMT",
        "Saturday, 21-Nov-26 15:24:46 GMT", "Wed, 31 Dec 1969 23:59:59 GMT",
        "Sat, 21 Nov 9999 15:24:46 GMT", "2026-11-21T15:24:46Z",
    };
    char text[INF_HTTP_DATE_BYTES];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_http_date_format(rows[i].seconds, text);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(inf_http_date_parse(text),
            (int64_t) rows[i].seconds * 1000000000);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(inf_http_date_parse(wrong[i]), -1);
    }
}

/* The expected ones come from Python's hmac. */
static void
requests_are_signed_with_the_key(void **state)
{
    (void) state;
    static const struct {
        inf_azure_request_t request;
        const char         *value;
    } rows[] = {
        { { .account = "acc", .path = "/models/a%20b/c",
            .date = "Sat, 21 Nov 2026 15:24:46 GMT", .if_match = "\"0x8D\"",
            .range = "bytes=0-8388607" },
          "SharedKey acc:rNLPR1Et5eMDs1CAb3v8T/0rN0YsE6WyVjjS5bSnt/w=" },
        { { .account = "devstoreaccount1", .path = "/devstoreaccount1/models",
            .query = "restype=container&comp=list&prefix=a%20b%2F&delimiter="
              "%2F&maxresults=1&marker=2%218%3D%3D",
            .date = "Sat, 21 Nov 2026 15:24:46 GMT" },
          "SharedKey devstoreaccount1:"
          "3VmdV2/+cFCIU64qTEIHaKbzpSPb0HsRWKQs8fI0Roo=" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_buf_t value;
        inf_buf_init(&value);
        assert_ok(inf_azure_sign(&rows[i].request, KEY, &value));
        assert_string_equal(value.data, rows[i].value);
        inf_buf_fini(&value);
    }
}

static void
a_key_that_is_none_is_not_told(void **state)
{
    (void) state;
    static const inf_azure_request_t request = {
        .account = "acc", .path = "/c", .date = "today"
    };
    static const char *const wrong[] = { "not!base64", "" };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        inf_buf_t value;
        inf_buf_init(&value);
        assert_error(inf_azure_sign(&request, wrong[i], &value),
            INF_ERR_INVALID_ARG, "the key of the storage account is not"
            " base64");
        inf_buf_fini(&value);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_name_account_container_and_prefix),
        cmocka_unit_test(bad_addresses_say_what_is_missing_and_no_signature),
        cmocka_unit_test(the_environment_gives_a_key_or_an_identity),
        cmocka_unit_test(the_longest_prefix_of_the_file_wins),
        cmocka_unit_test(pages_of_a_listing_join),
        cmocka_unit_test(names_that_say_so_are_decoded),
        cmocka_unit_test(directories_that_are_blobs_are_left_out),
        cmocka_unit_test(what_is_no_listing_is_an_error_with_its_place),
        cmocka_unit_test(dates_are_read_and_written),
        cmocka_unit_test(requests_are_signed_with_the_key),
        cmocka_unit_test(a_key_that_is_none_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
