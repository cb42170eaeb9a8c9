#include "core/base/os/signal_stack.h"

#include <signal.h>

void
inf_signal_stack_begin(inf_signal_stack_t *s)
{
    const stack_t ours = {
        .ss_sp = s->bytes,
        .ss_size = sizeof(s->bytes)
    };
    stack_t before;

    if (sigaltstack(NULL, &before) == 0 && (before.ss_flags & SS_DISABLE)) {
        (void) sigaltstack(&ours, NULL);
    }
}

/* A stack that a backend has set meanwhile stays. */
void
inf_signal_stack_end(const inf_signal_stack_t *s)
{
    const stack_t none = { .ss_flags = SS_DISABLE };
    stack_t now;

    if (sigaltstack(NULL, &now) == 0 && now.ss_sp == s->bytes) {
        (void) sigaltstack(&none, NULL);
    }
}
