#include "core/server/core_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log_stream.h"
#include "core/proto/message.h"
#include "core/proto/text_format.h"
#include "core/wire/sockets.h"

#define CONFIG_MAX (16u << 20)

static inf_err_t *share(ProtobufCMessage *message, inf_core_config_t **out);
static inf_err_t *read_all(int fd, char **data, size_t *len);

inf_err_t *
inf_core_config_from_fd(int fd, inf_core_config_t **out)
{
    char *data;
    size_t len;

    inf_err_t *err = inf_memfd_check_sealed(fd);
    if (err == NULL) {
        err = read_all(fd, &data, &len);
    }
    if (err != NULL) {
        return inf_err_add(err, "configuration");
    }

    ProtobufCMessage *message;
    err = inf_message_unpack(&nginx_inference__core_config__descriptor,
        inf_slice(data, len), &message);
    free(data);
    if (err == NULL) {
        err = share(message, out);
    }
    return err != NULL ? inf_err_add(err, "configuration") : NULL;
}

inf_err_t *
inf_core_config_from_file(const char *path, inf_core_config_t **out)
{
    char *data;
    size_t len;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return inf_err_os(errno, "cannot open \"%s\"", path);
    }

    inf_err_t *err = read_all(fd, &data, &len);
    close(fd);
    if (err != NULL) {
        return inf_err_add(err, "%s", path);
    }

    ProtobufCMessage *message;
    err = inf_text_parse(&nginx_inference__core_config__descriptor,
        inf_slice(data, len), path, &message);
    free(data);
    if (err != NULL) {
        return err;
    }

    err = share(message, out);
    return err != NULL ? inf_err_add(err, "%s", path) : NULL;
}

void
inf_core_config_apply_log(const inf_core_config_t *config)
{
    const NginxInference__LogSettings *log = config->values->log;

    inf_log_set_levels(log->info, log->warn, log->error, log->verbose);
    inf_log_stream_set_format((inf_log_format_t) log->format);
}

bool
inf_core_config_log_differs(const inf_core_config_t *a,
    const inf_core_config_t *b)
{
    const NginxInference__LogSettings *one = a->values->log;
    const NginxInference__LogSettings *other = b->values->log;

    return one->info != other->info || one->warn != other->warn
        || one->error != other->error || one->verbose != other->verbose
        || one->format != other->format;
}

/* Takes message and returns a reference. */
static inf_err_t *
share(ProtobufCMessage *message, inf_core_config_t **out)
{
    inf_err_t *err = inf_core_config_new(
        (NginxInference__CoreConfig *) (void *) message, out);

    inf_message_free(message);
    return err;
}

static inf_err_t *
read_all(int fd, char **data, size_t *len)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return inf_err_os(errno, "fstat");
    }
    if (!S_ISREG(st.st_mode)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "not a regular file");
    }
    if (st.st_size < 0 || st.st_size > CONFIG_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG, "%lld bytes, at most %u are"
            " read", (long long) st.st_size, CONFIG_MAX);
    }

    size_t size = (size_t) st.st_size;
    char *buf = malloc(size + 1);
    if (buf == NULL) {
        return inf_err_nomem();
    }

    size_t got = 0;
    while (got < size) {
        ssize_t n = pread(fd, buf + got, size - got, (off_t) got);
        if (n <= 0) {
            int error = n < 0 ? errno : EIO;
            if (error == EINTR) {
                continue;
            }
            free(buf);
            return inf_err_os(error, "read");
        }
        got += (size_t) n;
    }

    buf[size] = '\0';
    *data = buf;
    *len = size;
    return NULL;
}
