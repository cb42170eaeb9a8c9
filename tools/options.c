#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/proto/core_options.h"
#include "die.h"
#include "number_parts.h"
#include "option_check.h"
#include "option_table.h"
#include "services.h"

#define VALUE_MAX 4000      /* bytes; nginx reads words of less than 4 KiB   */

static void set_defaults(options_t *o);
static void parse(options_t *o, int argc, char **argv);
static const option_t *find_short(const char *name, size_t len);
static void take_environment(options_t *o);
static void take_ports(options_t *o);
static void take_backend_settings(options_t *o);
static void list_add(list_t *list, const char *value);
static void set(options_t *o, const option_t *option, const char *value);
static void die_empty(const option_t *option) __attribute__((noreturn));
static const char *normal(const option_t *option, const char *value);
static const char *without_family(const char *address);
static void warn_once(options_t *o, const option_t *option);
static size_t find_core(const char *name);
static void set_core(options_t *o, const option_t *from, const char *value);
static void check_choice(const char *name, const char *words,
    const char *value);
static long parse_number(const option_t *option, long min, long max,
    const char *value);
static bool parse_bool(const char *name, const char *value);
static void check_text(const char *name, const char *text);
static void usage(void) __attribute__((noreturn));

void
options_take(options_t *o, int argc, char **argv)
{
    set_defaults(o);
    parse(o, argc, argv);
    take_environment(o);
    take_ports(o);
    take_backend_settings(o);
    options_check(o);
}

static void
set_defaults(options_t *o)
{
    static const service_t names[SERVICES] = {
        [SERVICE_HTTP] = { .name = "HTTPService", .short_name = "HTTP",
                           .option = "http-port" },
        [SERVICE_GRPC] = { .name = "GRPCInferenceService",
                           .short_name = "GRPC", .option = "grpc-port",
                           .port_in_path = true, .both_families = true },
        [SERVICE_METRICS] = { .name = "Metrics Service",
                              .short_name = "Metrics",
                              .option = "metrics-port" },
        [SERVICE_SAGEMAKER] = { .name = "Sagemaker HTTPService",
                                .short_name = "Sagemaker",
                                .option = "sagemaker-port" },
        [SERVICE_VERTEX] = { .name = "Vertex AI HTTPService",
                             .short_name = "Vertex AI",
                             .option = "vertex-ai-port" }
    };

    *o = (options_t) {
        .core = calloc(inf_core_options_count, sizeof(char *)),
        .given = calloc(option_table_count, sizeof(bool))
    };
    if (o->core == NULL || o->given == NULL) {
        die("out of memory");
    }

    memcpy(o->service, names, sizeof(names));
    for (size_t i = 0; i < option_table_count; i++) {
        if (option_table[i].standard != NULL) {
            set(o, &option_table[i], option_table[i].standard);
        }
    }
}

static void
parse(options_t *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *word = strcmp(argv[i], "-h") == 0 ? "--help" : argv[i];

        if (strcmp(word, "--") == 0 && i + 1 == argc) {
            return;                         /* getopt's end of options */
        }
        if (strncmp(word, "--", 2) != 0 || word[2] == '\0') {
            die("unexpected argument \"%s\"", word);
        }

        const char     *name = word + 2;
        const char     *equals = strchr(name, '=');
        size_t          len = equals ? (size_t) (equals - name) : strlen(name);
        const option_t *option = option_find(name, len);

        if (option == NULL) {
            option = find_short(name, len);
        }
        if (option->kind == KIND_HELP) {
            usage();
        }

        const char *value = equals ? equals + 1 : NULL;

        if (option->kind == KIND_FLAG && value != NULL) {
            die("option \"--%s\" takes no value", option->name);
        }
        if (option->kind != KIND_FLAG && value == NULL) {
            value = argv[++i];
            if (value == NULL) {
                die("option \"--%s\" needs a value", option->name);
            }
        }
        set(o, option, value);
        warn_once(o, option);
    }
}

/* The option with this abbreviation. */
static const option_t *
find_short(const char *name, size_t len)
{
    const option_t *found = option_begins(name, len, NULL);

    if (found == NULL) {
        die("unknown option \"--%.*s\"", (int) len, name);
    }

    const option_t *other = option_begins(name, len, found);

    if (other != NULL) {
        die("option \"--%.*s\" is ambiguous: --%s, --%s%s", (int) len, name,
            found->name, other->name,
            option_begins(name, len, other) != NULL ? ", ..." : "");
    }
    return found;
}

static void
warn_once(options_t *o, const option_t *option)
{
    bool *given = &o->given[option - option_table];

    if (!*given && option->deprecated != NULL) {
        fprintf(stderr, "inference-server: '--%s' has been deprecated! Please "
                "use '--%s' instead.\n", option->name, option->deprecated);
    }
    if (!*given && option->no_effect != NULL) {
        fprintf(stderr, "inference-server: --%s has no effect: %s\n",
                option->name, option->no_effect);
    }
    *given = true;
}

bool
options_given(const options_t *o, const char *name)
{
    return o->given[option_find(name, strlen(name)) - option_table];
}

bool
options_given_before(const list_t *list, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (strcmp(list->value[i], list->value[at]) == 0) {
            return true;
        }
    }
    return false;
}

static void
usage(void)
{
    fputs("Usage: inference-server [options]\n", stderr);
    for (int group = 0; group < GROUPS; group++) {
        fprintf(stderr, "%s%s%s\n", group == 0 ? "" : "\n",
                option_groups[group], group == 0 ? "" : ":");

        for (size_t i = 0; i < option_table_count; i++) {
            const option_t *option = &option_table[i];

            if ((int) option->group != group) {
                continue;
            }

            const char *help = option->kind == KIND_CORE
                ? inf_core_options[find_core(option->name)].help
                : option->help;
            bool        valued = option->kind != KIND_FLAG
                && option->kind != KIND_HELP;

            fprintf(stderr, "  --%s%s\n\t%s", option->name,
                    valued ? " <value>" : "", help);
            if (option->standard != NULL) {
                fprintf(stderr, " (%s)", option->standard);
            }
            fputc('\n', stderr);
        }
    }
    exit(1);
}

/* Reads Vertex AI's variables, and the one that disables GPUs. */
static void
take_environment(options_t *o)
{
    const char *uri = getenv("AIP_STORAGE_URI");
    const char *mode = getenv("AIP_MODE");
    const char *port = getenv("AIP_HTTP_PORT");
    service_t  *vertex = &o->service[SERVICE_VERTEX];

    if (o->repositories.n == 0 && uri != NULL && uri[0] != '\0') {
        set(o, option_find("model-repository", 16), uri);
    }
    if (mode != NULL && strcmp(mode, "PREDICTION") == 0) {
        vertex->on = vertex->on || !options_given(o, "allow-vertex-ai");
        o->service[SERVICE_HTTP].on &= options_given(o, "allow-http");
        o->service[SERVICE_GRPC].on &= options_given(o, "allow-grpc");
    }
    if (vertex->port_text == NULL && port != NULL) {
        vertex->port_text = port;
        vertex->option = "vertex-ai-port (AIP_HTTP_PORT)";
    }

    if (vertex->on && o->vertex_model == NULL) {
        o->vertex_model = services_only_model(o);
    }

    /* the platform sends requests from outside */
    vertex->address = o->service[SERVICE_SAGEMAKER].address = "0.0.0.0";

    if (o->service[SERVICE_METRICS].address == NULL) {
        o->service[SERVICE_METRICS].address =
            o->service[SERVICE_HTTP].address;
    }
    for (size_t i = 0; i < SERVICES; i++) {
        o->service[i].address = without_family(o->service[i].address);
    }

    if (getenv("TRITON_SERVER_CPU_ONLY") != NULL) {
        set_core(o, option_find("allow-gpu-metrics", 17), "false");
    }
}

/* A port of a service that is off may be any number. */
static void
take_ports(options_t *o)
{
    for (size_t i = 0; i < SERVICES; i++) {
        service_t *s = &o->service[i];

        s->port = parse_number(&(option_t) { .name = s->option },
                               s->on ? 1 : INT_MIN, s->on ? 65535 : INT_MAX,
                               s->port_text != NULL ? s->port_text : "8080");
    }
}

/* Takes options that are settings of all backends; they override
   --backend-config. */
static void
take_backend_settings(options_t *o)
{
    char *text;
    int   n = 0;

    if (o->min_capability != NULL) {
        n = asprintf(&text, "min-compute-capability=%s", o->min_capability);
        if (n >= 0) {
            list_add(&o->backend_configs, text);
        }
    }
    for (size_t i = 0; n >= 0 && i < o->gpu_limits.n; i++) {
        long        gpu;
        const char *part = after_gpu(o->gpu_limits.value[i], &gpu);

        n = asprintf(&text, "model-load-gpu-limit-device-%ld=%s", gpu, part);
        if (n >= 0) {
            list_add(&o->backend_configs, text);
        }
    }
    if (n < 0) {
        die("out of memory");
    }
}

/* Strips a family: Triton's HTTP library accepts "ipv6:::1". */
static const char *
without_family(const char *address)
{
    return strncmp(address, "ipv6:", 5) == 0
        || strncmp(address, "ipv4:", 5) == 0 ? address + 5 : address;
}

static void
set(options_t *o, const option_t *option, const char *value)
{
    static union { const char *text; long number; bool flag; } nowhere;

    void       *field = option->offset == NOT_KEPT ? (void *) &nowhere
                                                   : (char *) o
                                                     + option->offset;
    const char *name = option->name;

    if (value != NULL) {
        check_text(name, value);
        if (value[0] == '\0' && option->kind != KIND_OPTIONAL
            && option->kind != KIND_CORE)
        {
            die_empty(option);
        }
    }
    if (option->check != NULL) {
        option->check(name, value);
    }
    if (option->normal != NULL) {
        value = normal(option, value);
    }

    switch (option->kind) {

    case KIND_CHOICE:
        check_choice(name, option->words, value);
        *(const char **) field = value;
        return;

    case KIND_TEXT:
        *(const char **) field = value;
        return;

    case KIND_OPTIONAL:
        *(const char **) field = value[0] != '\0' ? value : NULL;
        return;

    case KIND_LIST:
        if (option->offset != NOT_KEPT) {
            list_add(field, value);
        }
        return;

    case KIND_VERBOSE:
        if (strcasecmp(value, "true") == 0 || strcasecmp(value, "false") == 0)
        {
            *(long *) field = strcasecmp(value, "true") == 0;
            return;
        }
        *(long *) field = parse_number(option, option->min, option->max,
                                       value);
        return;

    case KIND_NUMBER:
        *(long *) field = parse_number(option, option->min, option->max,
                                       value);
        return;

    case KIND_BOOL:
        *(bool *) field = parse_bool(name, value);
        return;

    case KIND_FLAG:
        *(bool *) field = true;
        return;

    case KIND_CORE:
        set_core(o, option, value);
        return;

    case KIND_HELP:
        return;
    }
}

static void
die_empty(const option_t *option)
{
    die("option \"--%s\" has an empty value%s%s", option->name,
        option->standard != NULL ? "; without the option it is " : "",
        option->standard != NULL ? option->standard : "");
}

/* The value in the format of the files that write it. */
static const char *
normal(const option_t *option, const char *value)
{
    const char *kept = option->normal(option->name, value);

    if (strcmp(kept, value) != 0) {
        fprintf(stderr, "inference-server: --%s=%s: taken as %s\n",
                option->name, value, kept);
    }
    return kept;
}

static void
list_add(list_t *list, const char *value)
{
    const char **longer = realloc(list->value,
                                  (list->n + 1) * sizeof(*longer));

    if (longer == NULL) {
        die("out of memory");
    }
    list->value = longer;
    list->value[list->n++] = value;
}

/* The row of the core's table for the option. */
static size_t
find_core(const char *name)
{
    size_t i = 0;

    while (inf_core_options[i].option == NULL
           || strcmp(inf_core_options[i].option, name) != 0)
    {
        i++;
    }
    return i;
}

/* Stores a value in the format of nginx.conf. */
static void
set_core(options_t *o, const option_t *from, const char *value)
{
    size_t                   at = find_core(from->name);
    const inf_core_option_t *option = &inf_core_options[at];
    const char              *unit = option->unit != NULL ? option->unit : "";
    int64_t                  max = option->most != 0 ? option->most
                                                     : option->max;
    size_t                   size = strlen(value) + 8;
    char                    *text;

    if (value[0] == '\0' && from->empty != NULL) {
        fprintf(stderr, "inference-server: --%s has an empty value: %s\n",
                from->name, from->empty);
        o->core[at] = NULL;
        return;
    }
    if (value[0] == '\0' && (option->kind == INF_OPTION_CHOICE
        || option->kind == INF_OPTION_TEXT
        || option->kind == INF_OPTION_CONFIG_NAME))
    {
        die_empty(from);
    }
    text = malloc(size);
    if (text == NULL) {
        die("out of memory");
    }

    switch (option->kind) {
    case INF_OPTION_FLAG:
        strcpy(text, parse_bool(option->option, value) ? "on" : "off");
        break;
    case INF_OPTION_NUMBER:
    case INF_OPTION_TIME:
    case INF_OPTION_SIZE:
        snprintf(text, size, "%ld%s", parse_number(from, (long) option->min,
                 max != 0 ? (long) max : LONG_MAX, value), unit);
        break;
    case INF_OPTION_CHOICE:
        check_choice(option->option, option->words, value);
        strcpy(text, value);
        break;
    default:
        strcpy(text, value);
        break;
    }
    o->core[at] = text;
}

/* Checks a choice; words: "a b" or "a b c". */
static void
check_choice(const char *name, const char *words, const char *value)
{
    char        list[128] = "";
    const char *word = words;

    while (*word != '\0') {
        size_t len = strcspn(word, " ");
        size_t end = strlen(list);

        if (strlen(value) == len && strncasecmp(word, value, len) == 0) {
            return;
        }
        snprintf(list + end, sizeof(list) - end, "%s%.*s",
                 end == 0 ? "" : word[len] == '\0' ? " or " : ", ",
                 (int) len, word);
        word += len + (word[len] == ' ');
    }
    die("--%s is %s, not \"%s\"", name, list, value);
}

/* Text behind a number is left out with a warning, as Triton leaves it out
   without one. */
static long
parse_number(const option_t *option, long min, long max, const char *value)
{
    char *end;

    errno = 0;
    long number = strtol(value, &end, 10);
    long nearest = number < min ? min : number > max ? max : number;

    bool tail = *end != '\0';

    if (end == value || errno != 0 || (tail && option->group == GROUP_OURS)
        || (nearest != number && !option->nearest))
    {
        die("option \"--%s\" is a number from %ld to %ld, not \"%s\"",
            option->name, min, max, value);
    }
    if (nearest != number || tail) {
        fprintf(stderr, "inference-server: --%s=%s: a number from %ld to %ld, "
                "taken as %ld\n", option->name, value, min, max, nearest);
    }
    return nearest;
}

static bool
parse_bool(const char *name, const char *value)
{
    static const char *const yes[] = { "true", "on", "1" };
    static const char *const no[] = { "false", "off", "0" };

    for (size_t i = 0; i < 3; i++) {
        if (strcasecmp(value, yes[i]) == 0) {
            return true;
        }
        if (strcasecmp(value, no[i]) == 0) {
            return false;
        }
    }
    die("option \"--%s\" is true or false, not \"%s\"", name, value);
}

/* Rejects what nginx.conf cannot represent: control characters, and words
   beyond nginx's buffer of 4 KiB. */
static void
check_text(const char *name, const char *text)
{
    if (strlen(text) > VALUE_MAX) {
        die("option \"--%s\" has a value longer than %d bytes", name,
            VALUE_MAX);
    }
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char) *c < 0x20 || *c == 0x7f) {
            die("option \"--%s\" has a control character in its value", name);
        }
    }
}

const char *
options_core(const options_t *o, const char *directive, const char *parameter)
{
    for (size_t i = 0; i < inf_core_options_count; i++) {
        const inf_core_option_t *option = &inf_core_options[i];
        bool same = parameter == NULL || option->parameter == NULL
            ? parameter == option->parameter
            : strcmp(option->parameter, parameter) == 0;

        if (o->core[i] != NULL && same
            && strcmp(option->directive, directive) == 0)
        {
            return o->core[i];
        }
    }
    return NULL;
}

bool
options_strict(const options_t *o)
{
    return o->strict_config || o->strict_model_config;
}
