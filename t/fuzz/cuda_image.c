/* Any bytes as compiled code for a GPU: what passes ends where it says it does,
   by its own tables read without a check. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/error.c"
#include "backends/cuda/image_check.c"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads as a driver does, which is told no length. */
static void
use_cubin(const char *code)
{
    Elf64_Ehdr h;
    Elf64_Shdr names;
    size_t sum = 0;

    memcpy(&h, code, sizeof(h));
    memcpy(&names, code + h.e_shoff + h.e_shstrndx * sizeof(names),
        sizeof(names));
    for (size_t i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr s, link;

        memcpy(&s, code + h.e_shoff + i * sizeof(s), sizeof(s));
        if (s.sh_type == SHT_NULL) {
            continue;
        }
        sum += strlen(code + names.sh_offset + s.sh_name);
        memcpy(&link, code + h.e_shoff + s.sh_link * sizeof(link),
            sizeof(link));
        if (s.sh_type != SHT_NOBITS && s.sh_size > 0) {
            sum += (unsigned char) code[s.sh_offset + s.sh_size - 1];
        }
    }
    for (size_t i = 0; i < h.e_phnum; i++) {
        Elf64_Phdr p;

        memcpy(&p, code + h.e_phoff + i * sizeof(p), sizeof(p));
        if (p.p_type != PT_NULL && p.p_filesz > 0) {
            sum += (unsigned char) code[p.p_offset + p.p_filesz - 1];
        }
    }
    check(sum < SIZE_MAX);
}

static void
use_fatbin(const char *code)
{
    fatbin_head_t head;
    uint64_t at;

    memcpy(&head, code, sizeof(head));
    for (at = 0; at < head.body_bytes; ) {
        const char *p = code + head.head_bytes + at;
        fatbin_part_t part;

        memcpy(&part, p, sizeof(part));
        if (part.kind == KIND_CUBIN) {
            check(part.packed_bytes == 0);
            use_cubin(p + part.head_bytes);
        }
        at += part.head_bytes + part.body_bytes;
    }
    check(at == head.body_bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t magic = 0;

    char *code = malloc(size + 1);
    check(code != NULL);
    if (size > 0) {
        memcpy(code, data, size);
    }
    code[size] = '\0';

    TRITONSERVER_Error *err = gpu_image_check(code, size);
    memcpy(&magic, code, size < sizeof(magic) ? size : sizeof(magic));
    if (err != NULL) {
        check(TRITONSERVER_ErrorMessage(err)[0] != '\0');
        TRITONSERVER_ErrorDelete(err);
    } else if (magic == FATBIN_MAGIC) {
        use_fatbin(code);
    } else if (memcmp(&magic, ELFMAG, SELFMAG) == 0) {
        use_cubin(code);
    } else {
        check(strlen(code) + 1 >= size && strstr(code, ".version") != NULL);
    }
    free(code);
    return 0;
}
