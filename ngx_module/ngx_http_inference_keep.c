/*
 * Descriptors that the master keeps.  They are created in init_module, which
 * runs before nginx becomes a daemon: no process is started and no lock is
 * taken here.
 */

#include "ngx_module/ngx_http_inference_supervisor.h"

#include "core/include/channel.h"
#include "core/wire/sockets.h"


#define NGX_HTTP_INFERENCE_LEASE_SIZE    4096
#define NGX_HTTP_INFERENCE_PAGE_SIZE     (1024 * 1024)

/* sparse file: only files uploaded by loads take memory */
#define NGX_HTTP_INFERENCE_JOURNAL_SIZE  (512 * 1024 * 1024)
#define NGX_HTTP_INFERENCE_LOG_BUFFER    (1024 * 1024)
#define NGX_HTTP_INFERENCE_OUTPUT_WAIT   1      /* s */


static ngx_int_t ngx_http_inference_keep_new(ngx_log_t *log);
static ngx_int_t ngx_http_inference_keep_log_sockets(ngx_log_t *log);
static void ngx_http_inference_keep_big_buffer(ngx_fd_t fd);
static ngx_int_t ngx_http_inference_keep_inherit(ngx_log_t *log);
static ngx_uint_t ngx_http_inference_keep_parse(const char *value,
    ngx_fd_t *fds);
static ngx_int_t ngx_http_inference_keep_check(ngx_fd_t *fds, ngx_log_t *log);
static void ngx_http_inference_keep_drop(void *data);
static void ngx_http_inference_keep_close(void);
static void ngx_http_inference_keep_cloexec(ngx_fd_t fd, ngx_uint_t on);
static ngx_int_t ngx_http_inference_keep_error(inf_err_t *err,
    const char *what, ngx_log_t *log);


static ngx_fd_t    ngx_http_inference_fds[NGX_HTTP_INFERENCE_KEPT];
static ngx_uint_t  ngx_http_inference_keepers;


ngx_int_t
ngx_http_inference_keep(ngx_cycle_t *cycle)
{
    ngx_int_t            rc;
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(cycle->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_inference_keepers == 0) {
        rc = ngx_http_inference_keep_inherit(cycle->log);

        if (rc == NGX_DECLINED) {
            rc = ngx_http_inference_keep_new(cycle->log);
        }

        if (rc != NGX_OK) {
            ngx_http_inference_keep_close();
            return NGX_ERROR;
        }
    }

    ngx_http_inference_keepers++;
    cln->handler = ngx_http_inference_keep_drop;

    return NGX_OK;
}


void
ngx_http_inference_keep_disown(ngx_cycle_t *cycle)
{
    if (ngx_http_inference_keepers == 0
        && ngx_http_inference_keep_inherit(cycle->log) == NGX_OK)
    {
        ngx_http_inference_keep_close();
    }
}


ngx_int_t
ngx_http_inference_keep_pass_on(ngx_cycle_t *cycle)
{
    u_char           *p;
    ngx_str_t        *var;
    ngx_uint_t        i;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    p = ngx_pnalloc(cycle->pool, sizeof(NGX_HTTP_INFERENCE_VAR "=")
                    + NGX_HTTP_INFERENCE_KEPT * (NGX_INT32_LEN + 1));
    if (p == NULL) {
        return NGX_ERROR;
    }

    var = ngx_array_push(&ccf->env);
    if (var == NULL) {
        return NGX_ERROR;
    }

    /* nginx parses "name=value" by a '=' behind the name */

    var->data = p;
    var->len = sizeof(NGX_HTTP_INFERENCE_VAR) - 1;

    p = ngx_sprintf(p, NGX_HTTP_INFERENCE_VAR "=");

    for (i = 0; i < NGX_HTTP_INFERENCE_KEPT; i++) {
        p = ngx_sprintf(p, i > 0 ? ",%d" : "%d", ngx_http_inference_fds[i]);
    }

    *p = '\0';

    return NGX_OK;
}


void
ngx_http_inference_keep_only(ngx_uint_t mask)
{
    ngx_uint_t  i;

    if (ngx_http_inference_keepers == 0) {
        return;
    }

    /* the core asks the configure socket, when the registration socket ends,
       whether nginx has ended, too */

    for (i = NGX_HTTP_INFERENCE_KEPT; i-- > 0; /* void */) {

        if (mask & ((ngx_uint_t) 1 << i)) {
            ngx_http_inference_keep_cloexec(ngx_http_inference_fds[i], 1);

        } else {
            inf_fds_close(&ngx_http_inference_fds[i], 1);
        }
    }
}


ngx_fd_t
ngx_http_inference_kept(ngx_http_inference_kept_e what)
{
    return ngx_http_inference_keepers > 0 ? ngx_http_inference_fds[what] : -1;
}


ngx_int_t
ngx_http_inference_keep_bytes(ngx_http_inference_kept_e what,
    const char *name, const void *data, size_t len, ngx_log_t *log)
{
    int         fd;
    inf_err_t  *err;

    err = inf_memfd_sealed(name, data, len, &fd);
    if (err != NULL) {
        return ngx_http_inference_keep_error(err, name, log);
    }

    ngx_http_inference_keep_cloexec(fd, 0);

    inf_fds_close(&ngx_http_inference_fds[what], 1);
    ngx_http_inference_fds[what] = fd;

    return NGX_OK;
}


u_char *
ngx_http_inference_kept_bytes(ngx_http_inference_kept_e what, size_t *len,
    ngx_log_t *log)
{
    u_char           *data;
    ngx_fd_t          fd;
    ngx_file_info_t   fi;

    fd = ngx_http_inference_fds[what];

    if (fd == -1 || ngx_fd_info(fd, &fi) == NGX_FILE_ERROR) {
        return NULL;
    }

    *len = (size_t) ngx_file_size(&fi);

    data = ngx_alloc(*len + 1, log);
    if (data == NULL) {
        return NULL;
    }

    if (pread(fd, data, *len, 0) != (ssize_t) *len) {
        ngx_free(data);
        return NULL;
    }

    data[*len] = '\0';

    return data;
}


/*
 * Stores the core's pid in the lease's file, to which workers have no
 * descriptor; they can write to the zone of the counters.
 */

void
ngx_http_inference_keep_core(ngx_pid_t pid, ngx_log_t *log)
{
    ngx_fd_t  lease;

    lease = ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_LEASE);

    if (pwrite(lease, &pid, sizeof(ngx_pid_t), 0) != sizeof(ngx_pid_t)) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "inference: cannot keep the pid of core %P", pid);
    }
}


ngx_pid_t
ngx_http_inference_kept_core(ngx_log_t *log)
{
    ngx_fd_t   lease;
    ngx_pid_t  pid;

    lease = ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_LEASE);

    if (pread(lease, &pid, sizeof(ngx_pid_t), 0) != sizeof(ngx_pid_t)) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "inference: cannot read the core's pid");
        return 0;
    }

    return pid;
}


ngx_uint_t
ngx_http_inference_kept_core_leaves(ngx_pid_t pid, ngx_log_t *log)
{
    ngx_fd_t  lease;
    uint64_t  leaves;

    lease = ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_LEASE);

    if (pread(lease, &leaves, sizeof(uint64_t), INF_LEAVES_OFFSET)
        != sizeof(uint64_t))
    {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "inference: cannot read whether core %P leaves", pid);
        return 0;
    }

    return leaves == (uint64_t) pid;
}


ngx_int_t
ngx_http_inference_kept_program(int *pid, unsigned long long *device,
    unsigned long long *inode, char *build, ngx_log_t *log)
{
    int        n;
    char       line[INF_PROGRAM_SIZE];
    ngx_fd_t   lease;
    ngx_pid_t  core;

    n = 0;
    core = ngx_http_inference_kept_core(log);
    lease = ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_LEASE);

    if (core == 0
        || pread(lease, line, sizeof(line), INF_PROGRAM_OFFSET)
           != sizeof(line))
    {
        return NGX_DECLINED;
    }

    line[sizeof(line) - 1] = '\0';

    if (sscanf(line, "%d %llu %llu %n", pid, device, inode, &n) != 3
        || *pid != core)
    {
        return NGX_DECLINED;
    }

    (void) ngx_cpystrn((u_char *) build, (u_char *) line + n,
                       INF_PROGRAM_SIZE);

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_keep_new(ngx_log_t *log)
{
    ngx_fd_t    *fds;
    ngx_uint_t   i;
    inf_err_t   *err;

    fds = ngx_http_inference_fds;

    for (i = 0; i < NGX_HTTP_INFERENCE_KEPT; i++) {
        fds[i] = -1;
    }

    err = inf_socket_pair(&fds[NGX_HTTP_INFERENCE_KEEP_REGISTRATION]);
    if (err != NULL) {
        return ngx_http_inference_keep_error(err, "registration socket", log);
    }

    err = inf_socket_pair(&fds[NGX_HTTP_INFERENCE_KEEP_CONFIGURE]);
    if (err != NULL) {
        return ngx_http_inference_keep_error(err, "configuration socket", log);
    }

    err = inf_memfd_new("inference lease", NGX_HTTP_INFERENCE_LEASE_SIZE,
                        &fds[NGX_HTTP_INFERENCE_KEEP_LEASE]);
    if (err != NULL) {
        return ngx_http_inference_keep_error(err, "lease", log);
    }

    err = inf_memfd_new("inference journal", NGX_HTTP_INFERENCE_JOURNAL_SIZE,
                        &fds[NGX_HTTP_INFERENCE_KEEP_JOURNAL]);
    if (err != NULL) {
        return ngx_http_inference_keep_error(err, "journal", log);
    }

    err = inf_memfd_new("inference crash page", NGX_HTTP_INFERENCE_PAGE_SIZE,
                        &fds[NGX_HTTP_INFERENCE_KEEP_CRASH_PAGE]);
    if (err != NULL) {
        return ngx_http_inference_keep_error(err, "crash page", log);
    }

    if (ngx_http_inference_keep_log_sockets(log) != NGX_OK) {
        return NGX_ERROR;
    }

    for (i = 0; i < NGX_HTTP_INFERENCE_KEPT; i++) {
        ngx_http_inference_keep_cloexec(fds[i], 0);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_keep_log_sockets(ngx_log_t *log)
{
    ngx_fd_t        *fds;
    inf_err_t       *err;
    struct timeval   tv;

    fds = ngx_http_inference_fds;

    err = inf_socket_pair(&fds[NGX_HTTP_INFERENCE_KEEP_RECORDS]);
    if (err != NULL) {
        return ngx_http_inference_keep_error(err, "log socket", log);
    }

    if (socketpair(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0,
                   &fds[NGX_HTTP_INFERENCE_KEEP_OUTPUT])
        == -1)
    {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "inference: socketpair() for the core's output failed");
        return NGX_ERROR;
    }

    /* programs expect a blocking stdout, but must not block for ever */

    tv.tv_sec = NGX_HTTP_INFERENCE_OUTPUT_WAIT;
    tv.tv_usec = 0;

    (void) setsockopt(fds[NGX_HTTP_INFERENCE_KEEP_OUTPUT_CORE], SOL_SOCKET,
                      SO_SNDTIMEO, &tv, sizeof(tv));

    ngx_http_inference_keep_big_buffer(
        fds[NGX_HTTP_INFERENCE_KEEP_RECORDS_CORE]);
    ngx_http_inference_keep_big_buffer(
        fds[NGX_HTTP_INFERENCE_KEEP_OUTPUT_CORE]);

    return NGX_OK;
}


static void
ngx_http_inference_keep_big_buffer(ngx_fd_t fd)
{
    int  size;

    size = NGX_HTTP_INFERENCE_LOG_BUFFER;

    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) == -1)
    {
        (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    }
}


/*
 * NGX_OK: inherited the descriptors of an old binary.  NGX_DECLINED: none, or
 * not usable by this module.
 */

static ngx_int_t
ngx_http_inference_keep_inherit(ngx_log_t *log)
{
    char        *value;
    ngx_fd_t     fds[NGX_HTTP_INFERENCE_KEPT];
    ngx_uint_t   n;

    value = getenv(NGX_HTTP_INFERENCE_VAR);
    if (value == NULL) {
        return NGX_DECLINED;
    }

    n = ngx_http_inference_keep_parse(value, fds);

    /* removed, as the numbers may later belong to other files */

    (void) unsetenv(NGX_HTTP_INFERENCE_VAR);

    if (n == NGX_HTTP_INFERENCE_KEPT
        && ngx_http_inference_keep_check(fds, log) == NGX_OK)
    {
        ngx_memcpy(ngx_http_inference_fds, fds, sizeof(fds));
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_WARN, log, 0,
                  "inference: the descriptors of the old binary are of no "
                  "use, a new core is started");

    inf_fds_close(fds, n);

    return NGX_DECLINED;
}


/* The number of open descriptors parsed; stops at the first other one. */

static ngx_uint_t
ngx_http_inference_keep_parse(const char *value, ngx_fd_t *fds)
{
    char        *end;
    long         fd;
    ngx_uint_t   n;

    for (n = 0; n < NGX_HTTP_INFERENCE_KEPT; n++) {
        fd = strtol(value, &end, 10);

        if (end == value || fd <= STDERR_FILENO || fd > NGX_MAX_INT32_VALUE
            || fcntl((int) fd, F_GETFD) == -1)
        {
            return n;
        }

        fds[n] = (ngx_fd_t) fd;

        if (*end != ',') {
            return *end == '\0' ? n + 1 : n;
        }

        value = end + 1;
    }

    return n;
}


static ngx_int_t
ngx_http_inference_keep_check(ngx_fd_t *fds, ngx_log_t *log)
{
    inf_err_t  *err;

    err = inf_socket_check(fds[NGX_HTTP_INFERENCE_KEEP_REGISTRATION]);

    if (err == NULL) {
        err = inf_socket_check(fds[NGX_HTTP_INFERENCE_KEEP_REGISTRATION_CORE]);
    }

    if (err == NULL) {
        err = inf_socket_check(fds[NGX_HTTP_INFERENCE_KEEP_CONFIGURE]);
    }

    if (err == NULL) {
        err = inf_socket_check(fds[NGX_HTTP_INFERENCE_KEEP_CONFIGURE_CORE]);
    }

    if (err == NULL) {
        err = inf_memfd_check_sealed(fds[NGX_HTTP_INFERENCE_KEEP_CONFIG]);
    }

    if (err == NULL) {
        err = inf_socket_check(fds[NGX_HTTP_INFERENCE_KEEP_RECORDS]);
    }

    if (err == NULL) {
        err = inf_memfd_check(fds[NGX_HTTP_INFERENCE_KEEP_LEASE],
                              NGX_HTTP_INFERENCE_LEASE_SIZE);
    }

    if (err == NULL) {
        err = inf_memfd_check(fds[NGX_HTTP_INFERENCE_KEEP_CRASH_PAGE],
                              NGX_HTTP_INFERENCE_PAGE_SIZE);
    }

    if (err == NULL) {
        return NGX_OK;
    }

    return ngx_http_inference_keep_error(err, "what was passed on", log);
}


static void
ngx_http_inference_keep_drop(void *data)
{
    if (--ngx_http_inference_keepers == 0) {
        ngx_http_inference_keep_close();
    }
}


static void
ngx_http_inference_keep_close(void)
{
    inf_fds_close(ngx_http_inference_fds, NGX_HTTP_INFERENCE_KEPT);
}


static void
ngx_http_inference_keep_cloexec(ngx_fd_t fd, ngx_uint_t on)
{
    if (fd != -1) {
        (void) fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0);
    }
}


static ngx_int_t
ngx_http_inference_keep_error(inf_err_t *err, const char *what,
    ngx_log_t *log)
{
    ngx_log_error(NGX_LOG_ALERT, log, 0, "inference: %s: %s", what,
                  inf_err_msg(err));
    inf_err_free(err);

    return NGX_ERROR;
}
