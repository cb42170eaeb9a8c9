/*
 * client_settings.h - settings made by requests that the next core restores:
 *                     the log, traces, and shared memory regions.
 *
 * Owner    The log, the tracer and the set of regions hold the settings; the
 *          journal has a copy of each.
 * Thread   open: the starting thread.  The rest: the one thread that runs all
 *          calls on these settings, so that the journal has their order.
 * Units    none.
 * Errors   none is returned: a setting that cannot be noted or restored is
 *          logged with its name.
 * Route    calls -> [client settings] -> journal -> the next core's
 */

#ifndef INF_SERVER_CLIENT_SETTINGS_H
#define INF_SERVER_CLIENT_SETTINGS_H

#include "core/server/server.h"

/* Whether calls of this method read or change such settings. */
bool inf_client_settings_have(uint16_t method);

/* Notes a call of the method that has succeeded. */
void inf_client_settings_note(inf_server_t *server, uint16_t method,
    const ProtobufCMessage *m);

/* Applies the configuration's settings, then the last core's log and trace
   settings; called before models are loaded. */
void inf_client_settings_open(inf_server_t *server);

/* Restores the regions of the last core; may wait for the kernel and a driver.
   A region whose memory is gone or is another object is skipped. */
void inf_client_settings_restore_regions(inf_server_t *server);

/* Applies a reload; log: it changes log settings. */
void inf_client_settings_configure(inf_server_t *server,
    const inf_core_config_t *config, bool log);

#endif /* INF_SERVER_CLIENT_SETTINGS_H */
