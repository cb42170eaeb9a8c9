/*
 * The core's environment: the one nginx was started with, and "inference_env"
 * on top.  nginx gives its own children almost no variables.  The values may be
 * secrets, so they are kept in memory files that only the supervisor reads.
 */

#include "ngx_module/ngx_http_inference_supervisor.h"


typedef struct {
    u_char  *data;
    size_t   len;
    size_t   size;
} ngx_http_inference_block_t;


static ngx_int_t ngx_http_inference_environment_fill(
    ngx_http_inference_block_t *block, ngx_array_t *overrides, ngx_log_t *log);
static ngx_int_t ngx_http_inference_environment_keep(
    ngx_http_inference_block_t *block, ngx_log_t *log);
static ngx_uint_t ngx_http_inference_environment_is_nginx(const char *var);
static ngx_uint_t ngx_http_inference_environment_overridden(const char *var,
    ngx_array_t *env);
static void ngx_http_inference_environment_wipe_start(void);
static void ngx_http_inference_environment_blank(ngx_buf_t *b,
    ngx_str_t *var);
static ngx_int_t ngx_http_inference_block_add(
    ngx_http_inference_block_t *block, const void *data, size_t len,
    ngx_log_t *log);
static void ngx_http_inference_block_free(ngx_http_inference_block_t *block);


/* environ at the master's start; workers overwrite its strings */
static char  **ngx_http_inference_start_environ;


/* Keeps environ as a block: strings with their NUL, and a final NUL. */

ngx_int_t
ngx_http_inference_environment_capture(ngx_log_t *log)
{
    char                        **var;
    ngx_int_t                     rc;
    ngx_http_inference_block_t    block;

    if (ngx_http_inference_kept(NGX_HTTP_INFERENCE_KEEP_START_ENV) != -1) {
        return NGX_OK;
    }

    ngx_memzero(&block, sizeof(ngx_http_inference_block_t));
    rc = NGX_OK;

    for (var = environ; *var != NULL && rc == NGX_OK; var++) {
        if (!ngx_http_inference_environment_is_nginx(*var)) {
            rc = ngx_http_inference_block_add(&block, *var,
                                              ngx_strlen(*var) + 1, log);
        }
    }

    if (rc == NGX_OK) {
        rc = ngx_http_inference_block_add(&block, "", 1, log);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_inference_keep_bytes(NGX_HTTP_INFERENCE_KEEP_START_ENV,
                                           "inference start environment",
                                           block.data, block.len, log);
    }

    ngx_http_inference_block_free(&block);

    return rc;
}


ngx_int_t
ngx_http_inference_environment_update(ngx_http_inference_main_conf_t *imcf,
    ngx_log_t *log)
{
    ngx_int_t                   rc;
    ngx_http_inference_block_t  block;

    if (ngx_http_inference_start_environ == NULL) {
        ngx_http_inference_start_environ = environ;
    }

    ngx_memzero(&block, sizeof(ngx_http_inference_block_t));

    rc = ngx_http_inference_environment_fill(&block, &imcf->env, log);

    if (rc == NGX_OK) {
        rc = ngx_http_inference_environment_keep(&block, log);
    }

    ngx_http_inference_block_free(&block);

    return rc;
}


/* Fills a block with the variables of nginx's start and the configuration's. */

static ngx_int_t
ngx_http_inference_environment_fill(ngx_http_inference_block_t *block,
    ngx_array_t *overrides, ngx_log_t *log)
{
    char        *var;
    size_t       len;
    u_char      *start;
    ngx_int_t    rc;
    ngx_str_t   *env;
    ngx_uint_t   i;

    start = ngx_http_inference_kept_bytes(NGX_HTTP_INFERENCE_KEEP_START_ENV,
                                          &len, log);
    if (start == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_OK;

    for (var = (char *) start; *var != '\0' && rc == NGX_OK;
         var += ngx_strlen(var) + 1)
    {
        if (!ngx_http_inference_environment_overridden(var, overrides)) {
            rc = ngx_http_inference_block_add(block, var, ngx_strlen(var) + 1,
                                              log);
        }
    }

    env = overrides->elts;

    for (i = 0; i < overrides->nelts && rc == NGX_OK; i++) {
        rc = ngx_http_inference_block_add(block, env[i].data, env[i].len + 1,
                                          log);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_inference_block_add(block, "", 1, log);
    }

    ngx_explicit_memzero(start, len);
    ngx_free(start);

    return rc == NGX_OK ? NGX_OK : NGX_ERROR;
}


/* Keeps a block.  NGX_DECLINED: the same block is kept already. */

static ngx_int_t
ngx_http_inference_environment_keep(ngx_http_inference_block_t *block,
    ngx_log_t *log)
{
    size_t      len;
    u_char     *now;
    ngx_int_t   rc;

    now = ngx_http_inference_kept_bytes(NGX_HTTP_INFERENCE_KEEP_CORE_ENV,
                                        &len, log);

    if (now != NULL && len == block->len
        && ngx_memcmp(now, block->data, len) == 0)
    {
        rc = NGX_DECLINED;

    } else {
        rc = ngx_http_inference_keep_bytes(NGX_HTTP_INFERENCE_KEEP_CORE_ENV,
                                           "inference core environment",
                                           block->data, block->len, log);
    }

    if (now != NULL) {
        ngx_explicit_memzero(now, len);
        ngx_free(now);
    }

    return rc;
}


char **
ngx_http_inference_environment(u_char **block, ngx_log_t *log)
{
    char        *var, **vars;
    size_t       len;
    ngx_uint_t   n;

    *block = ngx_http_inference_kept_bytes(NGX_HTTP_INFERENCE_KEEP_CORE_ENV,
                                           &len, log);
    if (*block == NULL) {
        return NULL;
    }

    n = 1;

    for (var = (char *) *block; *var != '\0'; var += ngx_strlen(var) + 1) {
        n++;
    }

    vars = ngx_alloc(n * sizeof(char *), log);
    if (vars == NULL) {
        ngx_free(*block);
        return NULL;
    }

    n = 0;

    for (var = (char *) *block; *var != '\0'; var += ngx_strlen(var) + 1) {
        vars[n++] = var;
    }

    vars[n] = NULL;

    return vars;
}


/* Overwrites the values in the directives' words, and in the text of the
   configuration, which nginx keeps in debug builds. */

void
ngx_http_inference_environment_wipe(ngx_cycle_t *cycle,
    ngx_http_inference_main_conf_t *imcf)
{
    ngx_str_t        *env;
    ngx_uint_t        i, j;
    ngx_conf_dump_t  *dump;

    ngx_http_inference_environment_wipe_start();

    env = imcf->env.elts;
    dump = cycle->config_dump.elts;

    for (i = 0; i < imcf->env.nelts; i++) {

        for (j = 0; j < cycle->config_dump.nelts; j++) {
            ngx_http_inference_environment_blank(dump[j].buffer, &env[i]);
        }

        ngx_explicit_memzero(env[i].data, env[i].len);
    }
}


/*
 * Overwrites the start environment.  nginx has copied it beyond the area of the
 * process title, and workers have a list of the few strings named by "env".
 */

static void
ngx_http_inference_environment_wipe_start(void)
{
    char  **var, **kept;

    if (ngx_http_inference_start_environ == environ) {
        return;
    }

    for (var = ngx_http_inference_start_environ; *var != NULL; var++) {

        for (kept = environ; *kept != NULL && *kept != *var; kept++) {
            /* void */
        }

        if (*kept == NULL) {
            ngx_explicit_memzero(*var, ngx_strlen(*var));
        }
    }
}


static void
ngx_http_inference_environment_blank(ngx_buf_t *b, ngx_str_t *var)
{
    u_char  *p;

    p = b->pos;

    for ( ;; ) {
        p = memmem(p, (size_t) (b->last - p), var->data, var->len);
        if (p == NULL) {
            return;
        }

        ngx_explicit_memzero(p, var->len);
        p += var->len;
    }
}


/* Whether nginx uses the variable to pass data to a new binary. */

static ngx_uint_t
ngx_http_inference_environment_is_nginx(const char *var)
{
    return ngx_strncmp(var, "NGINX=", 6) == 0
           || ngx_strncmp(var, NGX_HTTP_INFERENCE_VAR "=",
                          sizeof(NGX_HTTP_INFERENCE_VAR "=") - 1) == 0;
}


static ngx_uint_t
ngx_http_inference_environment_overridden(const char *var, ngx_array_t *env)
{
    size_t       len;
    ngx_str_t   *other;
    ngx_uint_t   i;

    len = strcspn(var, "=");
    other = env->elts;

    for (i = 0; i < env->nelts; i++) {
        if (other[i].len > len && other[i].data[len] == '='
            && ngx_strncmp(other[i].data, var, len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_inference_block_add(ngx_http_inference_block_t *block,
    const void *data, size_t len, ngx_log_t *log)
{
    size_t   size;
    u_char  *p;

    if (len > block->size - block->len) {
        size = (block->len + len) * 2;

        p = ngx_alloc(size, log);
        if (p == NULL) {
            return NGX_ERROR;
        }

        if (block->len > 0) {
            ngx_memcpy(p, block->data, block->len);
            ngx_explicit_memzero(block->data, block->len);
            ngx_free(block->data);
        }

        block->data = p;
        block->size = size;
    }

    ngx_memcpy(block->data + block->len, data, len);
    block->len += len;

    return NGX_OK;
}


static void
ngx_http_inference_block_free(ngx_http_inference_block_t *block)
{
    if (block->data != NULL) {
        ngx_explicit_memzero(block->data, block->len);
        ngx_free(block->data);
    }
}
