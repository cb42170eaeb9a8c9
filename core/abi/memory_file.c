#include "core/abi/memory_file.h"

#include "core/base/os/mapped_files.h"

bool
inf_memory_file(const void *data, uint64_t len_bytes, uint64_t *id, int *fd,
    uint64_t *offset, uint64_t *size)
{
    inf_mapped_file_t file;

    if (!inf_mapped_file_find(data, len_bytes, &file)) {
        return false;
    }

    *id = file.id;
    *fd = file.fd;
    *offset = file.offset;
    *size = file.size;
    return true;
}

bool
inf_memory_file_ended(uint64_t id)
{
    return inf_mapped_file_ended(id);
}
