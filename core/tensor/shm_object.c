#include "core/tensor/shm_object.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/os/shared_names.h"
#include "core/tensor/shm_fault.h"

/* Prefixes of names of the Python backend, of the server's processes, and of
   semaphores. */
static const char *const reserved[] = {
    "triton_python_backend_shm_region_", "inference-core.", "sem."
};

static inf_err_t *check_key(const char *name, const char *key);
static inf_err_t *check_object(const char *name, const char *key, int fd,
    const struct stat *st, const inf_shm_identity_t *known);
static inf_err_t *is_ours(const struct stat *st, bool *ours);
static inf_shm_identity_t identity_of(const struct stat *st);
static inf_err_t *check_range(const char *name, const struct stat *st,
    uint64_t offset, uint64_t size);
static inf_err_t *map_object(const char *name, int fd, const struct stat *st,
    uint64_t offset, uint64_t size, inf_shm_object_t *out);

inf_err_t *
inf_shm_object_open(const char *name, const char *key, uint64_t offset,
    uint64_t size, const inf_shm_identity_t *known, inf_shm_object_t *out)
{
    inf_err_t *err = check_key(name, key);
    if (err != NULL) {
        return err;
    }

    /* does not wait for another process's lease */
    int fd = shm_open(key, O_RDWR | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) {
        int rc = errno;
        inf_log(INF_LOG_VERBOSE, "shared memory region '%s': cannot open"
            " \"%s\": %s", name, key, strerror(rc));
        return inf_err_new(INF_ERR_INTERNAL, "Unable to open shared memory"
            " region: '%s'", key);
    }

    struct stat st;
    err = fstat(fd, &st) == 0
        ? check_object(name, key, fd, &st, known)
        : inf_err_new(INF_ERR_INTERNAL, "Invalid shared memory region: '%s'",
            key);
    if (err == NULL) {
        err = check_range(name, &st, offset, size);
    }
    if (err == NULL) {
        err = map_object(name, fd, &st, offset, size, out);
    }
    close(fd);
    return err;
}

void
inf_shm_object_close(inf_shm_object_t *o)
{
    inf_shm_fault_remove(o->fault);
    if (munmap(o->base, o->size) != 0) {
        inf_err_log(inf_err_os(errno, "cannot unmap a shared memory region"));
    }
    *o = (inf_shm_object_t) { .base = NULL };
}

bool
inf_shm_object_is_broken(const inf_shm_object_t *o)
{
    return inf_shm_fault_seen(o->fault);
}

static inf_err_t *
check_key(const char *name, const char *key)
{
    const char *plain = key + strspn(key, "/");

    if (plain[0] == '\0' || strchr(plain, '/') != NULL
        || strcmp(plain, ".") == 0 || strcmp(plain, "..") == 0
        || strlen(key) > NAME_MAX)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "cannot register shared memory"
            " region '%s' with key '%.*s': a key is the name of a shared"
            " memory object, with no slash but in front", name, NAME_MAX, key);
    }

    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (strncmp(plain, reserved[i], strlen(reserved[i])) == 0) {
            return inf_err_new(INF_ERR_INVALID_ARG, "cannot register shared"
                " memory region '%s' with key '%s' as the key contains the"
                " reserved prefix '%s'", name, key, reserved[i]);
        }
    }

    return NULL;
}

/* Rejects objects that are not memory of a client (directories, pipes, devices,
   files on disk). */
static inf_err_t *
check_object(const char *name, const char *key, int fd, const struct stat *st,
    const inf_shm_identity_t *known)
{
    struct statfs fs;

    if (!S_ISREG(st->st_mode) || fstatfs(fd, &fs) != 0
        || (unsigned long) fs.f_type != TMPFS_MAGIC)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "cannot register shared memory"
            " region '%s' with key '%s': it is not a shared memory object",
            name, key);
    }

    if (known != NULL) {
        const inf_shm_identity_t id = identity_of(st);
        return id.device == known->device && id.inode == known->inode
            && id.owner == known->owner ? NULL
            : inf_err_new(INF_ERR_INVALID_ARG, "cannot register shared memory"
                " region '%s' with key '%s': it is another object than before",
                name, key);
    }

    bool ours;

    inf_err_t *err = is_ours(st, &ours);
    if (err != NULL) {
        return inf_err_add(err, "cannot register shared memory region '%s'"
            " with key '%s'", name, key);
    }
    return !ours ? NULL : inf_err_new(INF_ERR_INVALID_ARG, "cannot register"
        " shared memory region '%s' with key '%s': the server uses it itself",
        name, key);
}

/* Whether this process has mapped the object for itself; reads all mappings,
   unless a region of the object is registered. */
static inf_err_t *
is_ours(const struct stat *st, bool *ours)
{
    *ours = false;
    return inf_shm_fault_knows(st->st_dev, st->st_ino) ? NULL
        : inf_shared_memory_is_mapped(st->st_dev, st->st_ino, ours);
}

static inf_shm_identity_t
identity_of(const struct stat *st)
{
    return (inf_shm_identity_t) { st->st_dev, st->st_ino, st->st_uid };
}

static inf_err_t *
check_range(const char *name, const struct stat *st, uint64_t offset,
    uint64_t size)
{
    uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);

    if (size == 0 || st->st_size < 0 || offset > UINT64_MAX - size
        || offset + size > (uint64_t) st->st_size)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "failed to register shared"
            " memory region '%s': invalid args", name);
    }

    return offset % page == 0 ? NULL : inf_err_new(INF_ERR_INVALID_ARG,
        "failed to register shared memory region '%s': offset %llu is not a"
        " multiple of the page size, %llu", name, (unsigned long long) offset,
        (unsigned long long) page);
}

static inf_err_t *
map_object(const char *name, int fd, const struct stat *st, uint64_t offset,
    uint64_t size, inf_shm_object_t *out)
{
    uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
    uint64_t pages = (size + page - 1) / page * page;

    void *base = mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
        (off_t) offset);
    if (base == MAP_FAILED) {
        return inf_err_add(inf_err_recode(inf_err_os(errno, "mmap"),
            INF_ERR_INVALID_ARG), "failed to register shared memory region"
            " '%s'", name);
    }

    /* child processes do not use it */
    (void) madvise(base, pages, MADV_DONTFORK);

    *out = (inf_shm_object_t) {
        .base = base, .size = pages, .identity = identity_of(st)
    };
    inf_err_t *err = inf_shm_fault_enter(base, pages, st->st_dev,
        st->st_ino, &out->fault);
    if (err != NULL) {
        munmap(base, pages);
        *out = (inf_shm_object_t) { .base = NULL };
        return inf_err_add(err, "failed to register shared memory region"
            " '%s'", name);
    }

    return NULL;
}
