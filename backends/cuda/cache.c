/* cache.c - see cache.h */

#include "cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/evp.h>

#define CODE_MAX (UINT64_C(1) << 30)
#define NAME_MAX_LEN (2 * GPU_KEY_BYTES + 32)
#define EXTENSION ".code"
#define CODE_NAME_LEN (2 * GPU_KEY_BYTES + sizeof(EXTENSION) - 1)
#define FILES_MAX 1024
#define WRITE_MAX_S 3600        /* a write that takes longer has died        */

static const char magic[8] = "infgpu\0\1";

/* Before the code. */
typedef struct {
    char     magic[sizeof(magic)];
    gpu_key_t key;
    gpu_key_t content;                  /* hash of the code                  */
    uint64_t len;
} head_t;

typedef struct {
    struct timespec used;
    const char     *name;
} file_t;

static bool is_own_directory(int fd, const char *path);
static void drop_left_over(const gpu_cache_t *c);
static bool has_ended(const gpu_cache_t *c, const char *name);
static void drop_oldest(const gpu_cache_t *c);
static int is_temporary(const struct dirent *entry);
static int is_code(const struct dirent *entry);
static bool begins_as_code(const char *name);
static int by_use(const void *a, const void *b);
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
        drop_left_over(c);
        drop_oldest(c);
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
    if (*code != NULL) {
        (void) futimens(fd, NULL);      /* else it may go as the oldest      */
    }
    close(fd);
    if (*code == NULL) {
        bk_log(TRITONSERVER_LOG_WARN, "compiled kernel %s is not as it was"
            " written; it is compiled again", name);
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
    } else {
        drop_oldest(c);
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

/* Files of processes that died while they wrote them. */
static void
drop_left_over(const gpu_cache_t *c)
{
    struct dirent **names;

    int count = scandirat(c->directory, ".", &names, is_temporary, NULL);
    for (int i = 0; i < count; i++) {
        if (has_ended(c, names[i]->d_name)) {
            (void) unlinkat(c->directory, names[i]->d_name, 0);
        }
        free(names[i]);
    }
    if (count >= 0) {
        free(names);
    }
}

/* A process of another container has a number of its own, or another's. */
static bool
has_ended(const gpu_cache_t *c, const char *name)
{
    long pid = strtol(name + 1 + CODE_NAME_LEN + 1, NULL, 10);
    struct stat st;

    return pid <= 0 || (kill((pid_t) pid, 0) != 0 && errno == ESRCH)
        || (fstatat(c->directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0
            && time(NULL) - st.st_mtime > WRITE_MAX_S);
}

/* Other processes do the same at the same time: a file may be gone. */
static void
drop_oldest(const gpu_cache_t *c)
{
    struct dirent **names;

    int count = scandirat(c->directory, ".", &names, is_code, NULL);
    if (count < 0) {
        return;
    }

    file_t *files = count > FILES_MAX
        ? calloc((size_t) count, sizeof(*files)) : NULL;
    if (files != NULL) {
        for (int i = 0; i < count; i++) {
            struct stat st = { 0 };
            (void) fstatat(c->directory, names[i]->d_name, &st,
                AT_SYMLINK_NOFOLLOW);
            files[i] = (file_t) { st.st_mtim, names[i]->d_name };
        }
        qsort(files, (size_t) count, sizeof(*files), by_use);
        for (int i = 0; i < count - FILES_MAX; i++) {
            (void) unlinkat(c->directory, files[i].name, 0);
        }
    }

    free(files);
    for (int i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

static int
is_temporary(const struct dirent *entry)
{
    return entry->d_name[0] == '.' && begins_as_code(entry->d_name + 1)
        && entry->d_name[1 + CODE_NAME_LEN] == '.';
}

static int
is_code(const struct dirent *entry)
{
    return begins_as_code(entry->d_name)
        && entry->d_name[CODE_NAME_LEN] == '\0';
}

/* The directory may be one where other files are, too. */
static bool
begins_as_code(const char *name)
{
    return strspn(name, "0123456789abcdef") == 2 * GPU_KEY_BYTES
        && strncmp(name + 2 * GPU_KEY_BYTES, EXTENSION,
            sizeof(EXTENSION) - 1) == 0;
}

static int
by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const file_t *) a)->used;
    const struct timespec *y = &((const file_t *) b)->used;

    return x->tv_sec != y->tv_sec ? (x->tv_sec < y->tv_sec ? -1 : 1)
        : x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static void
key_name(const gpu_key_t *key, char name[NAME_MAX_LEN])
{
    for (size_t i = 0; i < GPU_KEY_BYTES; i++) {
        snprintf(name + 2 * i, 3, "%02x", key->bytes[i]);
    }
    strcpy(name + 2 * GPU_KEY_BYTES, EXTENSION);
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
