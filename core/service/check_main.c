#include "core/service/check_main.h"

#include <stdio.h>

#include "core/abi/cache_plugin.h"
#include "core/base/os/host_check.h"
#include "core/repository/check.h"
#include "core/server/core_config.h"
#include "core/server/server_cache.h"
#include "core/service/core_main.h"

static void check_policies(const inf_host_policies_t *policies,
    unsigned *errors);
static void print_error(inf_log_level_t level, inf_err_t *err,
    unsigned *errors);
static void print_record(void *userp, inf_log_level_t level, const char *file,
    int line_no, const char *text);
static void print_finding(void *userp, inf_log_level_t level,
    const char *text);

int
inf_check_main(const char *file)
{
    inf_core_config_t *config = NULL;
    unsigned errors = 0;

    inf_err_t *err = file != NULL ? inf_core_config_from_file(file, &config)
        : inf_core_config_from_fd(INF_CORE_FD_CONFIG, &config);
    if (err == NULL) {
        inf_log_set_sink(print_record, NULL);
        print_error(INF_LOG_ERROR, inf_server_cache_check(
            &inf_cache_plugin_opener, config->values), &errors);
        check_policies(&config->host_policies, &errors);
        err = inf_repository_check(config, print_finding, &errors);
        inf_log_set_sink(NULL, NULL);
        inf_core_config_unref(config);
    }

    if (err != NULL) {
        fprintf(stderr, "the models can't be checked: %s\n",
            inf_err_msg(err));
        inf_err_free(err);
        return 2;
    }
    return fflush(stdout) != 0 ? 2 : errors > 0;
}

static void
check_policies(const inf_host_policies_t *policies, unsigned *errors)
{
    for (size_t i = 0; i < policies->count; i++) {
        inf_err_t *err = inf_host_check(&policies->items[i]);
        print_error(err != NULL && inf_err_code(err) == INF_ERR_NOT_FOUND
            ? INF_LOG_ERROR : INF_LOG_WARN, err, errors);
    }
}

/* Prints err, which is taken and may be NULL. */
static void
print_error(inf_log_level_t level, inf_err_t *err, unsigned *errors)
{
    if (err != NULL) {
        print_finding(errors, level, inf_err_msg(err));
        inf_err_free(err);
    }
}

/* Prints a message that a load would log; it does not count as an error. */
static void
print_record(void *userp, inf_log_level_t level, const char *file, int line_no,
    const char *text)
{
    (void) userp;
    (void) file;
    (void) line_no;
    if (level == INF_LOG_ERROR || level == INF_LOG_WARN) {
        unsigned none = 0;
        print_finding(&none, INF_LOG_WARN, text);
    }
}

static void
print_finding(void *userp, inf_log_level_t level, const char *text)
{
    unsigned *errors = userp;

    fputs(level == INF_LOG_ERROR ? "error: " : "warn: ", stdout);
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char) *p;
        putchar(c < 0x20 || c == 0x7f ? '?' : c);
    }
    putchar('\n');
    *errors += level == INF_LOG_ERROR;
}
