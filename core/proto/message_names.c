#include "core/proto/message_names.h"
#include "core/proto/message_wire.h"

inf_names_t
inf_message_names(inf_slice_t bytes, inf_names_fields_t fields)
{
    inf_names_t names = { { "", 0 }, { "", 0 } };
    const char *p = bytes.data;
    size_t left = bytes.len;

    while (left != 0) {
        inf_wire_head_t head;
        const char *reason;

        if (inf_wire_head(p, left, &head, &reason) != INF_WIRE_OK
            || head.body > left - head.len)
        {
            break;
        }

        inf_slice_t value = inf_slice(p + head.len, (size_t) head.body);

        if (head.type == INF_WIRE_LEN && head.field == fields.model) {
            names.model = value;
        } else if (head.type == INF_WIRE_LEN && head.field == fields.version) {
            names.version = value;
        }

        p += head.len + value.len;
        left -= head.len + value.len;
    }

    return names;
}
