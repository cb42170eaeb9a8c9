/* file.c - see file.h */

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static TRITONSERVER_Error *failed(int error);

TRITONSERVER_Error *
trees_file_open(trees_file_t *file, const char *path)
{
    TRITONSERVER_Error *err = NULL;
    struct stat st;

    *file = (trees_file_t) { .data = "" };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1) {
        return failed(errno);
    }

    if (fstat(fd, &st) != 0) {
        err = failed(errno);

    } else if (st.st_size > 0) {        /* an empty one cannot be mapped     */
        void *data = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE,
            fd, 0);

        if (data == MAP_FAILED) {
            err = failed(errno);
        } else {
            file->data = data;
            file->len = (size_t) st.st_size;
        }
    }

    (void) close(fd);
    return err;
}

void
trees_file_close(trees_file_t *file)
{
    if (file->len != 0) {
        (void) munmap((void *) (uintptr_t) file->data, file->len);
    }
    *file = (trees_file_t) { .data = "" };
}

static TRITONSERVER_Error *
failed(int error)
{
    return bk_err_new(error == ENOENT ? TRITONSERVER_ERROR_NOT_FOUND
        : TRITONSERVER_ERROR_INTERNAL, "cannot read: %s", strerror(error));
}
