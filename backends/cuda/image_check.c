/* image_check.c - see image_check.h */

#include "image_check.h"

#include <elf.h>
#include <string.h>

#define FATBIN_MAGIC 0xba55ed50u

typedef struct {
    uint32_t magic;
    uint16_t version;
    uint16_t head_bytes;
    uint64_t body_bytes;
} fatbin_head_t;

static bool fatbin_is_whole(const char *code, size_t len);
static bool cubin_is_whole(const char *code, size_t len);
static bool fits(uint64_t offset, uint64_t size, size_t len);

TRITONSERVER_Error *
gpu_image_check(const char *code, size_t len)
{
    uint32_t magic = 0;
    bool whole = true;

    memcpy(&magic, code, len < sizeof(magic) ? len : sizeof(magic));
    if (magic == FATBIN_MAGIC) {
        whole = fatbin_is_whole(code, len);
    } else if (memcmp(&magic, ELFMAG, SELFMAG) == 0) {
        whole = cubin_is_whole(code, len);
    }

    return whole ? NULL : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "the code is not whole, or no code of a GPU");
}

static bool
fatbin_is_whole(const char *code, size_t len)
{
    fatbin_head_t head;

    if (len < sizeof(head)) {
        return false;
    }

    memcpy(&head, code, sizeof(head));
    return head.head_bytes >= sizeof(head)
        && fits(head.head_bytes, head.body_bytes, len);
}

static bool
cubin_is_whole(const char *code, size_t len)
{
    Elf64_Ehdr head;

    if (len < sizeof(head)) {
        return false;
    }

    memcpy(&head, code, sizeof(head));
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_CUDA
        || (head.e_phnum > 0 && (head.e_phentsize != sizeof(Elf64_Phdr)
            || !fits(head.e_phoff, head.e_phnum * sizeof(Elf64_Phdr), len)))
        || (head.e_shnum > 0 && (head.e_shentsize != sizeof(Elf64_Shdr)
            || !fits(head.e_shoff, head.e_shnum * sizeof(Elf64_Shdr), len))))
    {
        return false;
    }

    for (size_t i = 0; i < head.e_shnum; i++) {
        Elf64_Shdr section;

        memcpy(&section, code + head.e_shoff + i * sizeof(section),
            sizeof(section));
        if (section.sh_type != SHT_NOBITS && section.sh_type != SHT_NULL
            && !fits(section.sh_offset, section.sh_size, len))
        {
            return false;
        }
    }
    return true;
}

static bool
fits(uint64_t offset, uint64_t size, size_t len)
{
    return offset <= len && size <= len - offset;
}
