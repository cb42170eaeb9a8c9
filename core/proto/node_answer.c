#include "core/proto/node_answer.h"

#include <strings.h>

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads the line at p without its end; *next is after it.  false:
   incomplete. */
static bool
read_line(const char *p, const char *end, inf_slice_t *line,
    const char **next)
{
    const char *lf = memchr(p, '\n', (size_t) (end - p));
    if (lf == NULL) {
        return false;
    }

    size_t len = (size_t) (lf - p);
    if (len > 0 && p[len - 1] == '\r') {
        len--;
    }

    *line = inf_slice(p, len);
    *next = lf + 1;
    return true;
}

/* Parses "HTTP/1.x NNN", with or without a reason. */
static bool
read_status(inf_slice_t line, uint32_t *status)
{
    static const char version[] = "HTTP/1.";
    const size_t prefix = sizeof(version) - 1;
    const char *p = line.data;

    if (line.len < prefix + 5 || memcmp(p, version, prefix) != 0
        || !is_digit(p[prefix]) || p[prefix + 1] != ' ')
    {
        return false;
    }

    p += prefix + 2;
    if (p[0] == '0' || !is_digit(p[0]) || !is_digit(p[1]) || !is_digit(p[2])
        || (line.len > prefix + 5 && p[3] != ' '))
    {
        return false;
    }

    *status = (uint32_t) ((p[0] - '0') * 100 + (p[1] - '0') * 10
                          + (p[2] - '0'));
    return true;
}

/* The value if the line is this header; otherwise empty. */
static inf_slice_t
header_value(inf_slice_t line, inf_slice_t name)
{
    if (line.len <= name.len || line.data[name.len] != ':'
        || strncasecmp(line.data, name.data, name.len) != 0)
    {
        return inf_slice(NULL, 0);
    }

    const char *p = line.data + name.len + 1;
    const char *end = line.data + line.len;
    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }

    return inf_slice(p, (size_t) (end - p));
}

/* Reads a number that ends with the text or before a comma. */
static inf_node_queue_state_t
read_queue(const char *p, const char *end, uint32_t *queue)
{
    uint32_t n = 0;

    if (p == end || !is_digit(*p)) {
        return INF_NODE_QUEUE_INVALID;
    }

    for (; p < end && is_digit(*p); p++) {
        n = n * 10 + (uint32_t) (*p - '0');
        if (n > INF_NODE_QUEUE_MAX) {
            return INF_NODE_QUEUE_INVALID;
        }
    }

    if (p < end && *p != ',' && *p != ' ') {
        return INF_NODE_QUEUE_INVALID;
    }

    *queue = n;
    return INF_NODE_QUEUE_REPORTED;
}

/* Finds the queue in "TEXT name=value, name=value". */
static void
find_queue(inf_node_answer_t *out)
{
    static const char format[] = "TEXT ";
    static const char name[] = "named_metrics." INF_NODE_QUEUE_NAME "=";
    const char *p = out->report.data;
    const char *end = p + out->report.len;

    if (out->report.len < sizeof(format) - 1
        || memcmp(p, format, sizeof(format) - 1) != 0)
    {
        out->queue_state = INF_NODE_QUEUE_INVALID;
        return;
    }

    for (p += sizeof(format) - 1; p < end; p++) {
        if ((size_t) (end - p) >= sizeof(name) - 1
            && memcmp(p, name, sizeof(name) - 1) == 0)
        {
            out->queue_state = read_queue(p + sizeof(name) - 1, end,
                                          &out->queue);
            return;
        }

        p = memchr(p, ',', (size_t) (end - p));
        if (p == NULL) {
            return;
        }
        if (p + 1 < end && p[1] == ' ') {
            p++;
        }
    }
}

inf_node_answer_state_t
inf_node_answer_read(inf_slice_t bytes, inf_node_answer_t *out)
{
    static const char http[] = "HTTP/1.";
    const char *p = bytes.data;
    const char *end = p + bytes.len;
    inf_slice_t line;

    *out = (inf_node_answer_t) { .queue_state = INF_NODE_QUEUE_NONE };

    /* rejects other protocols before the first line is complete */
    size_t begun = bytes.len < sizeof(http) - 1 ? bytes.len : sizeof(http) - 1;
    if (begun > 0 && memcmp(http, p, begun) != 0) {
        return INF_NODE_ANSWER_GARBAGE;
    }

    if (begun < sizeof(http) - 1 || !read_line(p, end, &line, &p)) {
        return INF_NODE_ANSWER_PARTIAL;
    }

    if (!read_status(line, &out->status)) {
        return INF_NODE_ANSWER_GARBAGE;
    }

    for (;;) {
        if (!read_line(p, end, &line, &p)) {
            return INF_NODE_ANSWER_PARTIAL;
        }

        if (line.len == 0) {
            break;
        }

        if (out->report.len == 0) {
            out->report = header_value(line,
                INF_SLICE("endpoint-load-metrics"));
        }
        if (header_value(line, INF_SLICE("transfer-encoding")).len > 0) {
            out->chunked = true;
        }
    }

    out->head = (size_t) (p - bytes.data);

    if (out->report.len > 0) {
        find_queue(out);
    }

    return INF_NODE_ANSWER_COMPLETE;
}
