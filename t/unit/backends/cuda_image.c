/* compiled code that is cut off anywhere */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/common/error.c"
#include "backends/cuda/image_check.c"

static bool
passes(const void *code, size_t len)
{
    char *copy = malloc(len + 1);       /* for a sanitizer: not a byte more  */

    assert_non_null(copy);
    memcpy(copy, code, len);
    TRITONSERVER_Error *err = gpu_image_check(copy, len);
    if (err != NULL) {
        TRITONSERVER_ErrorDelete(err);
    }
    free(copy);
    return err == NULL;
}

static void
cubins_end_where_they_say(void **state)
{
    struct {
        Elf64_Ehdr head;
        Elf64_Shdr sections[3];
        char       text[40];
    } cubin = {
        .head = {
            .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
            .e_machine = EM_CUDA, .e_shnum = 3,
            .e_shoff = sizeof(Elf64_Ehdr),
            .e_shentsize = sizeof(Elf64_Shdr)
        },
        .sections = {
            { .sh_type = SHT_NULL },
            { .sh_type = SHT_NOBITS, .sh_size = 1 << 20 },
            { .sh_type = SHT_PROGBITS, .sh_size = 40, .sh_offset =
              sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr) }
        }
    };

    (void) state;
    for (size_t len = SELFMAG; len < sizeof(cubin); len++) {
        assert_false(passes(&cubin, len));
    }
    assert_true(passes(&cubin, sizeof(cubin)));

    cubin.sections[2].sh_size = UINT64_MAX;
    assert_false(passes(&cubin, sizeof(cubin)));
    cubin.sections[2].sh_size = 40;
    cubin.head.e_shoff = UINT64_MAX - 8;
    assert_false(passes(&cubin, sizeof(cubin)));
    cubin.head.e_shoff = sizeof(Elf64_Ehdr);
    cubin.head.e_machine = EM_X86_64;
    assert_false(passes(&cubin, sizeof(cubin)));
}

static void
fatbins_end_where_they_say(void **state)
{
    struct {
        fatbin_head_t head;
        char          body[24];
    } fatbin = { .head = { FATBIN_MAGIC, 1, sizeof(fatbin_head_t), 24 } };

    (void) state;
    for (size_t len = 4; len < sizeof(fatbin); len++) {
        assert_false(passes(&fatbin, len));
    }
    assert_true(passes(&fatbin, sizeof(fatbin)));
    fatbin.head.body_bytes = UINT64_MAX;
    assert_false(passes(&fatbin, sizeof(fatbin)));
}

static void
all_else_is_text(void **state)
{
    (void) state;
    assert_true(passes("", 0));
    assert_true(passes("\x7f" "EL", 3));
    assert_true(passes(".version 8.0\n", 13));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cubins_end_where_they_say),
        cmocka_unit_test(fatbins_end_where_they_say),
        cmocka_unit_test(all_else_is_text)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
