/*
 * xor.c - copies the model into a directory of its own, decrypting what is
 * called <name>.xor into <name> with the byte that the parameter "key" gives,
 * and has the model loaded from there.
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "triton/core/tritonrepoagent.h"

static int
copy_file(const char *from, const char *to, int key)
{
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    int c, failed = in == NULL || out == NULL;

    while (!failed && (c = getc(in)) != EOF) {
        failed = putc(c ^ key, out) == EOF;
    }
    if (in != NULL) {
        fclose(in);
    }
    return (out != NULL && fclose(out) != 0) || failed;
}

static int
copy_tree(const char *from, const char *to, int key)
{
    struct dirent *ent;
    struct stat sb;
    int failed = 0;

    DIR *d = opendir(from);
    if (d == NULL) {
        return 1;
    }

    while (!failed && (ent = readdir(d)) != NULL) {
        char source[4096], target[4096];
        size_t len = strlen(ent->d_name);

        if (ent->d_name[0] == '.') {
            continue;
        }
        snprintf(source, sizeof(source), "%s/%s", from, ent->d_name);
        snprintf(target, sizeof(target), "%s/%s", to, ent->d_name);
        if (stat(source, &sb) != 0) {
            failed = 1;
        } else if (S_ISDIR(sb.st_mode)) {
            failed = mkdir(target, 0700) != 0
                || copy_tree(source, target, key);
        } else if (len > 4 && strcmp(ent->d_name + len - 4, ".xor") == 0) {
            target[strlen(target) - 4] = '\0';
            failed = copy_file(source, target, key);
        } else {
            failed = copy_file(source, target, 0);
        }
    }

    closedir(d);
    return failed;
}

TRITONREPOAGENT_ISPEC TRITONSERVER_Error *
TRITONREPOAGENT_ModelAction(TRITONREPOAGENT_Agent *agent,
    TRITONREPOAGENT_AgentModel *model,
    const TRITONREPOAGENT_ActionType action_type)
{
    TRITONREPOAGENT_ArtifactType type;
    const char *from, *to, *name, *value;

    if (action_type != TRITONREPOAGENT_ACTION_LOAD) {
        return NULL;
    }

    TRITONSERVER_Error *err = TRITONREPOAGENT_ModelRepositoryLocation(agent,
        model, &type, &from);
    if (err == NULL) {
        err = TRITONREPOAGENT_ModelRepositoryLocationAcquire(agent, model,
            TRITONREPOAGENT_ARTIFACT_FILESYSTEM, &to);
    }
    if (err == NULL) {
        err = TRITONREPOAGENT_ModelParameter(agent, model, 0, &name, &value);
    }
    if (err == NULL && copy_tree(from, to, atoi(value)) != 0) {
        err = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
            "cannot copy the model");
    }
    if (err == NULL) {
        err = TRITONREPOAGENT_ModelRepositoryUpdate(agent, model,
            TRITONREPOAGENT_ARTIFACT_FILESYSTEM, to);
    }
    return err;
}
