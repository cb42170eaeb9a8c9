#include "core/abi/forwarding.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/abi/elf_needed.h"
#include "core/base/log.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

#define CORE_SONAME     "libtritonserver.so"
#define RENAMED_PREFIX  "libtritonserver-"
#define RENAMED_SUFFIX  ".so"
#define PAGE            0x10000     /* the largest page size of any machine  */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OWN_DATA        ELFDATA2LSB
#else
#define OWN_DATA        ELFDATA2MSB
#endif

enum { HEADER_LOAD, HEADER_DYNAMIC, HEADER_STACK, HEADER_COUNT };
enum {
    DYN_SONAME, DYN_HASH, DYN_STRTAB, DYN_SYMTAB, DYN_STRSZ, DYN_SYMENT,
    DYN_NEEDED, DYN_END, DYN_COUNT
};

/* The whole file except for its strings, which follow. */
typedef struct {
    Elf64_Ehdr  header;
    Elf64_Phdr  segments[HEADER_COUNT];
    Elf64_Dyn   dynamic[DYN_COUNT];
    Elf64_Sym   symbols[1];             /* the null symbol                   */
    uint32_t    hash[4];                /* a bucket, a chain, both empty     */
} image_t;

static inf_err_t *load(uint16_t machine, const char *soname);
static inf_err_t *load_image(const inf_buf_t *image, const char *soname);
static bool is_loaded(const char *soname);
static inf_err_t *write_all(int fd, inf_slice_t data, const char *soname);

/* One thread at a time loads the libraries that are missing. */
static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

inf_err_t *
inf_forwarding_load(const char *library)
{
    inf_elf_needed_t needed;
    inf_err_t *err = inf_elf_needed_read(library, &needed);
    if (err != NULL) {
        inf_err_free(err);
        return NULL;
    }

    pthread_mutex_lock(&load_lock);
    for (size_t i = 0; err == NULL && i < needed.count; i++) {
        if (inf_forwarding_matches(needed.names[i])
            && !is_loaded(needed.names[i]))
        {
            err = load(needed.machine, needed.names[i]);
        }
    }
    pthread_mutex_unlock(&load_lock);

    inf_elf_needed_fini(&needed);
    return err;
}

bool
inf_forwarding_matches(const char *name)
{
    size_t len = strlen(name);
    size_t prefix = sizeof(RENAMED_PREFIX) - 1;
    size_t suffix = sizeof(RENAMED_SUFFIX) - 1;

    if (len <= prefix + suffix || memcmp(name, RENAMED_PREFIX, prefix) != 0
        || memcmp(name + len - suffix, RENAMED_SUFFIX, suffix) != 0)
    {
        return false;
    }

    return strspn(name + prefix, "0123456789abcdef") == len - prefix - suffix;
}

void
inf_forwarding_image(inf_buf_t *to, uint16_t machine, const char *soname,
    const char *needed)
{
    const uint64_t soname_at = 1;
    const uint64_t needed_at = soname_at + strlen(soname) + 1;
    const uint64_t strings_len = needed == NULL ? needed_at
        : needed_at + strlen(needed) + 1;
    const uint64_t len = sizeof(image_t) + strings_len;

    const image_t image = {
        .header = {
            .e_ident = {
                ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, OWN_DATA,
                EV_CURRENT, ELFOSABI_NONE
            },
            .e_type = ET_DYN,
            .e_machine = machine,
            .e_version = EV_CURRENT,
            .e_phoff = offsetof(image_t, segments),
            .e_ehsize = sizeof(Elf64_Ehdr),
            .e_phentsize = sizeof(Elf64_Phdr),
            .e_phnum = HEADER_COUNT
        },
        .segments = {
            [HEADER_LOAD] = {
                .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_filesz = len,
                .p_memsz = len, .p_align = PAGE
            },
            [HEADER_DYNAMIC] = {
                .p_type = PT_DYNAMIC, .p_flags = PF_R | PF_W,
                .p_offset = offsetof(image_t, dynamic),
                .p_vaddr = offsetof(image_t, dynamic),
                .p_filesz = sizeof(Elf64_Dyn) * DYN_COUNT,
                .p_memsz = sizeof(Elf64_Dyn) * DYN_COUNT,
                .p_align = sizeof(uint64_t)
            },
            [HEADER_STACK] = {      /* without it the stack would be
                                       executable                            */
                .p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W,
                .p_align = sizeof(uint64_t)
            }
        },
        .dynamic = {
            [DYN_SONAME] = { DT_SONAME, { soname_at } },
            [DYN_HASH] = { DT_HASH, { offsetof(image_t, hash) } },
            [DYN_STRTAB] = { DT_STRTAB, { sizeof(image_t) } },
            [DYN_SYMTAB] = { DT_SYMTAB, { offsetof(image_t, symbols) } },
            [DYN_STRSZ] = { DT_STRSZ, { strings_len } },
            [DYN_SYMENT] = { DT_SYMENT, { sizeof(Elf64_Sym) } },
            [DYN_NEEDED] = {
                needed == NULL ? DT_NULL : DT_NEEDED, { needed_at }
            },
            [DYN_END] = { DT_NULL, { 0 } }
        },
        .hash = { 1, 1, 0, 0 }
    };

    inf_buf_put(to, &image, sizeof(image));
    inf_buf_putc(to, '\0');
    inf_buf_put(to, soname, strlen(soname) + 1);
    if (needed != NULL) {
        inf_buf_put(to, needed, strlen(needed) + 1);
    }
}

/* If a program opened the core by dlopen, its functions are visible only to
   libraries that need the core by name; hence the second name. */
static inf_err_t *
load(uint16_t machine, const char *soname)
{
    inf_buf_t image;
    inf_buf_init(&image);
    inf_forwarding_image(&image, machine, soname,
        is_loaded(CORE_SONAME) ? CORE_SONAME : NULL);

    inf_err_t *err = inf_buf_status(&image);
    if (err == NULL) {
        err = load_image(&image, soname);
    }

    inf_buf_fini(&image);
    return err;
}

/* The descriptor stays open: the loader identifies the library by this path,
   and the next library must get another one. */
static inf_err_t *
load_image(const inf_buf_t *image, const char *soname)
{
    int fd = memfd_create(soname, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd == -1 && errno == EINVAL) {
        fd = memfd_create(soname, MFD_CLOEXEC);     /* before Linux 6.3      */
    }
    if (fd == -1) {
        return inf_err_os(errno, "cannot make forwarding library %s", soname);
    }

    inf_err_t *err = write_all(fd, inf_buf_slice(image), soname);
    if (err != NULL) {
        close(fd);
        return err;
    }

    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (dlopen(path, RTLD_NOW | RTLD_LOCAL) == NULL) {
        const char *why = dlerror();
        err = inf_err_new(INF_ERR_UNAVAILABLE, "cannot load forwarding"
            " library %s: %s", soname, why != NULL ? why : "no reason given");
        close(fd);
        return err;
    }

    inf_log(INF_LOG_INFO, "made forwarding library %s", soname);
    return NULL;
}

static bool
is_loaded(const char *soname)
{
    void *handle = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) {
        (void) dlerror();
        return false;
    }

    dlclose(handle);
    return true;
}

static inf_err_t *
write_all(int fd, inf_slice_t data, const char *soname)
{
    size_t done = 0;
    while (done < data.len) {
        ssize_t n = write(fd, data.data + done, data.len - done);
        if (n == -1 && errno != EINTR) {
            return inf_err_os(errno, "cannot write forwarding library %s",
                soname);
        }

        done += n > 0 ? (size_t) n : 0;
    }

    return NULL;
}
