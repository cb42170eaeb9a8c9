/* intake_events.c - waits for and handles events in the thread with the intake
   role. */

#include "core/service/intake_parts.h"

#include <sys/epoll.h>

#include "core/base/clock.h"
#include "core/base/os/events.h"
#include "core/service/configuration_socket.h"
#include "core/wire/sockets.h"

#define INTAKE_EVENTS 64

static void on_events(inf_intake_t *in, const struct epoll_event *events,
    int count);
static void on_event(inf_intake_t *in, inf_intake_source_t *source,
    uint32_t events);
static void on_configure(inf_intake_t *in);

void
inf_intake_wait(inf_intake_t *in, int timeout_ms)
{
    struct epoll_event events[INTAKE_EVENTS];

    on_events(in, events, epoll_wait(in->epoll_fd, events, INTAKE_EVENTS,
        timeout_ms));
}

void
inf_intake_wait_until(inf_intake_t *in, uint64_t until_ns)
{
    struct epoll_event events[INTAKE_EVENTS];
    uint64_t now = inf_clock_ns();
    uint64_t left = until_ns > now ? until_ns - now : 0;

    if (left > inf_intake_longest_sleep(in)) {
        left = inf_intake_longest_sleep(in);
    }

    on_events(in, events, inf_events_wait(in->epoll_fd, events,
        INTAKE_EVENTS, left));
}

static void
on_events(inf_intake_t *in, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        on_event(in, events[i].data.ptr, events[i].events);
    }
}

static void
on_event(inf_intake_t *in, inf_intake_source_t *source, uint32_t events)
{
    switch (*source) {
    case INF_INTAKE_WAKE:
        inf_eventfd_clear(in->wake_fd);
        if (in->server != NULL) {
            inf_registry_refresh(&in->models);
        }
        break;
    case INF_INTAKE_ADMISSION:
        inf_admission_poll(in->admission);
        break;
    case INF_INTAKE_CONFIGURE:
        on_configure(in);
        break;
    case INF_INTAKE_IGNORED:
        inf_ignored_models_take(in->ignored);
        break;
    case INF_INTAKE_EVENTFD:
        break;                  /* edge-triggered; the next poll drains it   */
    case INF_INTAKE_CONTROL:
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
            inf_link_entry(source, inf_intake_session_t, control)->over =
                "its worker is gone";
        }
        break;
    }
}

static void
on_configure(inf_intake_t *in)
{
    int fd;
    uint64_t generation;

    switch (inf_configuration_receive(in->options.configure_fd, &fd,
        &generation))
    {
    case INF_CONFIGURATION_NONE:
        break;
    case INF_CONFIGURATION_BEAT:
        in->options.beat(in->options.userp);
        break;
    case INF_CONFIGURATION_CAME:
        in->options.configure(in->options.userp, fd, generation);
        break;
    case INF_CONFIGURATION_CLOSED:
        epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, in->options.configure_fd,
            NULL);
        in->orphaned = true;
        inf_intake_stop_if_alone(in);
        break;
    }
}
