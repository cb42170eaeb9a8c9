/*
 * The core's configuration: as the supervisor sends it (first byte even: the
 * packed message) and as a text file.  A configuration that is read equals
 * itself, reads back the same from the other form, and passes all checks
 * before a server is made of it.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/log.h"
#include "core/proto/message.h"
#include "core/proto/text_format.h"
#include "core/sched/rate_gate.h"
#include "core/server/core_config.h"
#include "core/wire/sockets.h"
#include "t/fuzz/check.h"
#include "t/fuzz/memory_file.h"
#include "t/fuzz/silent_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef inf_core_config_t config_t;

/* NULL: it is not one. */
static config_t *
from_message(const void *data, size_t size)
{
    config_t *config = NULL;
    int fd;

    inf_err_t *err = inf_memfd_sealed("config", data, size, &fd);
    check(err == NULL);
    err = inf_core_config_from_fd(fd, &config);
    check((err == NULL) == (config != NULL));
    inf_err_free(err);
    inf_fds_close(&fd, 1);
    return config;
}

static config_t *
from_text(const void *data, size_t size)
{
    config_t *config = NULL;
    char path[MEMORY_FILE_PATH];
    int fd = memory_file(data, size, path);

    inf_err_t *err = inf_core_config_from_file(path, &config);
    check((err == NULL) == (config != NULL));
    check(err == NULL || strstr(inf_err_msg(err), path) != NULL);
    inf_err_free(err);
    close(fd);
    return config;
}

static bool
same(const config_t *a, const config_t *b)
{
    static const inf_option_reload_t reloads[] = {
        INF_RELOAD_NOW, INF_RELOAD_LOADS, INF_RELOAD_CORE
    };
    char text[1024];
    bool same = true;

    for (size_t i = 0; i < 3; i++) {
        inf_core_config_differences(a, b, reloads[i], text, sizeof(text));
        same = same && text[0] == '\0';
    }
    return same;
}

/* All that is asked of it before there is a server, and a reload of it to
   another: that differs from the other in nothing that can change. */
static void
use(const config_t *config, const config_t *other)
{
    char text[1024];
    config_t *now = NULL;

    inf_rate_gate_t *gate;
    inf_err_t *err = inf_rate_gate_from_config(config->values, &gate);
    check(err == NULL);
    inf_rate_gate_free(gate);

    err = inf_core_config_reload(config, other, &now);
    check(err == NULL);
    inf_core_config_differences(now, other, INF_RELOAD_NOW, text,
        sizeof(text));
    check(text[0] == '\0');
    inf_core_config_differences(now, other, INF_RELOAD_LOADS, text,
        sizeof(text));
    check(text[0] == '\0');
    inf_core_config_unref(now);
}

/* The other form says the same. */
static void
turn(const config_t *config, bool from_a_text, bool to_text)
{
    inf_buf_t out;

    inf_buf_init(&out);
    inf_err_t *err = to_text ? inf_text_print(&config->values->base, &out)
        : inf_message_pack(&config->values->base, &out);
    if (err == NULL) {
        inf_slice_t s = inf_buf_slice(&out);
        config_t *back = to_text ? from_text(s.data, s.len)
            : from_message(s.data, s.len);

        /* a text's strings may be no UTF-8, a message's may not */
        check(back != NULL || (from_a_text && !to_text));
        check(back == NULL || same(config, back));
        inf_core_config_unref(back);
    }
    inf_err_free(err);
    inf_buf_fini(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }

    silent_log_begin();
    bool text = *data & 1;
    config_t *config = text ? from_text(data + 1, size - 1)
        : from_message(data + 1, size - 1);
    if (config == NULL) {
        return 0;
    }

    check(same(config, config));
    turn(config, text, true);
    turn(config, text, false);

    config_t *plain = from_message("", 0);
    check(plain != NULL);
    check(same(plain, config) == same(config, plain));
    use(config, plain);
    use(plain, config);
    inf_core_config_unref(plain);
    inf_core_config_unref(config);
    return 0;
}
