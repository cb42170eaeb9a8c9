#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/server/low_memory.h"

static void
a_word_is_known_wherever_it_stands(void **state)
{
    (void) state;
    assert_true(inf_low_memory("OOM"));
    assert_true(inf_low_memory("CUDA error: out of memory"));
    assert_true(inf_low_memory("failed: (OOM) while allocating"));
    assert_true(inf_low_memory("torch.OutOfMemoryError: 2 GiB"));
    assert_true(inf_low_memory("no ROOM, but OOM"));
    assert_false(inf_low_memory(""));
    assert_false(inf_low_memory("no such file"));
}

static void
a_part_of_another_word_is_none(void **state)
{
    (void) state;
    assert_false(inf_low_memory("model 'BEDROOM' has no version"));
    assert_false(inf_low_memory("model 'OOMPH' has no version"));
    assert_false(inf_low_memory("BEDROOM OOMPH"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_is_known_wherever_it_stands),
        cmocka_unit_test(a_part_of_another_word_is_none)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
