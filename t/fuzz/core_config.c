/*
 * The core's configuration: as the supervisor sends it (first byte even: the
 * packed message) and as a text file.  Whatever is read differs in nothing from
 * itself, reads back the same from the other form, and is fit for all that is
 * asked of it before a server is made of it.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/buf.h"
#include "core/base/log.h"
#include "core/channel/sockets.h"
#include "core/proto/message.h"
#include "core/proto/text_format.h"
#include "core/service/core_config.h"
#include "core/service/load_settings.h"
#include "t/fuzz/check.h"
#include "t/fuzz/silent_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef NginxInference__CoreConfig config_t;

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
    char path[64];
    int fd = memfd_create("config", MFD_CLOEXEC);

    check(fd >= 0 && write(fd, data, size) == (ssize_t) size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
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
    char differences[1024];
    char later[1024];

    inf_core_config_differences(a, b, differences, sizeof(differences));
    inf_core_config_later(a, b, later, sizeof(later));
    check(inf_core_config_same_loads(a, b) == (later[0] == '\0'));
    return differences[0] == '\0' && later[0] == '\0';
}

/* All that is asked of it before there is a server. */
static void
use(const config_t *config)
{
    inf_load_settings_t *settings = NULL;
    inf_lifecycle_options_t options = { 0 };

    (void) inf_core_config_limits_rates(config);
    inf_rate_resource_t *rates = inf_core_config_rates(config);
    for (size_t i = 0; i < config->n_rate_limit_resources; i++) {
        check(rates[i].name != NULL);
    }
    free(rates);

    inf_err_t *err = inf_load_settings_new(config, &settings);
    if (err == NULL) {
        inf_load_settings_fill(settings, &options);
    }
    inf_err_free(err);
    inf_load_settings_free(settings);
}

/* The other form says the same. */
static void
turn(const config_t *config, bool from_a_text, bool to_text)
{
    inf_buf_t out;

    inf_buf_init(&out);
    inf_err_t *err = to_text ? inf_text_print(&config->base, &out)
        : inf_message_pack(&config->base, &out);
    if (err == NULL) {
        inf_slice_t s = inf_buf_slice(&out);
        config_t *back = to_text ? from_text(s.data, s.len)
            : from_message(s.data, s.len);

        /* a text's strings may be no UTF-8, a message's may not */
        check(back != NULL || (from_a_text && !to_text));
        check(back == NULL || same(config, back));
        inf_message_free(back != NULL ? &back->base : NULL);
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
    use(config);
    turn(config, text, true);
    turn(config, text, false);

    config_t *plain = from_message("", 0);
    check(plain != NULL);
    check(same(plain, config) == same(config, plain));
    inf_message_free(&plain->base);
    inf_message_free(&config->base);
    return 0;
}
