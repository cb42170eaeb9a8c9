/*
 * The module's definition: the table of its directives, and the configuration
 * of http{}.
 */

#include "ngx_module/ngx_http_inference_balance.h"
#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_directives.h"
#include "ngx_module/ngx_http_inference_peek.h"
#include "ngx_module/ngx_http_inference_submission.h"
#include "ngx_module/ngx_http_inference_supervisor.h"
#include "ngx_module/ngx_http_inference_variables.h"

#include "core/proto/grpc.h"

#include <dlfcn.h>


#define NGX_HTTP_INFERENCE_CORE      "inference-core"
#define NGX_HTTP_INFERENCE_BACKENDS  "backends"
#define NGX_HTTP_INFERENCE_AGENTS    "agents"

#define NGX_HTTP_INFERENCE_ARENA     ((off_t) 1024 * 1024 * 1024)


/* directives that are rows of the table of the core's options */

#define NGX_HTTP_INFERENCE_VALUE(name, ...)                                   \
                                                                              \
    { ngx_string(name),                                                       \
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,                                      \
      ngx_http_inference_value,                                               \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      0,                                                                      \
      NULL },

#define NGX_HTTP_INFERENCE_GROUP(name, ...)                                   \
                                                                              \
    { ngx_string(name),                                                       \
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,                                      \
      ngx_http_inference_group,                                               \
      NGX_HTTP_MAIN_CONF_OFFSET,                                              \
      0,                                                                      \
      NULL },

#define NGX_HTTP_INFERENCE_OPTION(...)


static ngx_int_t ngx_http_inference_preconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_inference_postconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_inference_add_preaccess(ngx_conf_t *cf,
    ngx_http_handler_pt handler);
static void *ngx_http_inference_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_inference_init_main_conf(ngx_conf_t *cf, void *conf);
static ngx_int_t ngx_http_inference_beside(ngx_conf_t *cf, const char *name,
    ngx_str_t *path);
static ngx_int_t ngx_http_inference_usual_directory(ngx_conf_t *cf,
    const char *name, char ***list, size_t *n);
static ngx_int_t ngx_http_inference_init_process(ngx_cycle_t *cycle);


static ngx_conf_post_handler_pt  ngx_http_inference_tries_p =
    ngx_http_inference_tries;


static ngx_conf_post_t  ngx_http_inference_setting_p =
    { ngx_http_inference_note_setting };


static ngx_conf_enum_t  ngx_http_inference_checks[] = {
    { ngx_string("off"), NGX_HTTP_INFERENCE_CHECK_OFF },
    { ngx_string("warn"), NGX_HTTP_INFERENCE_CHECK_WARN },
    { ngx_string("strict"), NGX_HTTP_INFERENCE_CHECK_STRICT },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_inference_errors[] = {
    { ngx_string("triton"), NGX_HTTP_INFERENCE_ERRORS_TRITON },
    { ngx_string("sagemaker"), NGX_HTTP_INFERENCE_ERRORS_SAGEMAKER },
    { ngx_string("precise"), NGX_HTTP_INFERENCE_ERRORS_PRECISE },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_inference_grpc_levels[] = {
    { ngx_string("none"), INF_GRPC_LEVEL_NONE },
    { ngx_string("low"), INF_GRPC_LEVEL_LOW },
    { ngx_string("medium"), INF_GRPC_LEVEL_MEDIUM },
    { ngx_string("high"), INF_GRPC_LEVEL_HIGH },
    { ngx_null_string, 0 }
};


static ngx_command_t  ngx_http_inference_commands[] = {

    INF_CORE_OPTIONS(NGX_HTTP_INFERENCE_VALUE, NGX_HTTP_INFERENCE_GROUP,
                     NGX_HTTP_INFERENCE_OPTION)

    { ngx_string("inference_core"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1234|NGX_CONF_TAKE5,
      ngx_http_inference_core,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_env"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_inference_env,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_backend_config"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE,
      ngx_http_inference_backend_config,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_response_cache"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_inference_response_cache,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_memory"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_inference_memory,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_host_policy"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_inference_host_policy,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_rate_limit_resource"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE23,
      ngx_http_inference_rate_limit_resource,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_log"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE123,
      ngx_http_inference_log,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_trace"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_inference_trace,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_check"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_inference_enum_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_inference_main_conf_t, check),
      &ngx_http_inference_checks },

    { ngx_string("inference_model_control"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE123,
      ngx_http_inference_model_control,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_load_model"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_inference_load_model,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference"),
      NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_inference_parts,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_model"),
      NGX_HTTP_LOC_CONF|NGX_HTTP_LIF_CONF|NGX_CONF_TAKE123,
      ngx_http_inference_model,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_inference_loc_conf_t, timeout),
      &ngx_http_inference_setting_p },

    { ngx_string("inference_tries"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_inference_loc_conf_t, tries),
      &ngx_http_inference_tries_p },

    { ngx_string("inference_errors"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_inference_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_inference_loc_conf_t, errors),
      &ngx_http_inference_errors },

    { ngx_string("inference_grpc_compression"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_inference_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_inference_loc_conf_t, grpc_compression),
      &ngx_http_inference_grpc_levels },

    { ngx_string("inference_deflate"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_inference_loc_conf_t, deflate),
      &ngx_http_inference_setting_p },

    { ngx_string("inference_binary_type"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_inference_binary_type_directive,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_peek"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_inference_loc_conf_t, peek),
      NULL },

    { ngx_string("inference_intercept_errors"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_inference_loc_conf_t, intercept),
      &ngx_http_inference_setting_p },

    { ngx_string("inference_forward_header"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_inference_forward_directive,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_max_body"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_off_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_inference_loc_conf_t, max_body),
      &ngx_http_inference_setting_p },

    { ngx_string("inference_min_body_rate"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_inference_min_body_rate,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_upstream"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_inference_upstream_directive,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("inference_balance"),
      NGX_HTTP_UPS_CONF|NGX_CONF_1MORE,
      ngx_http_inference_balance_directive,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_inference_module_ctx = {
    ngx_http_inference_preconfiguration,   /* preconfiguration */
    ngx_http_inference_postconfiguration,  /* postconfiguration */

    ngx_http_inference_create_main_conf,   /* create main configuration */
    ngx_http_inference_init_main_conf,     /* init main configuration */

    ngx_http_inference_create_srv_conf,    /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_inference_create_loc_conf,    /* create location configuration */
    ngx_http_inference_merge_loc_conf      /* merge location configuration */
};


ngx_module_t  ngx_http_inference_module = {
    NGX_MODULE_V1,
    &ngx_http_inference_module_ctx,        /* module context */
    ngx_http_inference_commands,           /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_inference_supervisor_init,    /* init module */
    ngx_http_inference_init_process,       /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_inference_client_exit,        /* exit process */
    ngx_http_inference_supervisor_exit,    /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_inference_preconfiguration(ngx_conf_t *cf)
{
    return ngx_http_inference_add_variables(cf);
}


static ngx_int_t
ngx_http_inference_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_inference_main_conf_t  *imcf;

    ngx_http_inference_override_connections(cf);

    if (ngx_http_inference_balance_verify(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    imcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_inference_module);
    imcf->names = ngx_http_inference_names_are_used(cf);

    ngx_http_inference_lost_install_filter();

    ngx_http_inference_install_filters();

    /* nginx runs the handlers of a phase in reverse order of their addition, so
       these precede those of nginx's modules */

    if (ngx_http_inference_add_preaccess(cf, ngx_http_inference_early_handler)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_add_preaccess(cf,
                                            ngx_http_inference_peek_handler);
}


static ngx_int_t
ngx_http_inference_add_preaccess(ngx_conf_t *cf, ngx_http_handler_pt handler)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = handler;

    return NGX_OK;
}


static void *
ngx_http_inference_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_inference_main_conf_t  *imcf;

    imcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_inference_main_conf_t));
    if (imcf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     imcf->core = { 0, NULL };
     *     imcf->external = { 0, NULL };
     *     imcf->shm_zone = NULL;
     *     imcf->named = NULL;
     *     imcf->n_named = 0;
     *     imcf->load = { NULL, 0 };
     *     imcf->resource = { NULL, 0 };
     *     imcf->serving = { NULL, 0 };
     *     imcf->used = 0;
     *     imcf->configured = 0;
     */

    imcf->arena = NGX_CONF_UNSET;
    imcf->check = NGX_CONF_UNSET_UINT;

    if (ngx_http_inference_init_options(cf->pool, &imcf->config) != NGX_OK
        || ngx_array_init(&imcf->env, cf->pool, 4, sizeof(ngx_str_t))
           != NGX_OK
        || ngx_array_init(&imcf->servers, cf->pool, 4,
                          sizeof(ngx_http_core_loc_conf_t *))
           != NGX_OK)
    {
        return NULL;
    }

    return imcf;
}


static char *
ngx_http_inference_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_inference_main_conf_t *imcf = conf;

    NginxInference__CoreConfig  *config;

    config = &imcf->config;

    ngx_conf_init_value(imcf->arena, NGX_HTTP_INFERENCE_ARENA);
    ngx_conf_init_uint_value(imcf->check, NGX_HTTP_INFERENCE_CHECK_WARN);

    if (ngx_http_inference_compare(cf, imcf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (!imcf->used) {
        return NGX_CONF_OK;
    }

    if (imcf->core.len == 0
        && (ngx_http_inference_beside(cf, NGX_HTTP_INFERENCE_CORE,
                                      &imcf->core)
            != NGX_OK
            || ngx_http_inference_check_core(cf, imcf) != NGX_OK))
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_inference_usual_directory(cf, NGX_HTTP_INFERENCE_BACKENDS,
                                           &config->backend_directories,
                                           &config->n_backend_directories)
        != NGX_OK
        || ngx_http_inference_usual_directory(cf, NGX_HTTP_INFERENCE_AGENTS,
                                              &config->agent_directories,
                                              &config->n_agent_directories)
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_inference_add_zone(cf, imcf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/*
 * The path of a file in the directory of this shared object; if the module is
 * linked into nginx, in the directory of nginx's program (dladdr() would give
 * argv[0], which nginx overwrites).
 */

static ngx_int_t
ngx_http_inference_beside(ngx_conf_t *cf, const char *name, ngx_str_t *path)
{
    char         real[PATH_MAX];
    size_t       len;
    Dl_info      module, program;
    const char  *file;

    if (dladdr(&ngx_http_inference_module, &module) == 0
        || dladdr(&ngx_http_core_module, &program) == 0)
    {
        file = NULL;

    } else if (module.dli_fbase == program.dli_fbase) {
        file = "/proc/self/exe";

    } else {
        file = module.dli_fname;
    }

    if (file == NULL || realpath(file, real) == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           "cannot find the directory of this module; set "
                           "\"inference_core\" and \"inference_backends\"");
        return NGX_ERROR;
    }

    len = (size_t) (strrchr(real, '/') - real) + 1;

    path->len = len + ngx_strlen(name);
    path->data = ngx_pnalloc(cf->pool, path->len + 1);
    if (path->data == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(path->data, "%*s%s%Z", len, real, name);

    return NGX_OK;
}


/* Adds the default directory if none is configured. */

static ngx_int_t
ngx_http_inference_usual_directory(ngx_conf_t *cf, const char *name,
    char ***list, size_t *n)
{
    ngx_str_t  path;

    if (*n > 0) {
        return NGX_OK;
    }

    if (ngx_http_inference_beside(cf, name, &path) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_inference_append(cf->pool, list, n, path.data);
}


static ngx_int_t
ngx_http_inference_init_process(ngx_cycle_t *cycle)
{
    if (ngx_http_inference_supervisor_process(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_inference_probes_init(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_inference_client_init(cycle);
}
