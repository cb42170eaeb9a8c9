/* a library that is cut off anywhere: this program's own file is one */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "backends/common/error.c"
#include "backends/cuda/library_check.c"

static bool
passes(const char *path)
{
    TRITONSERVER_Error *err = gpu_library_check(path);

    if (err == NULL) {
        return true;
    }
    assert_int_equal(TRITONSERVER_ErrorCode(err),
        TRITONSERVER_ERROR_INVALID_ARG);
    TRITONSERVER_ErrorDelete(err);
    return false;
}

/* The furthest byte of a segment of this program. */
static off_t
end_of_segments(int fd)
{
    ElfW(Ehdr) head;
    off_t end = 0;

    assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
    for (unsigned i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) s;
        off_t at = (off_t) (head.e_phoff + i * sizeof(s));

        assert_int_equal(pread(fd, &s, sizeof(s), at), sizeof(s));
        end = (off_t) (s.p_offset + s.p_filesz) > end
            ? (off_t) (s.p_offset + s.p_filesz) : end;
    }
    return end;
}

static void
files_end_behind_their_segments(void **state)
{
    char path[] = "/tmp/inf-cuda-library-XXXXXX";

    (void) state;
    int from = open("/proc/self/exe", O_RDONLY);
    int to = mkstemp(path);
    assert_true(from >= 0 && to >= 0);
    off_t end = end_of_segments(from);
    char *bytes = malloc((size_t) end);
    assert_non_null(bytes);
    assert_int_equal(pread(from, bytes, (size_t) end, 0), end);
    assert_int_equal(pwrite(to, bytes, (size_t) end, 0), end);

    assert_true(passes("/proc/self/exe"));
    assert_true(passes(path));
    for (off_t size = end - 1; size > (off_t) sizeof(ElfW(Ehdr));
         size -= 1 + size / 50)
    {
        assert_int_equal(ftruncate(to, size), 0);
        assert_false(passes(path));
    }

    /* of these the loader itself says what is wrong */
    assert_int_equal(ftruncate(to, 20), 0);
    assert_true(passes(path));
    assert_true(passes("/nowhere"));
    assert_true(passes("/dev"));

    /* tables far behind the end of any file */
    ElfW(Ehdr) head;
    memcpy(&head, bytes, sizeof(head));
    head.e_phoff = UINT64_MAX - 8;
    assert_int_equal(pwrite(to, &head, sizeof(head), 0), sizeof(head));
    assert_false(passes(path));

    free(bytes);
    close(from);
    close(to);
    assert_int_equal(unlink(path), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_end_behind_their_segments)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
