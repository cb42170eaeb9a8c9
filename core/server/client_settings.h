/*
 * client_settings.h - what requests have set in this server and the next core
 *                     is to have too: the log, traces, and regions of shared
 *                     memory.
 *
 * Owner    The settings are the log's, the tracer's and the set of regions';
 *          the journal has a copy of each.
 * Thread   any.  restore: the start.
 * Units    none.
 * Errors   none is returned: a setting that can't be noted or restored is
 *          logged, with its name.
 * Route    calls -> [client settings] -> journal -> the next core's
 */

#ifndef INF_SERVER_CLIENT_SETTINGS_H
#define INF_SERVER_CLIENT_SETTINGS_H

#include "core/server/server.h"

/* Whether calls of this method change them: they run one at a time, under
   settings_lock, so that the journal has the order in which they were made. */
bool inf_client_settings_have(uint16_t method);

/* With settings_lock: such a call has succeeded. */
void inf_client_settings_note(inf_server_t *server, uint16_t method,
    const ProtobufCMessage *m);

/* With settings_lock: a reload has changed the settings of the log; regions: clients may still
   have some. */
void inf_client_settings_configured(inf_server_t *server, bool log,
    bool regions);

/* The settings of the last core.  A region whose memory is gone is left out. */
void inf_client_settings_restore(inf_server_t *server);

#endif /* INF_SERVER_CLIENT_SETTINGS_H */
