/* cache.c - see cache.h */

#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#define CODE_MAX (UINT64_C(1) << 30)
#define NAME_MAX_LEN (2 * GPU_KEY_BYTES + 32)

static const char magic[8] = "infgpu\0\1";

/* Before the code. */
typedef struct {
    char     magic[sizeof(magic)];
    gpu_key_t key;
    gpu_key_t content;                  /* hash of the code                  */
    uint64_t len;
} head_t;

static bool is_own_directory(int fd, const char *path);
static void key_name(const gpu_key_t *key, char name[NAME_MAX_LEN]);
static char *read_code(int fd, const gpu_key_t *key, size_t *len);
static bool read_whole(int fd, void *to, size_t len);
static bool write_whole(int fd, const void *from, size_t len);

void
gpu_cache_open(gpu_cache_t *c, const char *path)
{
    char own[64];

    if (path == NULL) {
        snprintf(own, sizeof(own), "/var/tmp/nginx-inference-cuda-%ld",
            (long) geteuid());
        path = own;
    }

    c->directory = -1;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        bk_log(TRITONSERVER_LOG_WARN, "compiled kernels are not kept: cannot"
            " make %s: %s", path, strerror(errno));
        return;
    }

    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        bk_log(TRITONSERVER_LOG_WARN, "compiled kernels are not kept: cannot"
            " open %s: %s", path, strerror(errno));
        return;
    }

    if (is_own_directory(fd, path)) {
        c->directory = fd;
    } else {
        close(fd);
    }
}

void
gpu_cache_close(gpu_cache_t *c)
{
    if (c->directory >= 0) {
        close(c->directory);
    }
    c->directory = -1;
}

bool
gpu_key_make(gpu_key_t *key, const gpu_key_part_t *parts, size_t count)
{
    EVP_MD_CTX *hash = EVP_MD_CTX_new();

    bool done = hash != NULL
        && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; done && i < count; i++) {
        uint64_t len = parts[i].len;
        done = EVP_DigestUpdate(hash, &len, sizeof(len)) == 1
            && EVP_DigestUpdate(hash, parts[i].data, parts[i].len) == 1;
    }
    done = done && EVP_DigestFinal_ex(hash, key->bytes, NULL) == 1;

    EVP_MD_CTX_free(hash);
    return done;
}

bool
gpu_cache_read(const gpu_cache_t *c, const gpu_key_t *key, char **code,
    size_t *len)
{
    char name[NAME_MAX_LEN];

    if (c->directory < 0) {
        return false;
    }

    key_name(key, name);
    int fd = openat(c->directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC
        | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }

    *code = read_code(fd, key, len);
    close(fd);
    if (*code == NULL) {
        bk_log(TRITONSERVER_LOG_WARN, "compiled kernel %s is not as it was"
            " written; it is made again", name);
    }
    return *code != NULL;
}

/* Under another name until it is whole, so that no reader finds a part. */
void
gpu_cache_write(const gpu_cache_t *c, const gpu_key_t *key, const char *code,
    size_t len)
{
    gpu_key_part_t part = { code, len };
    char name[NAME_MAX_LEN], temporary[NAME_MAX_LEN + 32];
    head_t head = { .key = *key, .len = len };

    if (c->directory < 0 || !gpu_key_make(&head.content, &part, 1)) {
        return;
    }

    memcpy(head.magic, magic, sizeof(magic));
    key_name(key, name);
    snprintf(temporary, sizeof(temporary), ".%s.%ld.%lx", name,
        (long) getpid(), (unsigned long) (uintptr_t) &head);
    int fd = openat(c->directory, temporary, O_WRONLY | O_CREAT | O_EXCL
        | O_CLOEXEC, 0600);
    bool done = fd >= 0 && write_whole(fd, &head, sizeof(head))
        && write_whole(fd, code, len);
    if (fd >= 0) {
        done = close(fd) == 0 && done
            && renameat(c->directory, temporary, c->directory, name) == 0;
    }

    if (!done) {
        bk_log(TRITONSERVER_LOG_WARN, "compiled kernel %s is not kept: %s",
            name, strerror(errno));
        (void) unlinkat(c->directory, temporary, 0);
    }
}

static bool
is_own_directory(int fd, const char *path)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || st.st_uid != geteuid()
        || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    {
        bk_log(TRITONSERVER_LOG_WARN, "compiled kernels are not kept: %s must"
            " belong to user %ld, and nobody else may write to it", path,
            (long) geteuid());
        return false;
    }
    return true;
}

static void
key_name(const gpu_key_t *key, char name[NAME_MAX_LEN])
{
    for (size_t i = 0; i < GPU_KEY_BYTES; i++) {
        snprintf(name + 2 * i, 3, "%02x", key->bytes[i]);
    }
    strcpy(name + 2 * GPU_KEY_BYTES, ".code");
}

/* NULL: not whole, not ours, or not of that key. */
static char *
read_code(int fd, const gpu_key_t *key, size_t *len)
{
    gpu_key_t content;
    struct stat st;
    head_t head;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)
        || st.st_uid != geteuid() || !read_whole(fd, &head, sizeof(head))
        || memcmp(head.magic, magic, sizeof(magic)) != 0
        || memcmp(&head.key, key, sizeof(*key)) != 0 || head.len > CODE_MAX
        || (uint64_t) st.st_size != sizeof(head) + head.len)
    {
        return NULL;
    }

    *len = (size_t) head.len;
    char *code = malloc(*len + 1);
    gpu_key_part_t part = { code, *len };
    if (code == NULL || !read_whole(fd, code, *len)
        || !gpu_key_make(&content, &part, 1)
        || memcmp(&content, &head.content, sizeof(content)) != 0)
    {
        free(code);
        return NULL;
    }

    code[*len] = '\0';
    return code;
}

static bool
read_whole(int fd, void *to, size_t len)
{
    for (size_t done = 0; done < len; ) {
        ssize_t n = read(fd, (char *) to + done, len - done);
        if (n <= 0 && (n == 0 || errno != EINTR)) {
            return false;
        }
        done += n > 0 ? (size_t) n : 0;
    }
    return true;
}

static bool
write_whole(int fd, const void *from, size_t len)
{
    for (size_t done = 0; done < len; ) {
        ssize_t n = write(fd, (const char *) from + done, len - done);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? (size_t) n : 0;
    }
    return true;
}
