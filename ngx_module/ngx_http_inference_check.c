/*
 * The check of models by nginx -t.  The core's program runs once as the user of
 * the workers, loads no model, and prints findings, which become nginx's
 * messages.
 */

#include "ngx_module/ngx_http_inference_supervisor.h"

#include "core/wire/sockets.h"

#include <poll.h>
#include <sys/wait.h>


#define NGX_HTTP_INFERENCE_CHECK_TIME    60000
#define NGX_HTTP_INFERENCE_CHECK_LINE    4096


typedef struct {
    ngx_pid_t   pid;
    ngx_fd_t    fd;             /* its output                                */
    ngx_uint_t  findings;
    size_t      len;
    u_char      line[NGX_HTTP_INFERENCE_CHECK_LINE];
} ngx_http_inference_check_t;


static ngx_int_t ngx_http_inference_check_start(
    ngx_http_inference_check_t *c, ngx_cycle_t *cycle,
    ngx_http_inference_main_conf_t *imcf);
static void ngx_http_inference_check_child(char *program, ngx_fd_t config,
    ngx_fd_t output, ngx_core_conf_t *ccf);
static ngx_int_t ngx_http_inference_check_read(ngx_http_inference_check_t *c,
    ngx_log_t *log);
static void ngx_http_inference_check_bytes(ngx_http_inference_check_t *c,
    u_char *p, size_t n, ngx_log_t *log);
static void ngx_http_inference_check_line(ngx_http_inference_check_t *c,
    ngx_log_t *log);
static ngx_int_t ngx_http_inference_check_end(ngx_http_inference_check_t *c,
    ngx_log_t *log);


ngx_int_t
ngx_http_inference_check(ngx_cycle_t *cycle,
    ngx_http_inference_main_conf_t *imcf)
{
    ngx_int_t                    rc;
    ngx_http_inference_check_t  *c;

    if (imcf->check == NGX_HTTP_INFERENCE_CHECK_OFF) {
        return NGX_OK;
    }

    c = ngx_pcalloc(cycle->pool, sizeof(ngx_http_inference_check_t));
    if (c == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_inference_check_start(c, cycle, imcf);

    if (rc == NGX_OK) {
        rc = ngx_http_inference_check_read(c, cycle->log);
    }

    if (imcf->check == NGX_HTTP_INFERENCE_CHECK_WARN) {
        return NGX_OK;
    }

    if (rc != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "inference: the models can't be checked, which "
                      "\"inference_check strict\" asks for");
        return NGX_ERROR;
    }

    if (c->findings > 0) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "inference: %ui finding%s in the models, and "
                      "\"inference_check\" is strict", c->findings,
                      c->findings == 1 ? "" : "s");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_check_start(ngx_http_inference_check_t *c,
    ngx_cycle_t *cycle, ngx_http_inference_main_conf_t *imcf)
{
    int               config, output[2];
    size_t            len;
    u_char           *data;
    inf_err_t        *err;
    ngx_core_conf_t  *ccf;

    data = ngx_http_inference_core_config_bytes(imcf, &len, cycle->pool);
    if (data == NULL) {
        return NGX_ERROR;
    }

    err = inf_memfd_sealed("inference configuration", data, len, &config);
    if (err != NULL) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0, "inference: %s",
                      inf_err_msg(err));
        inf_err_free(err);
        return NGX_ERROR;
    }

    if (pipe(output) == -1) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                      "inference: pipe() for the check of the models failed");
        (void) close(config);
        return NGX_ERROR;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    c->fd = output[0];
    c->pid = fork();

    if (c->pid == 0) {
        ngx_http_inference_check_child((char *) imcf->core.data, config,
                                       output[1], ccf);
    }

    (void) close(config);
    (void) close(output[1]);

    if (c->pid == -1) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                      "inference: fork() for the check of the models failed");
        (void) close(output[0]);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Executes the program; errors go to its output.  Never returns. */

static void
ngx_http_inference_check_child(char *program, ngx_fd_t config,
    ngx_fd_t output, ngx_core_conf_t *ccf)
{
    int    i, place;
    char  *argv[3];

    place = NGX_HTTP_INFERENCE_CORE_FD_CONFIG;

    if (config <= place) {
        config = fcntl(config, F_DUPFD, place + 1);
    }

    if (output <= place) {
        output = fcntl(output, F_DUPFD, place + 1);
    }

    if (dup2(output, STDOUT_FILENO) == -1 || dup2(output, STDERR_FILENO) == -1
        || dup2(config, place) == -1)
    {
        _exit(126);
    }

    for (i = STDERR_FILENO + 1; i < place; i++) {
        (void) close(i);
    }

    if (ngx_http_inference_close_from(place + 1) != NGX_OK) {
        _exit(126);
    }

    if (geteuid() == 0
        && (setgid(ccf->group) == -1
            || initgroups(ccf->username, ccf->group) == -1
            || setuid(ccf->user) == -1))
    {
        (void) fprintf(stderr, "cannot become user \"%s\": %s\n",
                       ccf->username, strerror(errno));
        (void) fflush(stderr);
        _exit(126);
    }

    argv[0] = (char *) "inference-core";
    argv[1] = (char *) "--check";
    argv[2] = NULL;

    (void) execve(program, argv, environ);

    (void) fprintf(stderr, "cannot run \"%s\": %s\n", program,
                   strerror(errno));
    (void) fflush(stderr);
    _exit(127);
}


static ngx_int_t
ngx_http_inference_check_read(ngx_http_inference_check_t *c, ngx_log_t *log)
{
    int            n;
    u_char         buf[4096];
    ssize_t        got;
    ngx_msec_t     end, now;
    struct pollfd  pfd;

    end = (ngx_msec_t) (ngx_time() * 1000) + NGX_HTTP_INFERENCE_CHECK_TIME;

    for ( ;; ) {
        ngx_time_update();
        now = (ngx_msec_t) (ngx_time() * 1000);

        pfd.fd = c->fd;
        pfd.events = POLLIN;

        n = now >= end ? 0 : poll(&pfd, 1, (int) (end - now));

        if (n == -1 && ngx_errno == NGX_EINTR) {
            continue;
        }

        if (n == 0) {
            ngx_log_error(NGX_LOG_WARN, log, 0,
                          "inference: the check of the models takes more than "
                          "%d s, it is ended",
                          NGX_HTTP_INFERENCE_CHECK_TIME / 1000);
            (void) kill(c->pid, SIGKILL);
            break;
        }

        got = n == -1 ? -1 : read(c->fd, buf, sizeof(buf));

        if (got == -1 && ngx_errno == NGX_EINTR) {
            continue;
        }

        if (got <= 0) {
            break;
        }

        ngx_http_inference_check_bytes(c, buf, (size_t) got, log);
    }

    if (c->len > 0) {
        ngx_http_inference_check_line(c, log);
    }

    (void) close(c->fd);

    return ngx_http_inference_check_end(c, log);
}


/* Splits the output into lines; a line that is too long is cut. */

static void
ngx_http_inference_check_bytes(ngx_http_inference_check_t *c, u_char *p,
    size_t n, ngx_log_t *log)
{
    size_t  i;

    for (i = 0; i < n; i++) {

        if (p[i] == LF) {
            ngx_http_inference_check_line(c, log);

        } else if (c->len < sizeof(c->line)) {
            c->line[c->len++] = p[i];
        }
    }
}


static void
ngx_http_inference_check_line(ngx_http_inference_check_t *c, ngx_log_t *log)
{
    ngx_str_t  line;

    line.len = c->len;
    line.data = c->line;
    c->len = 0;

    if (line.len > 7 && ngx_strncmp(line.data, "error: ", 7) == 0) {
        c->findings++;
        line.data += 7;
        line.len -= 7;

    } else if (line.len > 6 && ngx_strncmp(line.data, "warn: ", 6) == 0) {
        line.data += 6;
        line.len -= 6;
    }

    if (line.len > 0) {
        ngx_log_error(NGX_LOG_WARN, log, 0, "inference: %V", &line);
    }
}


static ngx_int_t
ngx_http_inference_check_end(ngx_http_inference_check_t *c, ngx_log_t *log)
{
    int        status;
    ngx_pid_t  pid;

    do {
        pid = waitpid(c->pid, &status, 0);
    } while (pid == -1 && ngx_errno == NGX_EINTR);

    if (pid != -1 && WIFEXITED(status) && WEXITSTATUS(status) <= 1) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "inference: the check of the models ended early "
                  "(status 0x%xd)", pid == -1 ? -1 : status);

    return NGX_ERROR;
}
