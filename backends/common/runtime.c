/* runtime.c - see runtime.h */

#include "runtime.h"

bool
bk_run_is_abandoned(const bk_run_t *run)
{
    bool all = run->request_count > 0;

    for (uint32_t i = 0; all && i < run->request_count; i++) {
        TRITONSERVER_Error *err = bk_request_check_cancelled(
            run->requests[i].handle);

        all = err != NULL;
        bk_err_drop(err);
    }

    return all;
}
