#include "core/abi/elf_check.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS_MAX 128u       /* libraries have about a dozen              */

#if __ELF_NATIVE_CLASS == 64
#define OWN_CLASS ELFCLASS64
#else
#define OWN_CLASS ELFCLASS32
#endif

static inf_err_t *check_header(const char *path, const ElfW(Ehdr) *h,
    size_t got);
static inf_err_t *check_segments(const char *path, int fd,
    const ElfW(Ehdr) *h, uint64_t size);
static inf_err_t *check_dynamic(const char *path, int fd,
    const ElfW(Phdr) *s);
static inf_err_t *wrong(const char *path, const char *what);

/* The ELF header of a library that this process has loaded. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

inf_err_t *
inf_elf_check(const char *path)
{
    ElfW(Ehdr) h;
    struct stat st;

    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd == -1) {
        return NULL;
    }

    inf_err_t *err = NULL;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        err = wrong(path, "it is no regular file");
    }
    if (err == NULL) {
        ssize_t got = pread(fd, &h, sizeof(h), 0);
        err = check_header(path, &h, got > 0 ? (size_t) got : 0);
    }
    if (err == NULL) {
        err = check_segments(path, fd, &h, (uint64_t) st.st_size);
    }

    close(fd);
    return err;
}

static inf_err_t *
check_header(const char *path, const ElfW(Ehdr) *h, size_t got)
{
    if (got == 0) {
        return wrong(path, "it is empty");
    }
    if (got < SELFMAG || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0) {
        return wrong(path, "it is no ELF file");
    }
    if (got < sizeof(*h)) {
        return wrong(path, "it is cut short");
    }
    if (h->e_ident[EI_CLASS] != OWN_CLASS
        || h->e_ident[EI_DATA] != __ehdr_start.e_ident[EI_DATA]
        || h->e_machine != __ehdr_start.e_machine)
    {
        return wrong(path, "it was built for another kind of machine");
    }
    if (h->e_type != ET_DYN) {
        return wrong(path, "it is an ELF file but no shared library");
    }
    if (h->e_phentsize != sizeof(ElfW(Phdr)) || h->e_phnum == 0
        || h->e_phnum > SEGMENTS_MAX)
    {
        return wrong(path, "its program headers make no sense");
    }

    return NULL;
}

static inf_err_t *
check_segments(const char *path, int fd, const ElfW(Ehdr) *h, uint64_t size)
{
    ElfW(Phdr) segments[SEGMENTS_MAX];
    size_t len = h->e_phnum * sizeof(segments[0]);

    if (h->e_phoff > size || len > size - h->e_phoff
        || pread(fd, segments, len, (off_t) h->e_phoff) != (ssize_t) len)
    {
        return wrong(path, "it is cut short");
    }

    const ElfW(Phdr) *dynamic = NULL;
    for (unsigned i = 0; i < h->e_phnum; i++) {
        const ElfW(Phdr) *s = &segments[i];
        if (s->p_type == PT_NULL || s->p_filesz == 0) {
            continue;
        }
        if (s->p_offset > size || s->p_filesz > size - s->p_offset) {
            return wrong(path, "it is cut short");
        }
        if (s->p_type == PT_DYNAMIC) {
            dynamic = s;
        }
    }

    return dynamic != NULL ? check_dynamic(path, fd, dynamic)
        : wrong(path, "it has no dynamic section");
}

/* Checks the dynamic section: the loader assumes that it has names. */
static inf_err_t *
check_dynamic(const char *path, int fd, const ElfW(Phdr) *s)
{
    ElfW(Dyn) entries[64];
    bool symbols = false;
    bool strings = false;
    uint64_t at = 0;

    while (at + sizeof(entries[0]) <= s->p_filesz) {
        uint64_t left = (s->p_filesz - at) / sizeof(entries[0]);
        size_t count = left < 64 ? (size_t) left : 64;
        ssize_t len = (ssize_t) (count * sizeof(entries[0]));

        if (pread(fd, entries, (size_t) len, (off_t) (s->p_offset + at))
            != len)
        {
            return wrong(path, "it is cut short");
        }
        for (size_t i = 0; i < count; i++) {
            symbols |= entries[i].d_tag == DT_SYMTAB;
            strings |= entries[i].d_tag == DT_STRTAB;
            if (entries[i].d_tag == DT_NULL) {
                return symbols && strings ? NULL
                    : wrong(path, "its dynamic section names no symbols");
            }
        }
        at += (uint64_t) len;
    }

    return wrong(path, "its dynamic section has no end");
}

static inf_err_t *
wrong(const char *path, const char *what)
{
    return inf_err_new(INF_ERR_NOT_FOUND, "unable to load shared library:"
        " %s: %s", path, what);
}
