/*
 * code_upload.h - whether what comes with a load request is code, or names
 *                 it, or asks for more threads than the machine can bear.
 *
 * Owner    nobody: it reads what others own.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: a file is code, or may be run by the backend that
 *          reads it, or the configuration names other files; the message
 *          names the file, or key and value, and the directive.
 * Route    lifecycle -> [code upload] -> override
 *
 * A client that may load models controls which models serve; one whose files
 * are run controls the core.  The second needs permission of its own
 * (inference_code_upload), without which a file has to pass three tests: its
 * name, its first bytes, and the backend that its model is for.  And without
 * it the configuration may name no file, library or agent that the model's
 * configuration in its repository does not name, too, nor ask for many threads
 * for each processor.  The limit of instances, INF_INSTANCES_MAX_REQUESTED, is
 * applied where the groups are known.
 */

#ifndef INF_REPOSITORY_CODE_UPLOAD_H
#define INF_REPOSITORY_CODE_UPLOAD_H

#include <stddef.h>

#include "core/model/model_config.h"
#include "core/repository/override.h"

/* Why a file is code, in words that follow "it is"; NULL: it isn't by itself.
   path is as the client wrote it, below the model's directory. */
const char *inf_code_upload_is_code(const char *path, const char *data,
    size_t len);

/* The files of o; o may be NULL, or hold none. */
INF_CHECK inf_err_t *inf_code_upload_check_files(const inf_override_t *o);

/* The backend that the model's configuration names or implies; "": none. */
INF_CHECK inf_err_t *inf_code_upload_check_backend(const inf_override_t *o,
    const char *backend);

/*
 * sent is a request's configuration as written, own the repository's for that
 * model, or NULL.  A setting that own has too is not judged.
 */
INF_CHECK inf_err_t *inf_code_upload_check_config(
    const Inference__ModelConfig *sent, const Inference__ModelConfig *own);

/*
 * The model's backend writes into its inputs, as own says: without copies of
 * them it ends the core.  sent may not take them away.
 */
INF_CHECK inf_err_t *inf_code_upload_check_inputs(
    const Inference__ModelConfig *sent, const Inference__ModelConfig *own);

#endif /* INF_REPOSITORY_CODE_UPLOAD_H */
