/*
 * The directives of locations, and their inheritance by nested blocks.
 */

#include "ngx_module/ngx_http_inference_directives.h"

#include "core/proto/grpc.h"

#include <ctype.h>


typedef enum {
    ngx_http_inference_part_served,
    ngx_http_inference_part_rejected
} ngx_http_inference_part_state_e;


typedef struct {
    ngx_str_t                        name;
    ngx_uint_t                       mask;
    ngx_http_inference_part_state_e  state;
} ngx_http_inference_part_t;


/* defaults of inference_min_body_rate */
#define NGX_HTTP_INFERENCE_MIN_RATE       1024
#define NGX_HTTP_INFERENCE_MIN_RATE_OVER  30000


static void ngx_http_inference_set_name(ngx_conf_t *cf,
    ngx_http_inference_loc_conf_t *ilcf);
static void ngx_http_inference_set_prefix(
    ngx_http_inference_loc_conf_t *ilcf);
static ngx_int_t ngx_http_inference_add_part(ngx_conf_t *cf, ngx_str_t *name,
    ngx_uint_t *parts);
static ngx_uint_t ngx_http_inference_names_itself(ngx_str_t *value);
static ngx_int_t ngx_http_inference_model_version(ngx_conf_t *cf,
    ngx_str_t *value, ngx_http_complex_value_t **version);
static ngx_http_complex_value_t *ngx_http_inference_complex_value(
    ngx_conf_t *cf, ngx_str_t *value);
static char *ngx_http_inference_install(ngx_conf_t *cf,
    ngx_http_inference_loc_conf_t *ilcf, ngx_command_t *cmd);
static ngx_int_t ngx_http_inference_note_server(ngx_conf_t *cf);
static void ngx_http_inference_override_defaults(
    ngx_http_core_loc_conf_t *clcf);
static void ngx_http_inference_override_connection(
    ngx_http_core_loc_conf_t *clcf);


static ngx_http_inference_part_t  ngx_http_inference_part_names[] = {

    { ngx_string("health"), NGX_HTTP_INFERENCE_HEALTH,
      ngx_http_inference_part_served },

    { ngx_string("metadata"), NGX_HTTP_INFERENCE_METADATA,
      ngx_http_inference_part_served },

    { ngx_string("config"), NGX_HTTP_INFERENCE_CONFIG,
      ngx_http_inference_part_served },

    { ngx_string("infer"), NGX_HTTP_INFERENCE_INFER,
      ngx_http_inference_part_served },

    { ngx_string("generate"), NGX_HTTP_INFERENCE_GENERATE,
      ngx_http_inference_part_served },

    { ngx_string("statistics"), NGX_HTTP_INFERENCE_STATISTICS,
      ngx_http_inference_part_served },

    { ngx_string("repository"), NGX_HTTP_INFERENCE_REPOSITORY,
      ngx_http_inference_part_served },

    { ngx_string("trace"), NGX_HTTP_INFERENCE_TRACE,
      ngx_http_inference_part_served },

    { ngx_string("logging"), NGX_HTTP_INFERENCE_LOGGING,
      ngx_http_inference_part_served },

    { ngx_string("shared_memory"), NGX_HTTP_INFERENCE_SHARED_MEMORY,
      ngx_http_inference_part_served },

    { ngx_string("metrics"), NGX_HTTP_INFERENCE_METRICS,
      ngx_http_inference_part_served },

    { ngx_string("openai"), NGX_HTTP_INFERENCE_OPENAI,
      ngx_http_inference_part_rejected },

    { ngx_string("status"), NGX_HTTP_INFERENCE_STATUS,
      ngx_http_inference_part_served },

    { ngx_string("archives"), NGX_HTTP_INFERENCE_ARCHIVES,
      ngx_http_inference_part_served },

    { ngx_string("all"), NGX_HTTP_INFERENCE_ALL,
      ngx_http_inference_part_served },

    { ngx_string("grpc"), NGX_HTTP_INFERENCE_GRPC,
      ngx_http_inference_part_served },

    { ngx_null_string, 0, ngx_http_inference_part_rejected }
};


char *
ngx_http_inference_parts(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_loc_conf_t *ilcf = conf;

    ngx_str_t                       *value;
    ngx_uint_t                       i;
    ngx_http_inference_main_conf_t  *imcf;

    if (ilcf->parts != 0) {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        if (ngx_http_inference_add_part(cf, &value[i], &ilcf->parts)
            != NGX_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    if (ilcf->parts == NGX_HTTP_INFERENCE_GRPC) {
        return "needs a part of the API beside grpc, such as "
               "\"inference infer grpc\"";
    }

    /* if no location lists these parts, the core has neither regions nor
       archives for a worker that asks all the same */
    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_inference_module);
    if (ilcf->parts & NGX_HTTP_INFERENCE_SHARED_MEMORY) {
        imcf->config.client_shared_memory = 1;
    }
    if (ilcf->parts & NGX_HTTP_INFERENCE_ARCHIVES) {
        imcf->config.client_archives = 1;
    }

    if (ilcf->parts == NGX_HTTP_INFERENCE_METRICS) {
        ngx_str_set(&ilcf->alone, "/metrics");

    } else if (ilcf->parts == NGX_HTTP_INFERENCE_STATUS) {
        ngx_str_set(&ilcf->alone, "/status");
    }

    ngx_http_inference_set_name(cf, ilcf);

    return ngx_http_inference_install(cf, ilcf, cmd);
}


static void
ngx_http_inference_set_name(ngx_conf_t *cf,
    ngx_http_inference_loc_conf_t *ilcf)
{
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

#if (NGX_PCRE)
    if (clcf->regex == NULL && !clcf->named) {
#else
    if (!clcf->named) {
#endif
        ilcf->name = clcf->name;

        if (ilcf->name.len > 0
            && ilcf->name.data[ilcf->name.len - 1] == '/')
        {
            ilcf->name.len--;
        }

        ngx_http_inference_set_prefix(ilcf);
    }
}


/*
 * Sets the prefix: the location's name up to the first API path in it.  If
 * "/v2" were a prefix, "/v2/v2/repository/index" would bypass a location that
 * denies "/v2/repository".
 */

static void
ngx_http_inference_set_prefix(ngx_http_inference_loc_conf_t *ilcf)
{
    u_char      *p, *last, *next;
    ngx_uint_t   i;

    static const ngx_str_t  own[] = {
        ngx_string("/v2"),
        ngx_string("/metrics"),
        ngx_string("/status"),
        ngx_string("/inference.GRPCInferenceService"),
        ngx_string("/grpc.health.v1.Health")
    };

    ilcf->prefix = ilcf->name;

    last = ilcf->name.data + ilcf->name.len;

    for (p = ilcf->name.data; p < last; p = next) {

        next = ngx_strlchr(p + 1, last, '/');

        if (next == NULL) {
            next = last;
        }

        for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {

            if ((size_t) (next - p) == own[i].len
                && ngx_strncmp(p, own[i].data, own[i].len) == 0)
            {
                ilcf->prefix.len = p - ilcf->name.data;
                return;
            }
        }
    }
}


static ngx_int_t
ngx_http_inference_add_part(ngx_conf_t *cf, ngx_str_t *name,
    ngx_uint_t *parts)
{
    u_char                     *p, list[256];
    ngx_http_inference_part_t  *part;

    for (part = ngx_http_inference_part_names; part->name.len > 0; part++) {

        if (part->name.len != name->len
            || ngx_strncmp(part->name.data, name->data, name->len) != 0)
        {
            continue;
        }

        switch (part->state) {

        case ngx_http_inference_part_rejected:
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"inference %V\" is not supported by this "
                               "version", name);
            return NGX_ERROR;

        case ngx_http_inference_part_served:
            break;
        }

        if (*parts != 0 && (*parts & part->mask) == part->mask) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" is named twice in \"inference\"", name);
            return NGX_ERROR;
        }

        *parts |= part->mask;
        return NGX_OK;
    }

    p = list;

    for (part = ngx_http_inference_part_names; part->name.len > 0; part++) {
        if (part->state == ngx_http_inference_part_served) {
            p = ngx_slprintf(p, list + sizeof(list), " %V", &part->name);
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "unknown part \"%V\" in \"inference\"; there are:%*s",
                       name, (size_t) (p - list), list);
    return NGX_ERROR;
}


char *
ngx_http_inference_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_inference_loc_conf_t *ilcf = conf;

    ngx_str_t                            *value, *verb, infer;
    ngx_uint_t                            nelts;
    const ngx_http_inference_endpoint_t  *endpoint;

    if (ilcf->model != NULL) {
        return "is duplicate";
    }

    value = cf->args->elts;
    nelts = cf->args->nelts;

    if (value[1].len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the model's name in \"inference_model\" is empty");
        return NGX_CONF_ERROR;
    }

    if (ngx_http_inference_names_itself(&value[1])) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_model %V\" names itself: the variable "
                           "has what this directive says", &value[1]);
        return NGX_CONF_ERROR;
    }

    ngx_str_set(&infer, "infer");

    ilcf->endpoint = ngx_http_inference_model_endpoint(&infer);

    if (nelts > 2) {
        verb = &value[nelts - 1];
        endpoint = ngx_http_inference_model_endpoint(verb);

        if (endpoint) {
            ilcf->endpoint = endpoint;
            nelts--;

        } else if (nelts == 4) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown \"%V\" in \"inference_model\": after "
                               "NAME and VERSION it takes infer, generate or "
                               "generate_stream", verb);
            return NGX_CONF_ERROR;
        }
    }

    if (nelts == 3
        && ngx_http_inference_model_version(cf, &value[2], &ilcf->version)
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    ilcf->model = ngx_http_inference_complex_value(cf, &value[1]);
    if (ilcf->model == NULL
        || ngx_http_inference_name_model(cf, &value[1],
                                         nelts == 3 ? &value[2] : NULL, 0)
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return ngx_http_inference_install(cf, ilcf, cmd);
}


/* Whether value uses $inference_model, in either form. */

static ngx_uint_t
ngx_http_inference_names_itself(ngx_str_t *value)
{
    u_char  *p, *end, *last;

    static const ngx_str_t  name = ngx_string("inference_model");

    last = value->data + value->len;

    for (p = value->data; p < last; p++) {

        if (*p != '$') {
            continue;
        }

        p += (p + 1 < last && p[1] == '{');
        end = p + 1 + name.len;

        if (end <= last
            && ngx_strncmp(p + 1, name.data, name.len) == 0
            && (end == last || (*end != '_' && !isalnum(*end))))
        {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_inference_model_version(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_complex_value_t **version)
{
    ngx_int_t  n;

    if (ngx_http_script_variables_count(value) == 0) {
        n = ngx_atoi(value->data, value->len);

        if (n == NGX_ERROR || n == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid \"%V\" in \"inference_model\": after "
                               "NAME comes VERSION, a positive number, or "
                               "infer, generate or generate_stream", value);
            return NGX_ERROR;
        }
    }

    *version = ngx_http_inference_complex_value(cf, value);

    return *version != NULL ? NGX_OK : NGX_ERROR;
}


static ngx_http_complex_value_t *
ngx_http_inference_complex_value(ngx_conf_t *cf, ngx_str_t *value)
{
    ngx_http_complex_value_t          *cv;
    ngx_http_compile_complex_value_t   ccv;

    cv = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
    if (cv == NULL) {
        return NULL;
    }

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = value;
    ccv.complex_value = cv;

    return ngx_http_compile_complex_value(&ccv) == NGX_OK ? cv : NULL;
}


char *
ngx_http_inference_tries(ngx_conf_t *cf, void *post, void *data)
{
    ngx_int_t *tries = data;

    if (*tries < 1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference_tries\" takes a number from 1, "
                           "not \"%i\"", *tries);
        return NGX_CONF_ERROR;
    }

    return ngx_http_inference_note_setting(cf, post, data);
}


/* The media type, and what stands between it and the length. */

char *
ngx_http_inference_binary_type_directive(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_inference_loc_conf_t *ilcf = conf;

    u_char     *p;
    ngx_str_t  *value, *type;

    static const ngx_str_t  size = ngx_string(";json-header-size=");

    value = cf->args->elts;
    type = &ilcf->binary_type;

    if (type->data) {
        return "is duplicate";
    }

    (void) ngx_http_inference_note_setting(cf, NULL, NULL);

    if (cf->args->nelts == 3 && ngx_strcmp(value[2].data, "requests") != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\" of "
                           "\"inference_binary_type\": it takes requests",
                           &value[2]);
        return NGX_CONF_ERROR;
    }

    ilcf->binary_reply = (cf->args->nelts == 2);

    if (value[1].len == 0) {
        ngx_str_set(type, "");
        ilcf->binary_reply = 0;
        return NGX_CONF_OK;
    }

    p = ngx_pnalloc(cf->pool, value[1].len + size.len);
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }

    type->data = p;
    type->len = value[1].len + size.len;

    p = ngx_cpymem(p, value[1].data, value[1].len);
    ngx_memcpy(p, size.data, size.len);

    return NGX_CONF_OK;
}


char *
ngx_http_inference_min_body_rate(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_inference_loc_conf_t *ilcf = conf;

    ngx_int_t                   n;
    ngx_str_t                  *value, over;
    ngx_http_inference_rate_t  *rate;

    rate = &ilcf->min_rate;

    if (rate->size != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    (void) ngx_http_inference_note_setting(cf, NULL, NULL);

    value = cf->args->elts;

    rate->size = ngx_parse_size(&value[1]);

    if (rate->size == (size_t) NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"%V\" in \"inference_min_body_rate\": "
                           "it takes bytes per second", &value[1]);
        return NGX_CONF_ERROR;
    }

    rate->over = NGX_HTTP_INFERENCE_MIN_RATE_OVER;

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    n = ngx_http_inference_option(&value[2], "over=", &over) == NGX_OK
        ? ngx_parse_time(&over, 0) : NGX_ERROR;

    if (n == NGX_ERROR || n == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\" of "
                           "\"inference_min_body_rate\": it takes over=TIME",
                           &value[2]);
        return NGX_CONF_ERROR;
    }

    rate->over = (ngx_msec_t) n;

    return NGX_CONF_OK;
}


static char *
ngx_http_inference_install(ngx_conf_t *cf,
    ngx_http_inference_loc_conf_t *ilcf, ngx_command_t *cmd)
{
    ngx_http_core_loc_conf_t        *clcf;
    ngx_http_inference_main_conf_t  *imcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->handler == ngx_http_inference_handler) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"inference\" and \"inference_model\" in one "
                           "location");
        return NGX_CONF_ERROR;
    }

    if (clcf->handler != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" in a location that something else answers "
                           "already", &cmd->name);
        return NGX_CONF_ERROR;
    }

    clcf->handler = ngx_http_inference_handler;

    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_inference_module);
    imcf->used = 1;

    ngx_http_inference_note_line(cf, &ilcf->line);
    ngx_http_inference_note_line(cf, &imcf->serving);

    return NGX_CONF_OK;
}


void *
ngx_http_inference_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_inference_loc_conf_t));
    if (ilcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     ilcf->parts = 0;
     *     ilcf->name = { 0, NULL };
     *     ilcf->prefix = { 0, NULL };
     *     ilcf->alone = { 0, NULL };
     *     ilcf->model = NULL;
     *     ilcf->version = NULL;
     *     ilcf->line = { NULL, 0 };
     *     ilcf->setting = { 0, NULL };
     *     ilcf->setting_line = { NULL, 0 };
     *     ilcf->pages = NULL;
     *     ilcf->binary_type = { 0, NULL };
     */

    ilcf->timeout = NGX_CONF_UNSET_MSEC;
    ilcf->tries = NGX_CONF_UNSET_UINT;
    ilcf->errors = NGX_CONF_UNSET_UINT;
    ilcf->grpc_compression = NGX_CONF_UNSET_UINT;
    ilcf->forward = NGX_CONF_UNSET_PTR;
    ilcf->deflate = NGX_CONF_UNSET;
    ilcf->binary_reply = NGX_CONF_UNSET;
    ilcf->peek = NGX_CONF_UNSET;
    ilcf->intercept = NGX_CONF_UNSET;
    ilcf->max_body = NGX_CONF_UNSET;
    ilcf->min_rate.size = NGX_CONF_UNSET_SIZE;
    ilcf->min_rate.over = NGX_CONF_UNSET_MSEC;

    return ilcf;
}


char *
ngx_http_inference_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_inference_loc_conf_t *prev = parent;
    ngx_http_inference_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t  *clcf;

    if (conf->line.file && conf->peek == 1) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"inference_peek\" beside \"%s\" in %s:%ui: it is "
                      "for locations of other handlers, this one has the "
                      "variables anyway",
                      conf->model ? "inference_model" : "inference",
                      conf->line.file, conf->line.number);
        return NGX_CONF_ERROR;
    }

    ngx_http_inference_warn_idle(cf, prev, conf);

    ngx_conf_merge_msec_value(conf->timeout, prev->timeout, 0);
    ngx_conf_merge_uint_value(conf->tries, prev->tries, 3);
    ngx_conf_merge_uint_value(conf->grpc_compression, prev->grpc_compression,
                              INF_GRPC_LEVEL_NONE);
    ngx_conf_merge_uint_value(conf->errors, prev->errors,
                              NGX_HTTP_INFERENCE_ERRORS_TRITON);
    ngx_conf_merge_value(conf->deflate, prev->deflate, 0);
    ngx_conf_merge_value(conf->binary_reply, prev->binary_reply, 0);
    ngx_conf_merge_str_value(conf->binary_type, prev->binary_type, "");
    ngx_conf_merge_value(conf->peek, prev->peek, 0);
    ngx_conf_merge_value(conf->intercept, prev->intercept, 0);
    ngx_conf_merge_ptr_value(conf->forward, prev->forward, NULL);
    ngx_conf_merge_off_value(conf->max_body, prev->max_body, NGX_CONF_UNSET);
    ngx_conf_merge_size_value(conf->min_rate.size, prev->min_rate.size,
                              NGX_HTTP_INFERENCE_MIN_RATE);
    ngx_conf_merge_msec_value(conf->min_rate.over, prev->min_rate.over,
                              NGX_HTTP_INFERENCE_MIN_RATE_OVER);

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (conf->line.file && clcf->handler != ngx_http_inference_handler) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%s\" in a location that something behind it "
                      "answers in %s:%ui",
                      conf->model ? "inference_model" : "inference",
                      conf->line.file, conf->line.number);
        return NGX_CONF_ERROR;
    }

    /* "if" and "limit_except" blocks use the handler of the enclosing
       location */

    if ((clcf->noname || clcf->lmt_excpt)
        && !ngx_http_inference_is_served(conf))
    {
        conf->parts = prev->parts;
        conf->name = prev->name;
        conf->prefix = prev->prefix;
        conf->alone = prev->alone;
        conf->model = prev->model;
        conf->version = prev->version;
        conf->endpoint = prev->endpoint;
        conf->upstream = prev->upstream;

        if (clcf->lmt_excpt && clcf->handler == NULL
            && ngx_http_inference_is_served(conf))
        {
            clcf->handler = ngx_http_inference_handler;
        }
    }

    if (conf->upstream
        && ngx_http_inference_find_upstream(cf, conf) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_inference_is_served(conf)) {
        ngx_http_inference_override_defaults(clcf);

        if (ngx_http_inference_note_server(cf) != NGX_OK) {
            return NGX_CONF_ERROR;
        }

    } else if (clcf->noname || clcf->lmt_excpt) {
        conf->name = prev->name;
        conf->prefix = prev->prefix;

    } else if (conf->peek) {
        ngx_http_inference_set_name(cf, conf);
    }

    return NGX_CONF_OK;
}


/* Lists the server of cf; its locations may still inherit settings. */

static ngx_int_t
ngx_http_inference_note_server(ngx_conf_t *cf)
{
    ngx_http_core_loc_conf_t        *server, **last;
    ngx_http_core_srv_conf_t        *cscf;
    ngx_http_inference_main_conf_t  *imcf;

    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_inference_module);
    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);

    server = cscf->ctx->loc_conf[ngx_http_core_module.ctx_index];
    last = imcf->servers.elts;

    if (imcf->servers.nelts && last[imcf->servers.nelts - 1] == server) {
        return NGX_OK;
    }

    last = ngx_array_push(&imcf->servers);
    if (last == NULL) {
        return NGX_ERROR;
    }

    *last = server;

    return NGX_OK;
}


/* Changes defaults of servers with inferences: a connection of HTTP/2 uses the
   values of its server, not of its locations. */

void
ngx_http_inference_override_connections(ngx_conf_t *cf)
{
    ngx_uint_t                       i;
    ngx_http_core_loc_conf_t       **servers;
    ngx_http_inference_main_conf_t  *imcf;

    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_inference_module);
    servers = imcf->servers.elts;

    for (i = 0; i < imcf->servers.nelts; i++) {
        ngx_http_inference_override_connection(servers[i]);
    }
}


/*
 * Replaces a value that equals nginx's default, as if it were not set; any
 * other value is the user's.
 */

static void
ngx_http_inference_override_defaults(ngx_http_core_loc_conf_t *clcf)
{
    if (clcf->client_max_body_size == 1 * 1024 * 1024) {
        clcf->client_max_body_size = 0;
    }

    if (clcf->client_body_timeout == 60000) {
        clcf->client_body_timeout = 300000;
    }

    ngx_http_inference_override_connection(clcf);
}


static void
ngx_http_inference_override_connection(ngx_http_core_loc_conf_t *clcf)
{
    if (clcf->send_timeout == 60000) {
        clcf->send_timeout = 300000;
    }

    if (clcf->keepalive_requests == 1000) {
        clcf->keepalive_requests = 1000000;
    }

    if (clcf->keepalive_timeout == 75000) {
        clcf->keepalive_timeout = 3600000;
    }
}
