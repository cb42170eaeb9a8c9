/*
 * admission.h - admits workers to this core: registrations, external
 *               connections, and the limit of channels.
 *
 * Owner    The intake owns it, and the sockets of the options; external
 *          connections are its own until they close or time out.
 * Thread   the intake role.
 * Units    ns.
 * Errors   A rejected process sees the end of its socket; the reason is logged,
 *          at a limited rate.
 * Route    registration socket, external socket -> [admission] -> intake
 */

#ifndef INF_SERVICE_ADMISSION_H
#define INF_SERVICE_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/error.h"
#include "core/base/queue.h"
#include "core/wire/server.h"

typedef struct inf_admission_s inf_admission_t;

/* A connection or channel, counted for its process. */
typedef struct {
    inf_link_t  link;
    uint32_t    pid;                /* from the kernel; 0: unknown           */
} inf_peer_t;

typedef struct {
    int         registration_fd;    /* the core's end of the pair; -1: none  */
    int         configure_fd;       /* hangs up when nginx has gone          */
    int         listen_fd;          /* for external connections; -1: none    */
    const uid_t *users;             /* admitted users besides ours and root  */
    size_t      user_count;
    uint64_t    response_bound;     /* bytes per worker                      */
    uint64_t    pinned_bytes;       /* begin of each arena, to be pinned if
                                       there is a GPU                        */
    uint64_t    generation;         /* of the current configuration          */
    const inf_link_t *channels;     /* inf_peer_t of each; the caller's      */

    /* Called for an open channel of a worker; takes the reference, even on
       error. */
    inf_err_t *(*admitted)(void *userp, inf_channel_t *channel, uint32_t pid);
    void       *userp;
} inf_admission_options_t;

/* Copies the options; the descriptors stay the caller's. */
INF_CHECK inf_err_t *inf_admission_new(const inf_admission_options_t *options,
    inf_admission_t **out);
void inf_admission_free(inf_admission_t *a);

/* A descriptor that is readable when inf_admission_poll has something to do. */
int inf_admission_fd(const inf_admission_t *a);

/* Accepts connections and reads messages once, without waiting. */
void inf_admission_poll(inf_admission_t *a);

/* Whether there are external connections, which may have to be closed. */
bool inf_admission_has_connections(const inf_admission_t *a);

/* Closes external connections that have not registered in time. */
void inf_admission_trim(inf_admission_t *a, uint64_t now_ns);

/* Counts a log line about a worker; false: the limit of this second is
   reached. */
bool inf_admission_may_log(inf_admission_t *a);

#endif /* INF_SERVICE_ADMISSION_H */
