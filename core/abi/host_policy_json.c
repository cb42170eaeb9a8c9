#include "core/abi/host_policy_json.h"

#include <string.h>

#include "core/proto/message_json.h"

static bool is_overridden(const inf_host_policies_t *policies, size_t at);

void
inf_host_policy_json(const inf_host_policies_t *policies, const char *policy,
    inf_buf_t *out)
{
    bool first = true;

    inf_buf_putc(out, '{');
    inf_json_put_string(out, inf_slice_str(policy));
    inf_buf_puts(out, ":{");

    for (size_t i = 0; policies != NULL && i < policies->count; i++) {
        const inf_host_setting_t *s = &policies->items[i];
        if (strcmp(s->policy, policy) != 0 || is_overridden(policies, i)) {
            continue;
        }

        if (!first) {
            inf_buf_putc(out, ',');
        }
        first = false;
        inf_json_put_string(out, inf_slice_str(s->key));
        inf_buf_putc(out, ':');
        inf_json_put_string(out, inf_slice_str(s->value));
    }

    inf_buf_puts(out, "}}");
}

static bool
is_overridden(const inf_host_policies_t *policies, size_t at)
{
    const inf_host_setting_t *s = &policies->items[at];

    for (size_t i = at + 1; i < policies->count; i++) {
        if (strcmp(policies->items[i].policy, s->policy) == 0
            && strcmp(policies->items[i].key, s->key) == 0)
        {
            return true;
        }
    }

    return false;
}
