/* compiled code that is cut off anywhere, or of another kind */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

/* Section headers, then a segment's, then the bytes of two sections. */
typedef struct {
    Elf64_Ehdr head;
    Elf64_Shdr sections[4];
    Elf64_Phdr segment;
    char       names[16];
    char       text[40];
} file_t;

#define AT(field) offsetof(file_t, field)

static const file_t cubin = {
    .head = {
        .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
        .e_machine = EM_CUDA, .e_shnum = 4, .e_shoff = AT(sections),
        .e_shentsize = sizeof(Elf64_Shdr), .e_shstrndx = 1, .e_phnum = 1,
        .e_phoff = AT(segment), .e_phentsize = sizeof(Elf64_Phdr)
    },
    .sections = {
        { .sh_type = SHT_NULL, .sh_name = 99, .sh_link = 99 },
        { .sh_type = SHT_STRTAB, .sh_size = 16, .sh_offset = AT(names) },
        { .sh_type = SHT_NOBITS, .sh_size = 1 << 20 },
        { .sh_type = SHT_PROGBITS, .sh_size = 40, .sh_offset = AT(text),
          .sh_name = 15, .sh_link = 3 }
    },
    .segment = { .p_type = PT_LOAD, .p_offset = AT(text), .p_filesz = 40 }
};

static void
cubins_end_where_they_say(void **state)
{
    (void) state;
    for (size_t len = SELFMAG; len < sizeof(cubin); len++) {
        assert_false(passes(&cubin, len));
    }
    assert_true(passes(&cubin, sizeof(cubin)));
}

static void
tables_of_cubins_lead_nowhere_else(void **state)
{
    const struct {
        size_t   at;
        uint64_t value;
        size_t   bytes;
    } changes[] = {
        { AT(sections[3].sh_size), UINT64_MAX, 8 },
        { AT(sections[3].sh_size), 41, 8 },
        { AT(sections[3].sh_name), 16, 4 },
        { AT(sections[3].sh_link), 4, 4 },
        { AT(sections[2].sh_link), 4, 4 },
        { AT(sections[1].sh_type), SHT_PROGBITS, 4 },
        { AT(sections[1].sh_size), 0, 8 },
        { AT(names[15]), 'x', 1 },
        { AT(segment.p_filesz), 41, 8 },
        { AT(segment.p_offset), UINT64_MAX, 8 },
        { AT(head.e_shoff), UINT64_MAX - 8, 8 },
        { AT(head.e_phoff), sizeof(cubin) - 8, 8 },
        { AT(head.e_phentsize), 8, 2 },
        { AT(head.e_shentsize), 8, 2 },
        { AT(head.e_shnum), 0, 2 },
        { AT(head.e_shstrndx), 4, 2 },
        { AT(head.e_shstrndx), SHN_XINDEX, 2 },
        { AT(head.e_ident[EI_DATA]), ELFDATA2MSB, 1 },
        { AT(head.e_machine), EM_X86_64, 2 }
    };

    (void) state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        file_t other = cubin;

        memcpy((char *) &other + changes[i].at, &changes[i].value,
            changes[i].bytes);
        if (passes(&other, sizeof(other))) {
            fail_msg("change %zu passes", i);
        }
    }
}

static void
fatbins_end_where_they_say(void **state)
{
    struct {
        fatbin_head_t head;
        fatbin_part_t text;
        char          packed[24];
        fatbin_part_t code;
        file_t        cubin;
    } fatbin = {
        .head = { FATBIN_MAGIC, 1, sizeof(fatbin_head_t), sizeof(fatbin)
                  - sizeof(fatbin_head_t) },
        .text = { .kind = 1, .head_bytes = sizeof(fatbin_part_t),
                  .body_bytes = 24, .packed_bytes = 21 },
        .code = { .kind = KIND_CUBIN, .head_bytes = sizeof(fatbin_part_t),
                  .body_bytes = sizeof(file_t) },
        .cubin = cubin
    };

    (void) state;
    for (size_t len = 4; len < sizeof(fatbin); len++) {
        assert_false(passes(&fatbin, len));
    }
    assert_true(passes(&fatbin, sizeof(fatbin)));

    /* where a part ends, and where all do */
    for (uint64_t cut = 1; cut < sizeof(file_t); cut++) {
        fatbin.code.body_bytes = sizeof(file_t) - cut;
        assert_false(passes(&fatbin, sizeof(fatbin)));
    }
    fatbin.code.body_bytes = sizeof(file_t);
    fatbin.text.packed_bytes = 25;
    assert_false(passes(&fatbin, sizeof(fatbin)));
    fatbin.text.packed_bytes = 21;
    fatbin.text.head_bytes = 0;
    assert_false(passes(&fatbin, sizeof(fatbin)));
    fatbin.text.head_bytes = sizeof(fatbin_part_t);
    fatbin.text.body_bytes = UINT64_MAX;
    assert_false(passes(&fatbin, sizeof(fatbin)));
    fatbin.text.body_bytes = 24;
    fatbin.cubin.head.e_shnum = 0;
    assert_false(passes(&fatbin, sizeof(fatbin)));
    fatbin.code.packed_bytes = 5;
    assert_false(passes(&fatbin, sizeof(fatbin)));
    fatbin.code.kind = 1;               /* only text may be compressed       */
    assert_true(passes(&fatbin, sizeof(fatbin)));
    fatbin.head.body_bytes = UINT64_MAX;
    assert_false(passes(&fatbin, sizeof(fatbin)));
    fatbin.head.body_bytes = 0;
    assert_false(passes(&fatbin, sizeof(fatbin)));
}

static void
all_else_is_text_with_a_version(void **state)
{
    (void) state;
    assert_true(passes(".version 8.0\n", 13));
    assert_true(passes("// words\n.version 8.0", 21));
    assert_true(passes(".version 8.0", 13));
    assert_false(passes(".version 8.0\0\0", 14));
    assert_false(passes(".version\0 8.0", 13));
    assert_false(passes("", 0));
    assert_false(passes("", 1));
    assert_false(passes(".versio", 7));
    assert_false(passes("\x7f" "EL", 3));
    assert_false(passes("\xb1\x43\x62\x46\1\0\0\0.version", 16));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cubins_end_where_they_say),
        cmocka_unit_test(tables_of_cubins_lead_nowhere_else),
        cmocka_unit_test(fatbins_end_where_they_say),
        cmocka_unit_test(all_else_is_text_with_a_version)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
