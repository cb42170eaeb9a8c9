/* image_check.c - see image_check.h */

#include "image_check.h"

#include <elf.h>
#include <string.h>

#define FATBIN_MAGIC 0xba55ed50u
#define KIND_CUBIN   2          /* of a part of a fatbin                     */

typedef struct {
    uint32_t magic;
    uint16_t version;
    uint16_t head_bytes;
    uint64_t body_bytes;        /* all parts                                 */
} fatbin_head_t;

/* Before each part; where it says so, its own head is longer. */
typedef struct {
    uint16_t kind;
    uint16_t version;
    uint32_t head_bytes;
    uint64_t body_bytes;        /* with what fills it up                     */
    uint32_t packed_bytes;      /* of what is compressed; 0: as it is        */
    uint32_t others[11];
} fatbin_part_t;

/* The bytes of a cubin and what its tables say. */
typedef struct {
    const char *code;
    size_t      len;
    Elf64_Ehdr  head;
} cubin_t;

static const char not_whole[] = "the code is not whole, or no code of a GPU";
static const char compressed[] = "the code has a cubin that is compressed,"
    " whose end cannot be checked: make the fatbin without --compress-all and"
    " --compress-mode=size";

static bool is_text(const char *code, size_t len);
static const char *fatbin_fault(const char *code, size_t len);
static const char *part_fault(const char *code, size_t len, size_t *next);
static bool cubin_is_whole(const char *code, size_t len);
static bool is_for_a_gpu(const Elf64_Ehdr *head);
static bool segment_is_whole(const cubin_t *c, size_t i);
static bool section_is_whole(const cubin_t *c, size_t i, size_t name_bytes);
static Elf64_Shdr section_of(const cubin_t *c, size_t i);
static bool fits(uint64_t offset, uint64_t size, size_t len);

TRITONSERVER_Error *
gpu_image_check(const char *code, size_t len)
{
    const char *fault = not_whole;
    uint32_t magic = 0;

    memcpy(&magic, code, len < sizeof(magic) ? len : sizeof(magic));
    if (magic == FATBIN_MAGIC) {
        fault = fatbin_fault(code, len);
    } else if (memcmp(&magic, ELFMAG, SELFMAG) == 0) {
        fault = cubin_is_whole(code, len) ? NULL : not_whole;
    } else {
        fault = is_text(code, len) ? NULL : not_whole;
    }

    return fault == NULL ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s", fault);
}

/* Some writers end it with a zero.  The driver knows other magic numbers, one
   of which is followed by an address. */
static bool
is_text(const char *code, size_t len)
{
    size_t chars = len > 0 && code[len - 1] == '\0' ? len - 1 : len;

    return memchr(code, '\0', chars) == NULL
        && memmem(code, chars, ".version", 8) != NULL;
}

/* NULL: none. */
static const char *
fatbin_fault(const char *code, size_t len)
{
    const char *fault = NULL;
    fatbin_head_t head;

    if (len < sizeof(head)) {
        return not_whole;
    }

    memcpy(&head, code, sizeof(head));
    if (head.head_bytes < sizeof(head) || head.body_bytes == 0
        || !fits(head.head_bytes, head.body_bytes, len))
    {
        return not_whole;
    }

    const char *part = code + head.head_bytes;
    size_t left = (size_t) head.body_bytes;
    for (size_t next = 0; fault == NULL && left > 0;
        part += next, left -= next)
    {
        fault = part_fault(part, left, &next);
    }
    return fault;
}

/* Text is compressed unless its writer was told otherwise, and the driver
   unpacks and compiles it; a cubin is as it is, and the driver follows its
   tables. */
static const char *
part_fault(const char *code, size_t len, size_t *next)
{
    fatbin_part_t part;

    if (len < sizeof(part)) {
        return not_whole;
    }

    memcpy(&part, code, sizeof(part));
    if (part.head_bytes < sizeof(part)
        || !fits(part.head_bytes, part.body_bytes, len)
        || part.packed_bytes > part.body_bytes)
    {
        return not_whole;
    }

    *next = part.head_bytes + (size_t) part.body_bytes;
    if (part.kind != KIND_CUBIN) {
        return NULL;
    }
    if (part.packed_bytes > 0) {
        return compressed;
    }
    return cubin_is_whole(code + part.head_bytes, (size_t) part.body_bytes)
        ? NULL : not_whole;
}

static bool
cubin_is_whole(const char *code, size_t len)
{
    cubin_t c = { .code = code, .len = len };

    if (len < sizeof(c.head)) {
        return false;
    }

    memcpy(&c.head, code, sizeof(c.head));
    const Elf64_Ehdr *h = &c.head;
    if (!is_for_a_gpu(h)
        || !fits(h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr), len)
        || !fits(h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr), len)
        || h->e_shstrndx >= h->e_shnum)
    {
        return false;
    }

    for (size_t i = 0; i < h->e_phnum; i++) {
        if (!segment_is_whole(&c, i)) {
            return false;
        }
    }

    Elf64_Shdr names = section_of(&c, h->e_shstrndx);
    bool whole = names.sh_type == SHT_STRTAB;
    for (size_t i = 0; whole && i < h->e_shnum; i++) {
        whole = section_is_whole(&c, i, (size_t) names.sh_size);
    }
    return whole;
}

/* More sections than fit into e_shnum no compiler writes. */
static bool
is_for_a_gpu(const Elf64_Ehdr *h)
{
    return h->e_ident[EI_CLASS] == ELFCLASS64
        && h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_machine == EM_CUDA
        && (h->e_phnum == 0 || h->e_phentsize == sizeof(Elf64_Phdr))
        && h->e_shnum > 0 && h->e_shentsize == sizeof(Elf64_Shdr);
}

static bool
segment_is_whole(const cubin_t *c, size_t i)
{
    Elf64_Phdr segment;

    memcpy(&segment, c->code + c->head.e_phoff + i * sizeof(segment),
        sizeof(segment));
    return segment.p_type == PT_NULL
        || fits(segment.p_offset, segment.p_filesz, c->len);
}

/* A table of strings ends with a zero, so that no string leads out of it. */
static bool
section_is_whole(const cubin_t *c, size_t i, size_t name_bytes)
{
    Elf64_Shdr s = section_of(c, i);

    if (s.sh_type == SHT_NULL) {
        return true;
    }
    if (s.sh_name >= name_bytes || s.sh_link >= c->head.e_shnum) {
        return false;
    }
    if (s.sh_type == SHT_NOBITS) {
        return true;
    }

    return fits(s.sh_offset, s.sh_size, c->len)
        && (s.sh_type != SHT_STRTAB || (s.sh_size > 0
            && c->code[s.sh_offset + s.sh_size - 1] == '\0'));
}

static Elf64_Shdr
section_of(const cubin_t *c, size_t i)
{
    Elf64_Shdr section;

    memcpy(&section, c->code + c->head.e_shoff + i * sizeof(section),
        sizeof(section));
    return section;
}

static bool
fits(uint64_t offset, uint64_t size, size_t len)
{
    return offset <= len && size <= len - offset;
}
