#include "servers.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "control_from.h"
#include "number_parts.h"
#include "places.h"
#include "quoted.h"
#include "restricted.h"
#include "services.h"

static void write_http(FILE *f, const options_t *o);
static void write_all(FILE *f, const options_t *o, const char *protocol);
static void write_control(FILE *f, const options_t *o);
static void write_grpc(FILE *f, const options_t *o);
static void write_forward(FILE *f, const char *pattern);
static void write_tls(FILE *f, const options_t *o);
static void write_metrics(FILE *f, const options_t *o);
static void write_sagemaker(FILE *f, const options_t *o);
static void write_vertex(FILE *f, const options_t *o);
static void write_route(FILE *f, const char *path, const char *to, ...)
    __attribute__((format(printf, 3, 4)));
static void write_platform(FILE *f, const options_t *o, const char *name,
    const char *which);
static void write_forbidden(FILE *f, const char *paths, const char *why);
static void write_own(FILE *f, const places_t *places);
static void write_listens(FILE *f, const options_t *o, service_id_t id);
static void write_listen(FILE *f, const options_t *o, service_id_t id,
    const service_t *s, bool both);
static long probe_secs(long ms);
static const char *environment(const char *name, const char *otherwise);

void
servers_write(FILE *f, const options_t *o, const places_t *places)
{
    static void (*const write[SERVICES])(FILE *f, const options_t *o) = {
        [SERVICE_HTTP] = write_http,
        [SERVICE_GRPC] = write_grpc,
        [SERVICE_METRICS] = write_metrics,
        [SERVICE_SAGEMAKER] = write_sagemaker,
        [SERVICE_VERTEX] = write_vertex
    };

    restricted_write_map(f, o);
    if (o->service[SERVICE_VERTEX].on) {
        fputs("    map $uri $inference_to { default \"\"; }\n", f);
    }
    for (size_t i = 0; i < SERVICES; i++) {
        if (o->service[i].on) {
            fputs("    server {\n", f);
            write_listens(f, o, (service_id_t) i);
            write[i](f, o);
            fputs("    }\n", f);
        }
    }
    write_own(f, places);
}

static void
write_listens(FILE *f, const options_t *o, service_id_t id)
{
    const service_t *s = &o->service[id];
    service_t        other;

    write_listen(f, o, id, s, true);
    if (services_other_family(s, &other)) {
        write_listen(f, o, id, &other, false);
    }
}

/* both: an address [::] is IPv4's, too. */
static void
write_listen(FILE *f, const options_t *o, service_id_t id, const service_t *s,
    bool both)
{
    char socket[SERVICE_SOCKET_MAX];
    bool unixed = services_socket(s, socket) != NULL;

    fputs("        listen ", f);
    if (unixed) {
        write_word(f, socket);
    } else {
        fputs(socket, f);
    }
    fprintf(f, "%s%s", s->reuse && !unixed ? " reuseport" : "",
            both && (strcmp(s->address, "::") == 0
                     || strcmp(s->address, "[::]") == 0)
            ? " ipv6only=off" : "");
    if (id == SERVICE_GRPC) {
        fprintf(f, "%s http2", options_tls(o) ? " ssl" : "");
    }
    if (id == SERVICE_GRPC && !unixed
        && options_given(o, "grpc-keepalive-time"))
    {
        fprintf(f, " so_keepalive=%lds:%lds:1",
                probe_secs(o->keepalive_ms),
                probe_secs(o->keepalive_timeout_ms));
    }
    fputs(";\n", f);
}

/* Limited to the kernel's maximum. */
static long
probe_secs(long ms)
{
    return ms > 32767000 ? 32767 : (ms + 999) / 1000;
}

static void
write_http(FILE *f, const options_t *o)
{
    fputs("        default_type application/json;\n", f);
    restricted_write_http(f, &o->http_restricted);
    write_forward(f, o->http_forward);
    fputs("        gzip on;\n"
          "        inference_deflate on;\n", f);
    write_all(f, o, "");
    write_control(f, o);
}

static void
write_forward(FILE *f, const char *pattern)
{
    if (pattern != NULL && pattern[0] != '\0') {
        fputs("        inference_forward_header ", f);
        write_word(f, pattern);
        fputs(";\n", f);
    }
}

/* Inferences may use shared memory regions if the part is listed. */
static void
write_all(FILE *f, const options_t *o, const char *protocol)
{
    fprintf(f, "        location / {\n"
            "            inference all%s%s;\n"
            "        }\n", o->client_shm ? " shared_memory" : "", protocol);
}

/* Writes one location for all endpoints that change the server for other
   clients, also trace and log settings, so that all have the same clients. */
static void
write_control(FILE *f, const options_t *o)
{
    fprintf(f, "        location ~ \"^/v2/(repository/|logging$"
            "|(models/.+/)?trace/setting$|(system|cuda)sharedmemory/)\" {\n"
            "            inference repository trace logging%s;\n",
            o->client_shm ? " shared_memory" : "");
    control_from_write(f, o->control_from);
    fputs("        }\n", f);
    control_from_write_answer(f, o->control_from);
}

/* Writes gRPC; streams, pings and connections of clients are long-lived.  The
   bound of a message is the default, which compressed ones have only where it
   is set. */
static void
write_grpc(FILE *f, const options_t *o)
{
    if (options_tls(o)) {
        write_tls(f, o);
    }
    fputs("        http2_max_concurrent_streams 65536;\n"
          "        http2_chunk_size 16k;\n", f);
    fprintf(f, "        inference_max_body %ld;\n",
            size_read(o->request_memory) / 2);
    if (o->connection_age_ms != 0) {
        fprintf(f, "        keepalive_time %ldms;\n", o->connection_age_ms);
    }
    if (strcasecmp(o->compression, "none") != 0) {
        fprintf(f, "        inference_grpc_compression %s;\n",
                o->compression);
    }
    write_forward(f, o->grpc_forward);

    /* Rules and locations of this server match paths of gRPC only: "grpc"
       rejects REST, which has its own port or is off. */
    restricted_write_grpc(f, &o->grpc_restricted);
    write_all(f, o, " grpc");
    fprintf(f, "        location ~ \"/(Repository|TraceSetting|LogSettings"
            "|(System|Cuda)SharedMemory)\" {\n"
            "            inference repository trace logging%s grpc;\n",
            o->client_shm ? " shared_memory" : "");
    control_from_write(f, o->control_from);
    fputs("        }\n", f);
    control_from_write_grpc_answer(f, o->control_from);
}

static void
write_tls(FILE *f, const options_t *o)
{
    fputs("        ssl_certificate ", f);
    write_path(f, o->ssl_cert);
    fputs(";\n        ssl_certificate_key ", f);
    write_path(f, o->ssl_key);
    fputs(";\n        ssl_protocols TLSv1.2 TLSv1.3;\n", f);
    if (o->ssl_mutual) {
        fputs("        ssl_verify_client on;\n"
              "        ssl_client_certificate ", f);
        write_path(f, o->ssl_root);
        fputs(";\n", f);
    }
}

static void
write_metrics(FILE *f, const options_t *o)
{
    (void) o;
    fputs("        location / {\n"
          "            inference metrics;\n"
          "        }\n", f);
}

/* Rewrites the platform's paths to those of REST before rules and locations are
   matched; other paths do not exist. */
static void
write_sagemaker(FILE *f, const options_t *o)
{
    const char *ping = environment("SAGEMAKER_TRITON_PING_MODE", "ready");
    const char *kind = environment("SAGEMAKER_TRITON_INFERENCE_TYPE", "infer");
    const char *model = environment("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME",
                          "unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME");

    fputs("        set $inference_to \"\";\n", f);
    write_route(f, "/ping", "/v2/health/%s", ping);
    write_route(f, "/invocations", "/v2/models/%s/%s", model, kind);
    fputs("        if ($uri ~ \"^/models/(?<inference_name>[^/]+)/invoke$\") {"
          " set $inference_to \"/v2/models/$inference_name/infer\"; }\n"
          "        if ($uri ~ \"^/models(?<inference_archive>/[^/]+)?$\") {"
          " set $inference_to \"/v2/archives$inference_archive\"; }\n", f);
    write_platform(f, o, "sagemaker", "");
    fputs("        inference_errors sagemaker;\n"
          "        location ~ \"^/v2/archives(/|$)\" {\n"
          "            inference archives;\n", f);
    control_from_write(f, o->control_from);
    fputs("        }\n", f);
    control_from_write_answer(f, o->control_from);
}

/* The header selects another endpoint than the default model's.  The platform
   posts every request, and of a POST error_page makes the GET that most of
   those endpoints need.  The server is gone through again then, with the route
   as it was set. */
static void
write_vertex(FILE *f, const options_t *o)
{
    const char *predict = environment("AIP_PREDICT_ROUTE", "/");

    fputs("        set $inference_redirect \"\";\n"
          "        set $inference_get \"\";\n", f);
    write_route(f, environment("AIP_HEALTH_ROUTE", "/"), "/v2/health/ready");
    write_route(f, predict, "/v2/models/%s/infer", o->vertex_model);
    fprintf(f, "        if ($uri = \"%s\") { set $inference_redirect"
            " $http_x_vertex_ai_triton_redirect; }\n"
            "        if ($inference_redirect != \"\")"
            " { set $inference_to \"\"; }\n"
            "        if ($inference_redirect ~ \"^/?(?<inference_path>v2/.+)\")"
            " { set $inference_to /$inference_path; }\n"
            "        if ($inference_redirect ~ \"^/?(?<inference_got>%sv2("
            "/health/(live|ready)|/models/[^/]+(/versions/[^/]+)?"
            "(/(config|ready|stats))?)?)$\")"
            " { set $inference_to /$inference_got;"
            " set $inference_get $request_method; }\n"
            "        error_page 418 = $inference_to;\n"
            "        if ($inference_get = POST) { return 418; }\n",
            predict, o->service[SERVICE_METRICS].on ? "metrics|" : "");
    write_platform(f, o, "vertex-ai", " requests");
    if (o->service[SERVICE_METRICS].on) {
        fputs("        location = /metrics {\n"
              "            inference metrics;\n"
              "        }\n", f);
    }
    write_forbidden(f, "(system|cuda)sharedmemory/",
                    "shared memory is not registered over this port");
    write_forbidden(f, "repository/(.+/)?models/.+/(un)?load$",
                    "models are not loaded or unloaded over this port");
}

/* Inferences may use regions, if allowed; as in Triton, clients of this port
   cannot register regions or load models. */
static void
write_forbidden(FILE *f, const char *paths, const char *why)
{
    fprintf(f, "        location ~ \"^/v2/%s\" {\n"
            "            return 403 '{\"error\":\"%s\"}';\n"
            "        }\n", paths, why);
}

static void
write_route(FILE *f, const char *path, const char *to, ...)
{
    va_list args;

    fprintf(f, "        if ($uri = \"%s\") { set $inference_to \"", path);
    va_start(args, to);
    vfprintf(f, to, args);
    va_end(args);
    fputs("\"; }\n", f);
}

/* Binary tensors are announced by the media type, as platforms may pass on no
   other header. */
static void
write_platform(FILE *f, const options_t *o, const char *name,
    const char *which)
{
    fprintf(f, "        default_type application/json;\n"
            "        inference_binary_type"
            " application/vnd.%s-triton.binary+json%s;\n"
            "        if ($inference_to = \"\") {"
            " return 400 '{\"error\":\"not found on this port\"}'; }\n"
            "        rewrite ^ $inference_to;\n", name, which);
    restricted_write_http(f, &o->http_restricted);
    write_all(f, o, "");
}

static const char *
environment(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : otherwise;
}

/* Writes the server for the launcher's own requests. */
static void
write_own(FILE *f, const places_t *places)
{
    char address[sizeof("unix:") + SOCKET_PATH_MAX] = "unix:";

    socket_path(address + strlen(address), places);
    fputs("    server {\n        listen ", f);
    write_word(f, address);
    /* polls of the start would log an error each while there is no core */
    fputs(";\n"
          "        error_log stderr crit;\n"
          "        location / {\n"
          "            inference health metadata repository status;\n"
          "        }\n"
          "    }\n", f);
}
