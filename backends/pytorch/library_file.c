/* library_file.c - see library_file.h */

#include "library_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *file_fault(int fd, uint64_t size);
static bool is_of_this_processor(const Elf64_Ehdr *head);
static const char *symbols_loosen(int fd, const Elf64_Ehdr *head);
static bool symbol_loosen(int fd, uint64_t at);
static bool read_at(int fd, void *to, size_t size, uint64_t at);

TRITONSERVER_Error *
pt_library_file_prepare(const char *path)
{
    struct stat st;

    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd == -1 || fstat(fd, &st) != 0) {
        if (fd != -1) {
            (void) close(fd);
        }
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "cannot read \"%s\"", path);
    }

    const char *fault = file_fault(fd, (uint64_t) st.st_size);
    (void) close(fd);
    return fault == NULL ? NULL : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "the library in it is %s", fault);
}

/* NULL: none */
static const char *
file_fault(int fd, uint64_t size)
{
    Elf64_Ehdr head;

    if (!read_at(fd, &head, sizeof(head), 0)
        || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0
        || head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_type != ET_DYN
        || head.e_phentsize != sizeof(Elf64_Phdr))
    {
        return "no shared library of 64 bits";
    }
    if (!is_of_this_processor(&head)) {
        return "for another kind of processor than this one";
    }

    for (uint32_t i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        uint64_t end;

        if (!read_at(fd, &part, sizeof(part), head.e_phoff
            + i * sizeof(part)))
        {
            return "cut off: its table of segments is not there";
        }
        if (part.p_type == PT_LOAD && (__builtin_add_overflow(part.p_offset,
            part.p_filesz, &end) || end > size))
        {
            return "cut off: a segment ends behind the file's end";
        }
    }

    return symbols_loosen(fd, &head);
}

/* The loader's own word for one that is not would be "No such file". */
static bool
is_of_this_processor(const Elf64_Ehdr *head)
{
    Dl_info own;

    if (dladdr(&pt_library_file_prepare, &own) == 0) {
        return true;
    }

    const Elf64_Ehdr *here = own.dli_fbase;
    return head->e_machine == here->e_machine
        && head->e_ident[EI_DATA] == here->e_ident[EI_DATA];
}

/* Without a table of sections nothing is changed. */
static const char *
symbols_loosen(int fd, const Elf64_Ehdr *head)
{
    for (uint32_t i = 0; head->e_shoff != 0 && i < head->e_shnum; i++) {
        Elf64_Shdr section;

        if (!read_at(fd, &section, sizeof(section), head->e_shoff
            + i * sizeof(section)))
        {
            return "cut off: its table of sections is not there";
        }
        if (section.sh_type != SHT_DYNSYM) {
            continue;
        }

        for (uint64_t k = 0; k < section.sh_size / sizeof(Elf64_Sym); k++) {
            if (!symbol_loosen(fd, section.sh_offset + k * sizeof(Elf64_Sym)))
            {
                return "cut off: its table of symbols is not there";
            }
        }
    }

    return NULL;
}

static bool
symbol_loosen(int fd, uint64_t at)
{
    Elf64_Sym symbol;

    if (!read_at(fd, &symbol, sizeof(symbol), at)) {
        return false;
    }

    if (ELF64_ST_BIND(symbol.st_info) != STB_GNU_UNIQUE) {
        return true;
    }

    symbol.st_info = ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(symbol.st_info));
    return pwrite(fd, &symbol, sizeof(symbol), (off_t) at)
        == (ssize_t) sizeof(symbol);
}

static bool
read_at(int fd, void *to, size_t size, uint64_t at)
{
    return at <= INT64_MAX && pread(fd, to, size, (off_t) at)
        == (ssize_t) size;
}
