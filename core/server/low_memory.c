#include "core/server/low_memory.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

static bool has_word(const char *text, const char *word);

bool
inf_low_memory(const char *text)
{
    static const char *const words[] = {
        "out of memory", "Out of memory", "Out Of Memory", "OUT_OF_MEMORY",
        "OutOfMemory", "OutOfMemoryError", "OOM", "MemoryError",
        "Failed to allocate memory", "failed to allocate memory",
        "CUBLAS_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED",
        "CUDNN_STATUS_NOT_INITIALIZED", "tensor is not initialized",
        "No space left on device"
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (has_word(text, words[i])) {
            return true;
        }
    }

    return false;
}

/* Not as a part of a longer word, such as a model's name. */
static bool
has_word(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    while (at != NULL && ((at > text && isalnum((unsigned char) at[-1]))
            || isalnum((unsigned char) at[strlen(word)])))
    {
        at = strstr(at + 1, word);
    }
    return at != NULL;
}
