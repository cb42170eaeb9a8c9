/*
 * client_settings.h - what requests have set in this server and the next core
 *                     is to have too: the log, traces, and regions of shared
 *                     memory.
 *
 * Owner    The settings are the log's, the tracer's and the set of regions';
 *          the journal has a copy of each.
 * Thread   open: the start.  The rest: one, which runs all calls that ask for
 *          or change these settings, so that the journal has their order.
 * Units    none.
 * Errors   none is returned: a setting that can't be noted or restored is
 *          logged, with its name.
 * Route    calls -> [client settings] -> journal -> the next core's
 */

#ifndef INF_SERVER_CLIENT_SETTINGS_H
#define INF_SERVER_CLIENT_SETTINGS_H

#include "core/server/server.h"

/* Whether calls of this method ask for such settings, or change them. */
bool inf_client_settings_have(uint16_t method);

/* Notes that a call of the method has succeeded. */
void inf_client_settings_note(inf_server_t *server, uint16_t method,
    const ProtobufCMessage *m);

/* Before models are loaded: what the configuration says, and then the log and
   the traces of the last core. */
void inf_client_settings_open(inf_server_t *server);

/* The regions of the last core, which may wait for the kernel and a driver.
   One whose memory is gone, or is another object by now, is left out. */
void inf_client_settings_restore_regions(inf_server_t *server);

/* A reload; log: it has changed the settings of the log. */
void inf_client_settings_configure(inf_server_t *server,
    const inf_core_config_t *config, bool log);

#endif /* INF_SERVER_CLIENT_SETTINGS_H */
