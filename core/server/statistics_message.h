/*
 * statistics_message.h - statistics of model versions as the message of the
 *                        statistics extension.
 *
 * Owner    The message lies in arena and borrows the models' names.
 * Thread   any; counters may change while they are read.
 * Units    ns, bytes; last_inference is ms of wall clock.
 * Errors   INVALID_ARG: no such model or version is ready.
 * Route    calls -> [statistics message] -> client, as JSON or protobuf
 *
 * Source: Triton's statistics extension of KServe v2.
 */

#ifndef INF_SERVER_STATISTICS_MESSAGE_H
#define INF_SERVER_STATISTICS_MESSAGE_H

#include "core/base/arena.h"
#include "core/server/ready_models.h"
#include "grpc_service.pb-c.h"

/* name "": all models; version -1: all versions. */
INF_CHECK inf_err_t *inf_statistics_message(const inf_ready_models_t *ready,
    const char *name, int64_t version, inf_arena_t *arena,
    Inference__ModelStatisticsResponse *out);

#endif /* INF_SERVER_STATISTICS_MESSAGE_H */
