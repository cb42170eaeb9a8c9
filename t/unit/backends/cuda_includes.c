/* which sources include other files than those that come with them */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/cuda/includes.c"

static bool
known(char *text, char *header)
{
    char *names[] = { "layout.h", "b.cuh" };
    char *texts[] = { "", header };
    const gpu_source_t source = {
        .text = text, .header_names = names, .headers = texts,
        .header_count = 2
    };

    return gpu_includes_are_known(&source);
}

static void
names_beside_the_source_are_known(void **state)
{
    (void) state;
    assert_true(known("", ""));
    assert_true(known("// no directive: include \"x.h\"\n#define X #X", ""));
    assert_true(known("#include \"layout.h\"\n#  include\t<b.cuh>\n", ""));
    assert_true(known("#include \"b.cuh\"", "#include \"layout.h\"\n#"));
    assert_true(known("#in\\\nclude /**/ \"lay\\\nout.h\"\n#define X \\\n 1",
        "%:include <b.cuh>\\"));
}

static void
all_others_are_not(void **state)
{
    static char *const texts[] = {
        "#include \"x.h\"", "#include <x.h>", "# include \"/layout.h\"",
        "#include \"layout.hh\"", "#include \"layout.h", "#include",
        "#include \"layout.h>", "#include LAYOUT", "#include_next \"b.cuh\"",
        "#import \"x.h\"", "#embed \"x.bin\"", "#include \"sub/layout.h\"",
        "#include \"b.cuh\"\n#include \"x.h\"",
        "#if __has_include(\"x.h\")\n#endif",
        "#inc\\\nlude \"x.h\"", "#\\\n include \"x.h\"",
        "#inc\\ \t\r\nlude \"x.h\"", "#include \\\n \"x.h\"",
        "#include \"layout.h\\\nx\"", "%:include \"x.h\"",
        "%\\\n: include \"x.h\"", "#/* \n */include \"x.h\"",
        "# /**/ /**/ include/**/\"x.h\"", "#\v\finclude \"x.h\"",
        "#if __has_\\\ninclude(\"x.h\")\n#endif"
    };

    (void) state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (known(texts[i], "") || known("", texts[i])) {
            fail_msg("%s", texts[i]);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_beside_the_source_are_known),
        cmocka_unit_test(all_others_are_not)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
