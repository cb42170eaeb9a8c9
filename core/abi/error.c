/* error.c - TRITONSERVER_Error, which is the core's error object. */

#include "core/abi/objects.h"

TRITONSERVER_Error *
TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char *msg)
{
    return inf_err_new((inf_err_code_t) code, "%s", msg != NULL ? msg : "");
}

void
TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error)
{
    inf_err_free(error);
}

TRITONSERVER_Error_Code
TRITONSERVER_ErrorCode(TRITONSERVER_Error *error)
{
    return (TRITONSERVER_Error_Code) inf_err_code(error);
}

const char *
TRITONSERVER_ErrorCodeString(TRITONSERVER_Error *error)
{
    return inf_err_code_string(inf_err_code(error));
}

const char *
TRITONSERVER_ErrorMessage(TRITONSERVER_Error *error)
{
    return inf_err_msg(error);
}
