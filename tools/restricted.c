#include "restricted.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "die.h"

/*
 * The paths of each group, of REST and of gRPC, as regular expressions for
 * $uri: if nginx decodes or merges a path to another one, the module answers
 * with 404 (docs/directives.md), so other spellings of a path are not served.
 * The first match counts.
 */
static const struct {
    const char *name;
    const char *http;
    const char *grpc;
} groups[] = {
    { "statistics", "/v2/models/(stats$|[^/]+(/versions/[^/]+)?/stats$)",
      "ModelStatistics$" },
    { "health", "/v2/(health/|models/[^/]+(/versions/[^/]+)?/ready$)",
      "(Server(Live|Ready)$|ModelReady$|.*Health/)" },
    { "inference", "/v2/models/.+/(infer|generate|generate_stream)$",
      "Model(Stream)?Infer$" },
    { "model-config", "/v2/models/.+/config$", "ModelConfig$" },
    { "model-repository", "/v2/(repository/|archives(/|$))", "Repository" },
    { "trace", "/v2/(.+/)?trace/setting$", "TraceSetting$" },
    { "logging", "/v2/logging$", "LogSettings$" },
    { "shared-memory", "/v2/(system|cuda)sharedmemory",
      "(System|Cuda)SharedMemory" },
    { "metadata", "/v2(/models/(?!stats$)[^/]+(/versions/[^/]+)?)?$",
      "(Server|Model)Metadata$" }
};

#define GROUPS_N (sizeof(groups) / sizeof(groups[0]))

static size_t find_group(const char *name, size_t len);
static const char *feature(const char *option);
static void write_map(FILE *f, const char *variable, const char *name,
    const list_t *list, bool grpc);
static void write_checks(FILE *f, const char *variable, const list_t *list,
    const char *prefix);
static void write_regex_text(FILE *f, const char *text);

void
restricted_parse(restricted_t *rule, const char *name, const char *text)
{
    const char *colon = strchr(text, ':');
    const char *equals = colon != NULL ? strchr(colon, '=') : NULL;
    size_t      len;

    if (equals == NULL || colon == text || equals == colon + 1
        || equals[1] == '\0')
    {
        die("--%s is group,...:header=value, not \"%s\"", name, text);
    }
    *rule = (restricted_t) { .header = colon + 1, .value = equals + 1,
                             .header_len = (int) (equals - colon - 1) };

    for (const char *p = text; p <= colon; p += len + 1) {
        len = strcspn(p, ",:");

        size_t group = find_group(p, len);

        if (group == GROUPS_N) {
            die("--%s=%s: unknown restricted %s '%.*s': \"%.*s\" is none of "
                "health, metadata, inference, shared-memory, model-config, "
                "model-repository, statistics, trace and logging", name, text,
                feature(name), (int) len, p, (int) len, p);
        }
        if (rule->groups & 1u << group) {
            die("--%s=%s: \"%s\" is there twice", name, text,
                groups[group].name);
        }
        rule->groups |= 1u << group;
    }

    for (int i = 0; i < rule->header_len; i++) {
        unsigned char c = (unsigned char) rule->header[i];

        if (!isalnum(c) && c != '-' && c != '_') {
            die("--%s=%s: the name of a header has letters, digits, \"-\" "
                "and \"_\"", name, text);
        }
    }
}

static size_t
find_group(const char *name, size_t len)
{
    size_t i = 0;

    while (i < GROUPS_N && (strlen(groups[i].name) != len
                            || memcmp(groups[i].name, name, len) != 0))
    {
        i++;
    }
    return i;
}

void
restricted_check(const char *name, const list_t *list)
{
    restricted_t rule;
    unsigned     seen = 0;

    for (size_t i = 0; i < list->n; i++) {
        restricted_parse(&rule, name, list->value[i]);
        for (size_t group = 0; group < GROUPS_N; group++) {
            if (seen & rule.groups & 1u << group) {
                die("--%s=%s: restricted %s '%s' can not be specified in "
                    "multiple config groups: another --%s has it", name,
                    list->value[i], feature(name), groups[group].name, name);
            }
        }
        seen |= rule.groups;
    }
}

/* Triton's word for a group, for errors. */
static const char *
feature(const char *option)
{
    return strncmp(option, "http", 4) == 0 ? "api" : "protocol";
}

void
restricted_write_map(FILE *f, const options_t *o)
{
    write_map(f, "inference_http_rule", "http-restricted-api",
              &o->http_restricted, false);
    write_map(f, "inference_grpc_rule", "grpc-restricted-protocol",
              &o->grpc_restricted, true);
}

static void
write_map(FILE *f, const char *variable, const char *name,
    const list_t *list, bool grpc)
{
    if (list->n == 0) {
        return;
    }

    fprintf(f, "    map $uri $%s {\n        default \"\";\n", variable);
    for (size_t g = 0; g < GROUPS_N; g++) {
        for (size_t i = 0; i < list->n; i++) {
            restricted_t rule;

            restricted_parse(&rule, name, list->value[i]);
            if (rule.groups & 1u << g) {
                fprintf(f, "        \"~^%s%s\" %zu;\n",
                        grpc ? "/.*[./]" : "",
                        grpc ? groups[g].grpc : groups[g].http, i + 1);
            }
        }
    }
    fputs("    }\n", f);
}

void
restricted_write_http(FILE *f, const list_t *list)
{
    if (list->n == 0) {
        return;
    }

    write_checks(f, "inference_http_rule", list, "");
    fputs("        if ($inference_rule) {\n"
          "            return 403 '{\"error\":\"This API is restricted, "
          "expecting header \\'$inference_header\\'\"}';\n"
          "        }\n", f);
}

/* gRPC's status is in the headers of an answer without a body. */
void
restricted_write_grpc(FILE *f, const list_t *list)
{
    if (list->n == 0) {
        return;
    }

    write_checks(f, "inference_grpc_rule", list, RESTRICTED_GRPC_PREFIX);
    fputs("        error_page 418 = @restricted;\n"
          "        if ($inference_rule) { return 418; }\n"
          "        location @restricted {\n"
          "            default_type application/grpc;\n"
          "            add_header grpc-status 14 always;\n"
          "            add_header grpc-message \"This protocol is restricted, "
          "expecting header '$inference_header'\" always;\n"
          "            return 200;\n"
          "        }\n", f);
}

/* Afterwards $inference_rule is empty if the request may pass, and
   $inference_header is the missing header. */
static void
write_checks(FILE *f, const char *variable, const list_t *list,
    const char *prefix)
{
    restricted_t rule;

    fprintf(f, "        set $inference_rule $%s;\n"
            "        set $inference_header \"\";\n", variable);

    for (size_t i = 0; i < list->n; i++) {
        restricted_parse(&rule, "", list->value[i]);

        fprintf(f, "        if ($inference_rule = %zu) {"
                " set $inference_header \"%s%.*s\"; }\n",
                i + 1, prefix, rule.header_len, rule.header);

        fputs("        set $inference_given \"$inference_rule:$http_", f);
        for (const char *p = prefix; *p != '\0'; p++) {
            fputc(*p == '-' ? '_' : *p, f);
        }
        for (int k = 0; k < rule.header_len; k++) {
            int c = tolower((unsigned char) rule.header[k]);
            fputc(c == '-' ? '_' : c, f);
        }
        fprintf(f, "\";\n        if ($inference_given ~ \"^%zu:", i + 1);
        write_regex_text(f, rule.value);
        fputs("$\") { set $inference_rule \"\"; }\n", f);
    }
}

/* Escapes text for a regular expression in nginx.conf. */
static void
write_regex_text(FILE *f, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char) *text;

        fprintf(f, isalnum(c) || strchr("-_=:/,@%~", c) != NULL ? "%c"
                : "\\x%02x", c);
    }
}
