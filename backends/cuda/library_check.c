/* library_check.c - see library_check.h */

#include "library_check.h"

#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_cut_off(int fd);
static bool segment_is_there(int fd, const ElfW(Ehdr) *head, unsigned i,
    uint64_t size);

TRITONSERVER_Error *
gpu_library_check(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return NULL;                    /* dlopen() reports the reason       */
    }

    bool cut = is_cut_off(fd);
    close(fd);
    return cut ? bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s: it is cut"
        " off", path) : NULL;
}

static bool
is_cut_off(int fd)
{
    ElfW(Ehdr) head;
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)
        || pread(fd, &head, sizeof(head), 0) != (ssize_t) sizeof(head)
        || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0
        || head.e_phentsize != sizeof(ElfW(Phdr)))
    {
        return false;
    }

    for (unsigned i = 0; i < head.e_phnum; i++) {
        if (!segment_is_there(fd, &head, i, (uint64_t) st.st_size)) {
            return true;
        }
    }
    return false;
}

static bool
segment_is_there(int fd, const ElfW(Ehdr) *head, unsigned i, uint64_t size)
{
    ElfW(Phdr) segment;
    uint64_t at;

    if (__builtin_add_overflow(head->e_phoff, i * sizeof(segment), &at)
        || at > INT64_MAX || pread(fd, &segment, sizeof(segment), (off_t) at)
            != (ssize_t) sizeof(segment))
    {
        return false;
    }

    return segment.p_type == PT_NULL || segment.p_filesz == 0
        || (segment.p_offset <= size
            && segment.p_filesz <= size - segment.p_offset);
}
