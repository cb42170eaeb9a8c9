#include "core/base/os/process_end.h"

#include <stdio.h>
#include <string.h>

inf_process_end_t
inf_process_end(idtype_t type, id_t id, char *text, size_t cap)
{
    siginfo_t info = { .si_pid = 0 };
    if (waitid(type, id, &info, WEXITED | WNOWAIT | WNOHANG) != 0) {
        return INF_PROCESS_GONE;
    }
    if (info.si_pid == 0) {
        return INF_PROCESS_LIVES;
    }

    if (info.si_code == CLD_EXITED) {
        if (text != NULL) {
            snprintf(text, cap, "exited with status %d", info.si_status);
        }
        return info.si_status == 0 ? INF_PROCESS_DONE : INF_PROCESS_FAILED;
    }

    const char *name = sigdescr_np(info.si_status);
    if (text != NULL) {
        snprintf(text, cap, "was killed by signal %d (%s)", info.si_status,
            name != NULL ? name : "unknown");
    }
    return INF_PROCESS_FAILED;
}

void
inf_process_name(pid_t pid, char *name, size_t cap)
{
    char path[40];
    snprintf(path, sizeof(path), "/proc/%d/comm", (int) pid);
    snprintf(name, cap, "?");

    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return;
    }
    if (fgets(name, (int) cap, f) != NULL) {
        name[strcspn(name, "\n")] = '\0';
    }
    fclose(f);
}
