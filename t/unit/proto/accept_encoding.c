#include "core/proto/accept_encoding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void
the_first_of_the_highest_weight_is_chosen(void **state)
{
    static const struct {
        const char    *value;
        inf_encoding_t encoding;
    } cases[] = {
        { "", INF_ENCODING_IDENTITY },
        { "*", INF_ENCODING_IDENTITY },
        { "br, zstd", INF_ENCODING_IDENTITY },
        { "deflate", INF_ENCODING_DEFLATE },
        { " \tDeflate ", INF_ENCODING_DEFLATE },
        { "gzip, deflate", INF_ENCODING_GZIP },
        { "deflate, gzip", INF_ENCODING_DEFLATE },
        { "identity, deflate", INF_ENCODING_IDENTITY },
        { "br,deflate,*;q=0.1", INF_ENCODING_DEFLATE },
        { "gzip;q=0.5, deflate", INF_ENCODING_DEFLATE },
        { "gzip;q=0.5,deflate;q=0.50", INF_ENCODING_GZIP },
        { "gzip;q=0.5,deflate;q=0.501", INF_ENCODING_DEFLATE },
        { "gzip ; q=0 , deflate ; q=0.001", INF_ENCODING_DEFLATE },
        { "deflate;q=0", INF_ENCODING_IDENTITY },
        { "deflate;q=0.000", INF_ENCODING_IDENTITY },
        { "deflate;q=1.000", INF_ENCODING_DEFLATE },
        { "deflate;q=1.001", INF_ENCODING_IDENTITY },
        { "deflate;q=2", INF_ENCODING_IDENTITY },
        { "deflate;q=", INF_ENCODING_IDENTITY },
        { "deflate;q=-1", INF_ENCODING_IDENTITY },
        { "deflate;q=0.x", INF_ENCODING_IDENTITY },
        { "deflate;q=0.1234", INF_ENCODING_IDENTITY },
        { "deflate;level=1;q=0.2", INF_ENCODING_DEFLATE },
        { "deflates, defl", INF_ENCODING_IDENTITY },
        { ",;,deflate,", INF_ENCODING_DEFLATE },
    };

    (void) state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            inf_accept_encoding(inf_slice_str(cases[i].value)),
            cases[i].encoding);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_of_the_highest_weight_is_chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
