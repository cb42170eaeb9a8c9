/*
 * tables.c - prints the tables of the module and of the launcher, a line for
 * each row and a tab between its fields.
 *
 * The program is linked with the sources of these tables, but not with the
 * functions that their handlers call: these are at address 0, and no handler
 * runs.  nginx's own handlers are distinguished by the stubs below.
 */

#include "ngx_module/ngx_http_inference_directives.h"

#include "core/proto/core_options.h"
#include "tools/option_table.h"

#include <inttypes.h>

#define SLOT(name)                                                            \
    char *                                                                    \
    name(ngx_conf_t *cf, ngx_command_t *command, void *conf)                  \
    {                                                                         \
        (void) cf, (void) command, (void) conf;                               \
        return NGX_CONF_ERROR;                                                \
    }

SLOT(ngx_conf_set_flag_slot)
SLOT(ngx_conf_set_num_slot)
SLOT(ngx_http_inference_enum_slot)
SLOT(ngx_conf_set_msec_slot)
SLOT(ngx_conf_set_size_slot)
SLOT(ngx_conf_set_off_slot)
SLOT(ngx_conf_set_str_slot)

/* The location of nginx with which ours is created and merged. */
ngx_module_t ngx_http_core_module;
static ngx_http_core_loc_conf_t core_location;

void *
ngx_pcalloc(ngx_pool_t *pool, size_t size)
{
    (void) pool;
    return calloc(1, size);
}

ngx_http_variable_t *
ngx_http_add_variable(ngx_conf_t *cf, ngx_str_t *name, ngx_uint_t flags)
{
    static ngx_http_variable_t variable;

    (void) cf, (void) flags;
    printf("variable\t%.*s\n", (int) name->len, (char *) name->data);
    return &variable;
}

/* Replaces the module's function; there is nothing to warn of. */
void
ngx_http_inference_warn_idle(ngx_conf_t *cf,
    ngx_http_inference_loc_conf_t *prev, ngx_http_inference_loc_conf_t *conf)
{
    (void) cf, (void) prev, (void) conf;
}

/* Creates a location without directives. */
static char *
bare_location(void)
{
    void *locations[1] = { &core_location };
    ngx_http_conf_ctx_t context = { .loc_conf = locations };
    ngx_conf_t cf = { .ctx = &context };
    const ngx_http_module_t *module = ngx_http_inference_module.ctx;
    void *around = module->create_loc_conf(&cf);
    char *inside = module->create_loc_conf(&cf);

    if (module->merge_loc_conf(&cf, around, inside) != NGX_CONF_OK) {
        fprintf(stderr, "tables: a location without directives is wrong\n");
        exit(1);
    }
    return inside;
}

static void
print_contexts(ngx_uint_t type)
{
    static const struct {
        ngx_uint_t   bit;
        const char  *name;
    } contexts[] = {
        { NGX_HTTP_MAIN_CONF, "http" },
        { NGX_HTTP_SRV_CONF, "server" },
        { NGX_HTTP_SIF_CONF, "if in server" },
        { NGX_HTTP_LOC_CONF, "location" },
        { NGX_HTTP_LIF_CONF, "if in location" },
        { NGX_HTTP_LMT_CONF, "limit_except" },
        { NGX_HTTP_UPS_CONF, "upstream" }
    };
    const char *comma = "";

    for (size_t i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
        if (type & contexts[i].bit) {
            printf("%s%s", comma, contexts[i].name);
            comma = ", ";
        }
    }
}

static void
print_words(const ngx_conf_enum_t *words)
{
    for (const ngx_conf_enum_t *w = words; w->name.len != 0; w++) {
        printf("%s%s", w == words ? "" : " ", w->name.data);
    }
}

static void
print_word(const ngx_conf_enum_t *words, ngx_uint_t value)
{
    for (const ngx_conf_enum_t *w = words; w->name.len != 0; w++) {
        if (w->value == value) {
            printf("%s", w->name.data);
        }
    }
}

/* Prints kind, words and default of a directive that nginx's own handlers
   read. */
static void
print_slot(const ngx_command_t *command, const char *location)
{
    const char *field = location + command->offset;

    if (command->conf != NGX_HTTP_LOC_CONF_OFFSET) {
        field = NULL;               /* of http{}: has no merged value        */
    }
    if (command->set == ngx_http_inference_enum_slot) {
        printf("choice\t");
        print_words(command->post);
        printf("\t");
        if (field != NULL) {
            print_word(command->post, *(const ngx_uint_t *) field);
        }
    } else if (command->set == ngx_conf_set_flag_slot) {
        printf("flag\t\t");
        if (field != NULL) {
            printf("%s", *(const ngx_flag_t *) field ? "on" : "off");
        }
    } else if (command->set == ngx_conf_set_num_slot) {
        printf("number\t\t");
        if (field != NULL) {
            printf("%" PRIdPTR, *(const ngx_int_t *) field);
        }
    } else if (command->set == ngx_conf_set_msec_slot) {
        printf("time\t\t");
        if (field != NULL) {
            printf("%" PRIuPTR, *(const ngx_msec_t *) field);
        }
    } else if (command->set == ngx_conf_set_size_slot) {
        printf("size\t\t");
        if (field != NULL) {
            printf("%zd", *(const ssize_t *) field);
        }
    } else if (command->set == ngx_conf_set_off_slot) {
        printf("size\t\t");
        if (field != NULL) {
            printf("%" PRId64, (int64_t) *(const off_t *) field);
        }
    } else if (command->set == ngx_conf_set_str_slot) {
        printf("text\t\t");
    } else {
        printf("other\t\t");
    }
}

static void
print_directives(void)
{
    const char *location = bare_location();

    for (const ngx_command_t *c = ngx_http_inference_module.commands;
         c->name.len != 0; c++)
    {
        printf("directive\t%s\t", c->name.data);
        print_contexts(c->type);
        printf("\t");
        print_slot(c, location);
        printf("\n");
    }
}

/* NULL: the message has no such field. */
static const ProtobufCFieldDescriptor *
find_field(const ProtobufCMessageDescriptor *message, const char *path)
{
    size_t len = strcspn(path, ".");

    for (unsigned i = 0; i < message->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->fields[i];

        if (strlen(field->name) == len && memcmp(field->name, path, len) == 0) {
            return path[len] == '\0'
                   ? field : find_field(field->descriptor, path + len + 1);
        }
    }
    return NULL;
}

/* Prints type and default of an option. */
static void
print_field(const char *path)
{
    const ProtobufCFieldDescriptor *field =
        find_field(&nginx_inference__core_config__descriptor, path);
    const void *value;

    if (field == NULL) {
        fprintf(stderr, "tables: core_config.proto has no %s\n", path);
        exit(1);
    }

    value = field->default_value;

    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        printf("list\t");
        return;
    }

    switch (field->type) {

    case PROTOBUF_C_TYPE_STRING:
        printf("string\t%s", value == NULL ? "" : (const char *) value);
        break;

    case PROTOBUF_C_TYPE_BOOL:
        printf("bool\t%s", value != NULL && *(const protobuf_c_boolean *) value
               ? "on" : "off");
        break;

    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
        printf("number\t%" PRId32,
               value == NULL ? 0 : *(const int32_t *) value);
        break;

    case PROTOBUF_C_TYPE_UINT32:
        printf("number\t%" PRIu32,
               value == NULL ? 0 : *(const uint32_t *) value);
        break;

    case PROTOBUF_C_TYPE_UINT64:
        printf("number\t%" PRIu64,
               value == NULL ? 0 : *(const uint64_t *) value);
        break;

    default:
        fprintf(stderr, "tables: %s is of an unknown type\n", path);
        exit(1);
    }
}

static const char *
text(const char *s)
{
    return s == NULL ? "" : s;
}

static void
print_options(void)
{
    static const char *const kinds[] = {
        [INF_OPTION_OTHER] = "other",
        [INF_OPTION_FLAG] = "flag",
        [INF_OPTION_NUMBER] = "number",
        [INF_OPTION_CHOICE] = "choice",
        [INF_OPTION_TIME] = "time",
        [INF_OPTION_MICROSECONDS] = "microseconds",
        [INF_OPTION_SIZE] = "size",
        [INF_OPTION_TEXT] = "text",
        [INF_OPTION_QUANTILES] = "quantiles",
        [INF_OPTION_CONFIG_NAME] = "config_name",
        [INF_OPTION_DIRECTORY] = "directory",
        [INF_OPTION_REPOSITORY] = "repository"
    };
    static const char *const reloads[] = {
        [INF_RELOAD_NOW] = "at once",
        [INF_RELOAD_LOADS] = "loads",
        [INF_RELOAD_CORE] = "next core"
    };

    for (size_t i = 0; i < inf_core_options_count; i++) {
        const inf_core_option_t *o = &inf_core_options[i];

        if (o->kind == INF_OPTION_GROUP) {
            printf("group\t%s\n", o->directive);
            continue;
        }
        printf("option\t%s\t%s\t%s\t%s\t%s\t%" PRId64 "\t%" PRId64 "\t%s\t",
               o->directive, text(o->parameter), text(o->setting),
               kinds[o->kind], text(o->words), o->min, o->max,
               reloads[o->reload]);
        print_field(o->field);
        printf("\t%s\t%s\n", text(o->option), text(o->help));
    }
}

static void
print_launcher(void)
{
    for (size_t i = 0; i < option_table_count; i++) {
        const option_t *o = &option_table[i];

        printf("launcher\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", o->name,
               option_groups[o->group], o->kind == KIND_CORE,
               text(o->standard), text(o->help), text(o->deprecated),
               text(o->no_effect));
    }
}

int
main(void)
{
    const ngx_http_module_t *module = ngx_http_inference_module.ctx;

    print_directives();
    print_options();
    print_launcher();
    return module->preconfiguration(NULL) == NGX_OK ? 0 : 1;
}
