/* Any bytes as a plug-in's file, and the beginning of this program with some
   of its bytes changed: what looks at it before the loader does neither
   crashes nor reads beyond it. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/abi/elf_check.h"
#include "core/abi/elf_needed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WHOLE 16384

static void
look(const void *file, size_t size)
{
    static int fd = -1;
    inf_elf_needed_t needed;
    char path[64];

    if (fd == -1) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
    }
    if (fd == -1 || ftruncate(fd, 0) != 0
        || pwrite(fd, file, size, 0) != (ssize_t) size)
    {
        abort();
    }

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    inf_err_free(inf_elf_check(path));

    inf_err_t *err = inf_elf_needed_read(path, &needed);
    if (err == NULL) {
        inf_elf_needed_fini(&needed);
    }
    inf_err_free(err);
}

/* Each three bytes of data are a place and what stands there instead. */
static void
look_changed(const uint8_t *data, size_t size)
{
    uint8_t file[WHOLE];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ssize_t len = read(fd, file, sizeof(file));

    close(fd);
    for (size_t i = 0; len > 0 && i + 3 <= size; i += 3) {
        file[(data[i] | data[i + 1] << 8) % len] = data[i + 2];
    }
    look(file, len > 0 ? (size_t) len : 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    look(data, size);
    look_changed(data, size);
    return 0;
}
