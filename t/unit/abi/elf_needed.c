#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/abi/elf_needed.h"
#include "core/abi/forwarding.h"

#define FILE_CAP    1024

typedef struct {
    unsigned char  bytes[FILE_CAP];
    size_t         len;
} file_t;

/* A library that needs one other, as forwarding.c makes them. */
static file_t
small_library(void)
{
    inf_buf_t buf;
    inf_buf_init(&buf);
    inf_forwarding_image(&buf, EM_X86_64, "libsmall.so", "libneeded.so.7");

    file_t file = { .len = buf.len };
    assert_false(buf.failed);
    assert_true(buf.len <= FILE_CAP);
    memcpy(file.bytes, buf.data, buf.len);
    inf_buf_fini(&buf);
    return file;
}

static inf_err_t *
read_file(const file_t *file, size_t len, inf_elf_needed_t *out)
{
    char path[] = "/tmp/inf-elf-XXXXXX";
    int fd = mkstemp(path);

    assert_int_not_equal(fd, -1);
    assert_int_equal(write(fd, file->bytes, len), len);
    close(fd);
    inf_err_t *err = inf_elf_needed_read(path, out);
    unlink(path);
    return err;
}

static void
is_broken(const file_t *file, const char *text)
{
    inf_elf_needed_t needed;
    inf_err_t *err = read_file(file, file->len, &needed);

    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    if (strstr(inf_err_msg(err), text) == NULL) {
        fail_msg("\"%s\" not in \"%s\"", text, inf_err_msg(err));
    }
    assert_int_equal(needed.count, 0);
    assert_null(needed.names);
    inf_err_free(err);
}

static Elf64_Phdr *
segment(file_t *file, uint32_t type)
{
    Elf64_Ehdr *header = (void *) file->bytes;
    Elf64_Phdr *p = (void *) (file->bytes + header->e_phoff);

    while (p->p_type != type) {
        p++;
    }
    return p;
}

static Elf64_Dyn *
entry(file_t *file, int64_t tag)
{
    Elf64_Dyn *d = (void *) (file->bytes + segment(file, PT_DYNAMIC)->p_offset);

    while (d->d_tag != tag) {
        d++;
    }
    return d;
}

static void
names_and_machine_are_read(void **state)
{
    (void) state;
    file_t file = small_library();
    inf_elf_needed_t needed;

    assert_null(read_file(&file, file.len, &needed));
    assert_int_equal(needed.count, 1);
    assert_string_equal(needed.names[0], "libneeded.so.7");
    assert_int_equal(needed.machine, EM_X86_64);
    inf_elf_needed_fini(&needed);
    assert_int_equal(needed.count, 0);
}

static void
this_program_needs_the_c_library(void **state)
{
    (void) state;
    inf_elf_needed_t needed;
    bool found = false;

    assert_null(inf_elf_needed_read("/proc/self/exe", &needed));
    for (size_t i = 0; i < needed.count; i++) {
        found |= strncmp(needed.names[i], "libc.so", 7) == 0;
    }
    assert_true(found);
    inf_elf_needed_fini(&needed);
}

static void
a_file_that_is_not_there_is_named(void **state)
{
    (void) state;
    inf_elf_needed_t needed;
    inf_err_t *err = inf_elf_needed_read("/nonexistent/x.so", &needed);

    assert_non_null(err);
    assert_non_null(strstr(inf_err_msg(err), "/nonexistent/x.so"));
    inf_err_free(err);
}

/* Cut anywhere: an error and no name, never a read outside. */
static void
every_cut_is_rejected(void **state)
{
    (void) state;
    file_t file = small_library();

    for (size_t len = 0; len < file.len; len++) {
        inf_elf_needed_t needed;
        inf_err_t *err = read_file(&file, len, &needed);

        assert_non_null(err);
        assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
        inf_err_free(err);
    }
}

/* Any byte may be wrong: the result is names or an error. */
static void
every_wrong_byte_is_survived(void **state)
{
    (void) state;
    const unsigned char values[] = { 0x00, 0x7f, 0x80, 0xff };

    for (size_t at = 0; at < small_library().len; at++) {
        for (size_t v = 0; v < sizeof(values); v++) {
            file_t file = small_library();
            inf_elf_needed_t needed;

            file.bytes[at] = values[v];
            inf_err_free(read_file(&file, file.len, &needed));
            inf_elf_needed_fini(&needed);
        }
    }
}

static void
other_files_are_rejected(void **state)
{
    (void) state;
    file_t file = small_library();

    file.bytes[EI_CLASS] = ELFCLASS32;
    is_broken(&file, "no 64-bit ELF file");

    file = small_library();
    file.bytes[EI_DATA] = file.bytes[EI_DATA] == ELFDATA2LSB ? ELFDATA2MSB
        : ELFDATA2LSB;
    is_broken(&file, "of this byte order");

    file = small_library();
    ((Elf64_Ehdr *) (void *) file.bytes)->e_phentsize = 32;
    is_broken(&file, "wrong size or number");

    file = small_library();
    ((Elf64_Ehdr *) (void *) file.bytes)->e_phnum = UINT16_MAX;
    is_broken(&file, "wrong size or number");
}

static void
tables_outside_the_file_are_rejected(void **state)
{
    (void) state;
    file_t file = small_library();
    ((Elf64_Ehdr *) (void *) file.bytes)->e_phoff = UINT64_MAX - 8;
    is_broken(&file, "lie outside it");

    file = small_library();
    segment(&file, PT_DYNAMIC)->p_offset = INT64_MAX;
    is_broken(&file, "lie outside it");

    file = small_library();
    segment(&file, PT_DYNAMIC)->p_filesz = UINT64_MAX;
    is_broken(&file, "too long");

    file = small_library();
    entry(&file, DT_STRTAB)->d_un.d_ptr = UINT64_MAX;
    is_broken(&file, "no usable string table");

    file = small_library();
    entry(&file, DT_STRSZ)->d_un.d_val = UINT64_MAX;
    is_broken(&file, "no usable string table");

    file = small_library();
    segment(&file, PT_LOAD)->p_offset = UINT64_MAX;
    is_broken(&file, "no usable string table");
}

static void
names_outside_the_strings_are_rejected(void **state)
{
    (void) state;
    file_t file = small_library();
    entry(&file, DT_NEEDED)->d_un.d_val = entry(&file, DT_STRSZ)->d_un.d_val;
    is_broken(&file, "outside its strings");

    file = small_library();
    entry(&file, DT_NEEDED)->d_un.d_val = UINT64_MAX;
    is_broken(&file, "outside its strings");

    file = small_library();
    entry(&file, DT_STRSZ)->d_un.d_val--;
    is_broken(&file, "does not end");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_machine_are_read),
        cmocka_unit_test(this_program_needs_the_c_library),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
        cmocka_unit_test(every_cut_is_rejected),
        cmocka_unit_test(every_wrong_byte_is_survived),
        cmocka_unit_test(other_files_are_rejected),
        cmocka_unit_test(tables_outside_the_file_are_rejected),
        cmocka_unit_test(names_outside_the_strings_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
