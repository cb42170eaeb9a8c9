/*
 * code_upload.h - checks whether files or settings of a load request are code,
 *                 name code, or ask for too many threads.
 *
 * Owner    none; arguments are only read.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: a file is code, or its backend may execute it, or the
 *          configuration names other files; the message has the file, or key
 *          and value, and the directive.
 * Route    lifecycle -> [code upload] -> override
 *
 * A client that may load models controls which models serve; a client whose
 * files are executed controls the core, and needs a separate permission
 * (inference_code_upload).  Without it a file must pass three tests: of its
 * name, of its first bytes, and of its model's backend.  Also, the
 * configuration may not name files, libraries or agents that the model's
 * configuration in its repository does not name, nor ask for many threads per
 * processor.  The limit of instances, INF_INSTANCES_MAX_REQUESTED, is checked
 * when the groups are known.
 */

#ifndef INF_REPOSITORY_CODE_UPLOAD_H
#define INF_REPOSITORY_CODE_UPLOAD_H

#include <stddef.h>

#include "core/model/model_config.h"
#include "core/repository/override.h"

/* Why a file is code, as words that follow "it is"; NULL: the file itself is
   not. path is as sent, below the model's directory. */
const char *inf_code_upload_is_code(const char *path, const char *data,
    size_t len);

/* Checks the files of o, which may be NULL or without files. */
INF_CHECK inf_err_t *inf_code_upload_check_files(const inf_override_t *o);

/* Checks the files by the backend that the configuration names or implies; "":
   none. */
INF_CHECK inf_err_t *inf_code_upload_check_backend(const inf_override_t *o,
    const char *backend);

/*
 * Checks a request's configuration, sent, against own, that of the repository
 * (or NULL).  Settings that are in own are allowed.
 */
INF_CHECK inf_err_t *inf_code_upload_check_config(
    const Inference__ModelConfig *sent, const Inference__ModelConfig *own);

/*
 * Checks private inputs: if own says that the backend writes to its inputs,
 * sent must keep the copies, without which the backend ends the core.
 */
INF_CHECK inf_err_t *inf_code_upload_check_inputs(
    const Inference__ModelConfig *sent, const Inference__ModelConfig *own);

#endif /* INF_REPOSITORY_CODE_UPLOAD_H */
