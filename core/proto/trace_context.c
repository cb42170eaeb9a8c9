#include "core/proto/trace_context.h"

static bool read_hex(const char *text, unsigned n, uint8_t *out);
static int digit(char c);
static bool is_zero(const uint8_t *bytes, unsigned n);

/* Parses VERSION-TRACE_ID-SPAN_ID-FLAGS; later versions may continue after
   "-". */
bool
inf_trace_context_read(inf_slice_t text, inf_trace_context_t *out)
{
    const char *p = text.data;
    uint8_t version, flags;

    if (text.len < INF_TRACEPARENT_LEN || p[2] != '-' || p[35] != '-'
        || p[52] != '-' || !read_hex(p, 1, &version) || version == 0xff
        || !read_hex(p + 3, INF_TRACE_ID, out->trace_id)
        || !read_hex(p + 36, INF_SPAN_ID, out->span_id)
        || !read_hex(p + 53, 1, &flags))
    {
        return false;
    }
    if (text.len > INF_TRACEPARENT_LEN
        && (version == 0 || p[INF_TRACEPARENT_LEN] != '-'))
    {
        return false;
    }

    out->sampled = flags & 1;
    return !is_zero(out->trace_id, INF_TRACE_ID)
        && !is_zero(out->span_id, INF_SPAN_ID);
}

bool
inf_trace_state_valid(inf_slice_t text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char) text.data[i];
        if ((c < 0x20 && c != '\t') || c > 0x7e) {
            return false;
        }
    }

    return text.len > 0 && text.len <= INF_TRACESTATE_MAX;
}

void
inf_trace_hex(const uint8_t *bytes, unsigned n, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (unsigned i = 0; i < n; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

/* Reads lower-case hexadecimal digits. */
static bool
read_hex(const char *text, unsigned n, uint8_t *out)
{
    for (unsigned i = 0; i < n; i++) {
        int high = digit(text[2 * i]);
        int low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (uint8_t) (high << 4 | low);
    }
    return true;
}

static int
digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
is_zero(const uint8_t *bytes, unsigned n)
{
    uint8_t any = 0;

    for (unsigned i = 0; i < n; i++) {
        any |= bytes[i];
    }
    return any == 0;
}
