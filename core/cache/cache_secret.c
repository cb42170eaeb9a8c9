#include "core/cache/cache_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.h"

static inf_err_t *read_file(int fd, char *data, size_t *len);

inf_err_t *
inf_cache_secret_read(const char *path,
    unsigned char secret[INF_CACHE_HASH_BYTES])
{
    static const char purpose[] = "keys of a response cache";
    char data[INF_CACHE_SECRET_MOST + 1];
    inf_cache_hash_t *hash;
    inf_cache_sum_t sum;
    size_t len = 0;

    if (path[0] != '/') {
        return inf_err_new(INF_ERR_INVALID_ARG, "key-secret \"%s\" must be an"
            " absolute path", path);
    }

    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return inf_err_os(errno, "key-secret \"%s\"", path);
    }
    inf_err_t *err = read_file(fd, data, &len);
    close(fd);
    if (err == NULL) {
        err = inf_cache_hash_new(purpose, sizeof(purpose), &hash);
    }
    if (err != NULL) {
        return inf_err_add(err, "key-secret \"%s\"", path);
    }

    inf_cache_sum_begin(&sum, hash);
    inf_cache_sum_put(&sum, data, len);
    bool done = inf_cache_sum_end(&sum, secret);
    inf_cache_hash_free(hash);
    explicit_bzero(data, sizeof(data));
    explicit_bzero(&sum, sizeof(sum));
    return done ? NULL : inf_err_nomem();
}

static inf_err_t *
read_file(int fd, char *data, size_t *len)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return inf_err_os(errno, "fstat");
    }
    if (!S_ISREG(st.st_mode)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "it is not a regular file");
    }
    if (st.st_mode & S_IROTH) {
        inf_log(INF_LOG_WARN, "the secret of the response cache's keys can be"
            " read by every user of this machine");
    }

    size_t n = 0;
    while (n < INF_CACHE_SECRET_MOST + 1) {
        ssize_t got = read(fd, data + n, INF_CACHE_SECRET_MOST + 1 - n);
        if (got < 0 && errno != EINTR) {
            return inf_err_os(errno, "read");
        }
        if (got == 0) {
            break;
        }
        n += got > 0 ? (size_t) got : 0;
    }

    bool most = n > INF_CACHE_SECRET_MOST;
    if (n > 0 && data[n - 1] == '\n') {
        n--;
    }
    if (most || n < INF_CACHE_SECRET_LEAST) {
        return inf_err_new(INF_ERR_INVALID_ARG, "it holds %s than %u bytes",
            most ? "more" : "less", most ? INF_CACHE_SECRET_MOST
            : INF_CACHE_SECRET_LEAST);
    }

    *len = n;
    return NULL;
}
