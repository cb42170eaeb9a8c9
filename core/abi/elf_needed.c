#include "core/abi/elf_needed.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADERS_MAX     1024            /* program headers                   */
#define DYNAMIC_MAX     65536           /* entries of the dynamic section    */
#define NAME_CAP        4096            /* a library's name with its NUL     */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OWN_DATA        ELFDATA2LSB
#else
#define OWN_DATA        ELFDATA2MSB
#endif

/* A file being read. */
typedef struct {
    const char  *path;
    int          fd;
    Elf64_Phdr  *headers;
    size_t       header_count;
    Elf64_Dyn   *dynamic;
    size_t       dynamic_count;
    uint64_t     strings;       /* file offset of the string table           */
    uint64_t     strings_len;
} elf_t;

static inf_err_t *read_headers(elf_t *elf, uint16_t *machine);
static inf_err_t *read_dynamic(elf_t *elf);
static inf_err_t *find_strings(elf_t *elf);
static inf_err_t *read_names(const elf_t *elf, inf_elf_needed_t *out);
static inf_err_t *read_name(const elf_t *elf, uint64_t offset, char **out);
static bool file_offset(const elf_t *elf, uint64_t address, uint64_t len,
    uint64_t *offset);
static inf_err_t *read_at(const elf_t *elf, void *to, size_t len,
    uint64_t offset);
static inf_err_t *read_some(const elf_t *elf, void *to, size_t cap,
    uint64_t offset, size_t *len);
static inf_err_t *broken(const elf_t *elf, const char *what);

inf_err_t *
inf_elf_needed_read(const char *path, inf_elf_needed_t *out)
{
    elf_t elf = { .path = path };

    *out = (inf_elf_needed_t) { .names = NULL };
    elf.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (elf.fd == -1) {
        return inf_err_os(errno, "cannot open \"%s\"", path);
    }

    inf_err_t *err = read_headers(&elf, &out->machine);
    if (err == NULL) {
        err = read_dynamic(&elf);
    }
    if (err == NULL && elf.dynamic_count > 0) {
        err = find_strings(&elf);
    }
    if (err == NULL) {
        err = read_names(&elf, out);
    }
    if (err != NULL) {
        inf_elf_needed_fini(out);
    }

    free(elf.dynamic);
    free(elf.headers);
    close(elf.fd);
    return err;
}

void
inf_elf_needed_fini(inf_elf_needed_t *needed)
{
    for (size_t i = 0; i < needed->count; i++) {
        free(needed->names[i]);
    }

    free(needed->names);
    *needed = (inf_elf_needed_t) { .names = NULL };
}

static inf_err_t *
read_headers(elf_t *elf, uint16_t *machine)
{
    Elf64_Ehdr header;
    inf_err_t *err = read_at(elf, &header, sizeof(header), 0);
    if (err != NULL) {
        return err;
    }

    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0
        || header.e_ident[EI_CLASS] != ELFCLASS64
        || header.e_ident[EI_DATA] != OWN_DATA)
    {
        return broken(elf, "it is no 64-bit ELF file of this byte order");
    }

    if (header.e_phentsize != sizeof(Elf64_Phdr)
        || header.e_phnum > HEADERS_MAX)
    {
        return broken(elf, "its program headers have a wrong size or number");
    }

    *machine = header.e_machine;
    elf->header_count = header.e_phnum;
    elf->headers = calloc(elf->header_count + 1, sizeof(*elf->headers));
    if (elf->headers == NULL) {
        return inf_err_nomem();
    }

    return read_at(elf, elf->headers,
        elf->header_count * sizeof(*elf->headers), header.e_phoff);
}

static inf_err_t *
read_dynamic(elf_t *elf)
{
    const Elf64_Phdr *found = NULL;
    for (size_t i = 0; i < elf->header_count; i++) {
        if (elf->headers[i].p_type == PT_DYNAMIC) {
            found = &elf->headers[i];
        }
    }

    if (found == NULL) {
        return NULL;
    }

    uint64_t count = found->p_filesz / sizeof(Elf64_Dyn);
    if (count > DYNAMIC_MAX) {
        return broken(elf, "its dynamic section is too long");
    }

    elf->dynamic = calloc((size_t) count + 1, sizeof(*elf->dynamic));
    if (elf->dynamic == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = read_at(elf, elf->dynamic,
        (size_t) count * sizeof(*elf->dynamic), found->p_offset);
    if (err != NULL) {
        return err;
    }

    while (elf->dynamic_count < count
           && elf->dynamic[elf->dynamic_count].d_tag != DT_NULL)
    {
        elf->dynamic_count++;
    }

    return NULL;
}

static inf_err_t *
find_strings(elf_t *elf)
{
    const Elf64_Dyn *table = NULL;
    for (size_t i = 0; i < elf->dynamic_count; i++) {
        if (elf->dynamic[i].d_tag == DT_STRTAB) {
            table = &elf->dynamic[i];

        } else if (elf->dynamic[i].d_tag == DT_STRSZ) {
            elf->strings_len = elf->dynamic[i].d_un.d_val;
        }
    }

    if (table == NULL || elf->strings_len == 0
        || !file_offset(elf, table->d_un.d_ptr, elf->strings_len,
            &elf->strings))
    {
        return broken(elf, "its dynamic section has no usable string table");
    }

    return NULL;
}

static inf_err_t *
read_names(const elf_t *elf, inf_elf_needed_t *out)
{
    out->names = calloc(elf->dynamic_count + 1, sizeof(*out->names));
    if (out->names == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < elf->dynamic_count; i++) {
        if (elf->dynamic[i].d_tag != DT_NEEDED) {
            continue;
        }

        inf_err_t *err = read_name(elf, elf->dynamic[i].d_un.d_val,
            &out->names[out->count]);
        if (err != NULL) {
            return err;
        }

        out->count++;
    }

    return NULL;
}

static inf_err_t *
read_name(const elf_t *elf, uint64_t offset, char **out)
{
    char name[NAME_CAP];

    if (offset >= elf->strings_len) {
        return broken(elf, "a needed library's name lies outside its strings");
    }

    uint64_t room = elf->strings_len - offset;
    size_t len;
    inf_err_t *err = read_some(elf, name,
        room < sizeof(name) ? (size_t) room : sizeof(name),
        elf->strings + offset, &len);
    if (err != NULL) {
        return err;
    }

    if (memchr(name, '\0', len) == NULL) {
        return broken(elf, "a needed library's name does not end");
    }

    *out = strdup(name);
    return *out != NULL ? NULL : inf_err_nomem();
}

/* Finds the file offset of the len bytes that are mapped at address. */
static bool
file_offset(const elf_t *elf, uint64_t address, uint64_t len,
    uint64_t *offset)
{
    for (size_t i = 0; i < elf->header_count; i++) {
        const Elf64_Phdr *h = &elf->headers[i];

        if (h->p_type != PT_LOAD || address < h->p_vaddr) {
            continue;
        }

        uint64_t inner = address - h->p_vaddr;
        if (inner <= h->p_filesz && len <= h->p_filesz - inner
            && h->p_offset <= INT64_MAX
            && h->p_filesz <= INT64_MAX - h->p_offset)
        {
            *offset = h->p_offset + inner;
            return true;
        }
    }

    return false;
}

static inf_err_t *
read_at(const elf_t *elf, void *to, size_t len, uint64_t offset)
{
    size_t got;
    inf_err_t *err = read_some(elf, to, len, offset, &got);
    if (err == NULL && got < len) {
        err = broken(elf, "it ends within its own tables");
    }

    return err;
}

/* Reads up to cap bytes; fewer only at the end of the file. */
static inf_err_t *
read_some(const elf_t *elf, void *to, size_t cap, uint64_t offset,
    size_t *len)
{
    *len = 0;
    if (offset > INT64_MAX - cap) {
        return broken(elf, "its tables lie outside it");
    }

    while (*len < cap) {
        ssize_t n = pread(elf->fd, (char *) to + *len, cap - *len,
            (off_t) (offset + *len));
        if (n == -1 && errno == EINTR) {
            continue;
        }
        if (n == -1) {
            return inf_err_os(errno, "cannot read \"%s\"", elf->path);
        }
        if (n == 0) {
            break;
        }

        *len += (size_t) n;
    }

    return NULL;
}

static inf_err_t *
broken(const elf_t *elf, const char *what)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "cannot read the libraries that"
        " \"%s\" needs: %s", elf->path, what);
}
