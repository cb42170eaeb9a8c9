#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/proto/base64.h"

static void
decodes(const char *text, const char *bytes, size_t len)
{
    uint8_t out[64];
    size_t n;

    assert_true(inf_base64_room(strlen(text)) <= sizeof(out));
    assert_true(inf_base64_decode(inf_slice_str(text), out, &n));
    assert_int_equal(n, len);
    assert_memory_equal(out, bytes, len);
}

/* RFC 4648, section 10, and bytes of every bit. */
static void
what_is_base64_is_decoded(void **state)
{
    (void) state;
    decodes("", "", 0);
    decodes("Zg==", "f", 1);
    decodes("Zm8=", "fo", 2);
    decodes("Zm9v", "foo", 3);
    decodes("Zm9vYg==", "foob", 4);
    decodes("Zm9vYmE=", "fooba", 5);
    decodes("Zm9vYmFy", "foobar", 6);
    decodes("AP+A/w==", "\x00\xff\x80\xff", 4);
    decodes("Zm9vYg", "foob", 4);           /* without padding               */
    decodes(" Zm9v\r\nYmFy\t", "foobar", 6);
}

static void
encodes(const char *bytes, size_t len, const char *text, const char *url)
{
    inf_buf_t out;

    inf_buf_init(&out);
    inf_base64_put(&out, inf_slice(bytes, len));
    inf_buf_putc(&out, ' ');
    inf_base64_put_url(&out, inf_slice(bytes, len));
    assert_true(strncmp(out.data, text, strlen(text)) == 0);
    assert_string_equal(out.data + strlen(text) + 1, url);
    inf_buf_fini(&out);
}

static void
bytes_are_encoded_for_json_and_urls(void **state)
{
    (void) state;
    encodes("", 0, "", "");
    encodes("f", 1, "Zg==", "Zg");
    encodes("fo", 2, "Zm8=", "Zm8");
    encodes("foo", 3, "Zm9v", "Zm9v");
    encodes("foob", 4, "Zm9vYg==", "Zm9vYg");
    encodes("\x00\xff\x80\xff\xfe", 5, "AP+A//4=", "AP-A__4");
}

static void
what_is_not_is_rejected(void **state)
{
    (void) state;
    static const char *const bad[] = {
        "Z", "Zm9vY", "%%%%", "Zm9-", "Zg==Zg==", "Zm\x80v"
    };
    uint8_t out[64];
    size_t n;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(inf_base64_decode(inf_slice_str(bad[i]), out, &n));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_base64_is_decoded),
        cmocka_unit_test(what_is_not_is_rejected),
        cmocka_unit_test(bytes_are_encoded_for_json_and_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
