#include "control_from.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define REJECTED                                                              \
    "this client may not control the server: inference-server was started "   \
    "with --control-from=%s"

static bool next_part(const char **list, char part[CONTROL_FROM_PART_MAX]);
static bool is_network(const char *text);

int
control_from_check(const char *list, char part[CONTROL_FROM_PART_MAX])
{
    bool first = true;

    while (next_part(&list, part)) {
        bool alone = strcmp(part, "all") == 0 || strcmp(part, "none") == 0;

        if (alone ? !first || list != NULL
            : strcmp(part, "loopback") != 0 && !is_network(part))
        {
            return -1;
        }
        first = false;
    }
    return 0;
}

void
control_from_write(FILE *f, const char *list)
{
    char part[CONTROL_FROM_PART_MAX];

    if (strcmp(list, "all") == 0) {
        return;
    }

    while (next_part(&list, part)) {
        if (strcmp(part, "loopback") == 0) {
            fputs("            allow 127.0.0.0/8;\n"
                  "            allow ::1;\n"
                  "            allow unix:;\n", f);

        } else if (strcmp(part, "none") != 0) {
            fprintf(f, "            allow %s;\n", part);
        }
    }

    /* browsers send Origin with requests of web pages */
    fputs("            deny all;\n"
          "            if ($http_origin) { return 403; }\n"
          "            error_page 403 = @control;\n", f);
}

void
control_from_write_answer(FILE *f, const char *list)
{
    if (strcmp(list, "all") == 0) {
        return;
    }

    fprintf(f,
            "        location @control {\n"
            "            default_type application/json;\n"
            "            return 403 '{\"error\":\"" REJECTED "\"}';\n"
            "        }\n", list);
}

/* The status is in the headers of an answer without a body:
   PERMISSION_DENIED. */
void
control_from_write_grpc_answer(FILE *f, const char *list)
{
    if (strcmp(list, "all") == 0) {
        return;
    }

    fprintf(f,
            "        location @control {\n"
            "            default_type application/grpc;\n"
            "            add_header grpc-status 7 always;\n"
            "            add_header grpc-message \"" REJECTED "\" always;\n"
            "            return 200;\n"
            "        }\n", list);
}

/* Moves *list to the next piece, or sets it to NULL; false: it was NULL.  A
   piece that is too long is truncated, and then not a valid network. */
static bool
next_part(const char **list, char part[CONTROL_FROM_PART_MAX])
{
    if (*list == NULL) {
        return false;
    }

    size_t len = strcspn(*list, ",");

    snprintf(part, CONTROL_FROM_PART_MAX, "%.*s", (int) len, *list);
    *list = (*list)[len] == ',' ? *list + len + 1 : NULL;
    return true;
}

/* Whether text is an address, or address/bits. */
static bool
is_network(const char *text)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char          address[INET6_ADDRSTRLEN];
    size_t        len = strcspn(text, "/");
    long          max;

    if (len >= sizeof(address)) {
        return false;
    }
    memcpy(address, text, len);
    address[len] = '\0';

    if (inet_pton(AF_INET, address, bytes) == 1) {
        max = 32;

    } else if (inet_pton(AF_INET6, address, bytes) == 1) {
        max = 128;

    } else {
        return false;
    }

    const char *bits = text + len + (text[len] == '/');

    if (text[len] == '\0') {
        return true;
    }
    return bits[0] != '\0' && strlen(bits) <= 3
        && strspn(bits, "0123456789") == strlen(bits)
        && strtol(bits, NULL, 10) <= max;
}
