/* cuda_images.c - what is in the text or binary of a module: which devices it
   is for, and what its functions take. */

#include "inside.h"

#include <ctype.h>
#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "images.h"

#define MACHINE_CUDA  190
#define FATBIN_MAGIC  "\x50\xed\x55\xba"
#define IMAGE_MAX     (256u << 20)

typedef struct {
    uint32_t magic;
    uint16_t version;
    uint16_t head_size;
    uint64_t size;
} fatbin_t;

static void
say(image_t *i, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(i->log, sizeof(i->log), format, args);
    va_end(args);
}

/* ---- binaries ------------------------------------------------------------ */

/* The furthest byte that a section or the tables reach. */
static size_t
elf_size(const Elf64_Ehdr *e)
{
    size_t size = e->e_shoff + (size_t) e->e_shnum * e->e_shentsize;

    size = size < sizeof(*e) ? sizeof(*e) : size;
    for (unsigned i = 0; i < e->e_shnum; i++) {
        const Elf64_Shdr *s = (const void *) ((const char *) e + e->e_shoff
            + (size_t) i * e->e_shentsize);
        if (s->sh_type != SHT_NOBITS && s->sh_offset + s->sh_size > size) {
            size = s->sh_offset + s->sh_size;
        }
    }
    return size;
}

/* Since version 8 of its ABI the number is in the next byte. */
static int
elf_architecture(const Elf64_Ehdr *e)
{
    return e->e_ident[EI_ABIVERSION] >= 8 ? (int) (e->e_flags >> 8 & 0xff)
        : (int) (e->e_flags & 0xff);
}

/* Those of the same generation run what is for an older one of it. */
static result_t
read_elf(image_t *i, const device_t *d)
{
    const Elf64_Ehdr *e = (const void *) i->bytes;

    if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != MACHINE_CUDA
        || (e->e_shnum > 0 && e->e_shentsize != sizeof(Elf64_Shdr)))
    {
        return GPU_INVALID_IMAGE;
    }

    i->size = elf_size(e);
    if (i->size > IMAGE_MAX) {
        return GPU_INVALID_IMAGE;
    }
    int sm = elf_architecture(e);
    return sm / 10 == d->major && sm % 10 <= d->minor ? INF_CU_SUCCESS
        : GPU_NO_BINARY_FOR_GPU;
}

static bool
elf_has(const module_t *m, const char *name)
{
    const Elf64_Ehdr *e = (const void *) m->image;

    for (unsigned i = 0; i < e->e_shnum; i++) {
        const Elf64_Shdr *s = (const void *) (m->image + e->e_shoff
            + (size_t) i * sizeof(Elf64_Shdr));
        if (s->sh_type != SHT_SYMTAB || s->sh_link >= e->e_shnum) {
            continue;
        }

        const Elf64_Shdr *t = (const void *) (m->image + e->e_shoff
            + (size_t) s->sh_link * sizeof(Elf64_Shdr));
        const Elf64_Sym *symbols = (const void *) (m->image + s->sh_offset);
        for (size_t k = 0; k < s->sh_size / sizeof(*symbols); k++) {
            if (symbols[k].st_name < t->sh_size && strncmp(m->image
                    + t->sh_offset + symbols[k].st_name, name,
                    t->sh_size - symbols[k].st_name) == 0)
            {
                return true;
            }
        }
    }
    return false;
}

/* Its parts may be compressed: a name in sight is taken for a function. */
static bool
fatbin_has(const module_t *m, const char *name)
{
    return memmem(m->image, m->size, name, strlen(name)) != NULL;
}

/* ---- text ---------------------------------------------------------------- */

static const char *
skip_blanks(const char *p)
{
    for (;;) {
        while (isspace((unsigned char) *p)) {
            p++;
        }
        if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*' && strstr(p, "*/") != NULL) {
            p = strstr(p, "*/") + 2;
        } else {
            return p;
        }
    }
}

static int
line_of(const char *text, const char *at)
{
    int line = 1;

    for (; text < at; text++) {
        line += *text == '\n';
    }
    return line;
}

/* The braces are all of the syntax that is checked. */
static bool
is_balanced(image_t *i)
{
    int depth = 0;
    const char *p = (const char *) i->bytes;

    for (; *p != '\0' && depth >= 0; p++) {
        depth += *p == '{' ? 1 : *p == '}' ? -1 : 0;
    }
    if (depth != 0) {
        say(i, "input, line %d; error: unbalanced braces",
            line_of((const char *) i->bytes, p));
    }
    return depth == 0;
}

/* FAKE_CUDA_PTX_VERSION: the newest text that the driver understands. */
static result_t
read_ptx(image_t *i, const device_t *d)
{
    const char *text = (const char *) i->bytes;
    const char *p = skip_blanks(text);
    const char *newest = getenv("FAKE_CUDA_PTX_VERSION");
    const char *target;
    int major, minor, top_major = 9, top_minor = 9, sm;

    if (sscanf(p, ".version %d.%d", &major, &minor) != 2) {
        return GPU_INVALID_IMAGE;
    }
    i->size = strlen(text) + 1;
    if (newest != NULL) {
        sscanf(newest, "%d.%d", &top_major, &top_minor);
    }
    if (major > top_major || (major == top_major && minor > top_minor)) {
        say(i, "input, line %d; error: unsupported .version %d.%d; this "
            "driver knows %d.%d", line_of(text, p), major, minor, top_major,
            top_minor);
        return GPU_UNSUPPORTED_PTX;
    }
    target = strstr(p, ".target");
    if (target == NULL || sscanf(target, ".target sm_%d", &sm) != 1) {
        say(i, "input, line %d; error: no .target", line_of(text, p));
        return GPU_INVALID_PTX;
    }
    if (sm > d->major * 10 + d->minor) {
        say(i, "input, line %d; error: .target sm_%d is newer than the device",
            line_of(text, target), sm);
        return GPU_INVALID_PTX;
    }
    return is_balanced(i) ? INF_CU_SUCCESS : GPU_INVALID_PTX;
}

/* Behind ".entry NAME"; NULL: there is none. */
static const char *
entry_of(const char *text, const char *name)
{
    size_t len = strlen(name);

    for (const char *p = text; (p = strstr(p, ".entry")) != NULL; p++) {
        const char *at = skip_blanks(p + strlen(".entry"));
        if (strncmp(at, name, len) == 0 && !isalnum((unsigned char) at[len])
            && at[len] != '_' && at[len] != '$')
        {
            return at + len;
        }
    }
    return NULL;
}

/* "u64" is 8 bytes; in an array as many as it has. */
static size_t
size_of_parameter(const char *p, const char *until)
{
    size_t size = 0;

    for (; p < until; p++) {
        if (p[0] == '.' && strchr("usbf", p[1]) != NULL
            && isdigit((unsigned char) p[2]))
        {
            size = (size_t) atoi(p + 2) / 8;
        }
        if (*p == '[') {
            size *= (size_t) atoi(p + 1);
        }
    }
    return size;
}

static void
read_parameters(function_t *f, const char *p)
{
    const char *close = strchr(p, ')');

    f->described = true;
    while (close != NULL && (p = strstr(p, ".param")) != NULL && p < close
        && f->count < ARGUMENTS)
    {
        p += strlen(".param");
        const char *comma = memchr(p, ',', (size_t) (close - p));
        f->sizes[f->count++] = size_of_parameter(p,
            comma != NULL ? comma : close);
    }
}

/* Limits between the arguments and the body, and in the body. */
static void
read_limits(function_t *f, const char *p)
{
    const char *body = strchr(p, '{');
    const char *max = strstr(p, ".maxntid");
    int x, y = 1, z = 1;

    if (body == NULL) {
        return;
    }
    if (max != NULL && max < body
        && sscanf(max, ".maxntid %d , %d , %d", &x, &y, &z) >= 1)
    {
        f->max_threads = x * y * z;
    }

    const char *close = strstr(body, "\n}");
    while ((body = strstr(body, ".shared ")) != NULL
        && (close == NULL || body < close))
    {
        const char *line = strchr(body, ';');
        f->shared_static += line == NULL ? 0
            : (int) size_of_parameter(body, line);
        body += strlen(".shared ");
    }
}

static bool
describe_ptx(const module_t *m, function_t *f)
{
    const char *entry = entry_of(m->image, f->name);

    if (entry == NULL) {
        return false;
    }
    const char *p = skip_blanks(entry);
    if (*p == '(') {
        read_parameters(f, p);
    } else {
        f->described = true;
    }
    read_limits(f, entry);
    return true;
}

/* ---- any of them --------------------------------------------------------- */

/* Bytes behind the first that differs are not read. */
static bool
begins(const void *bytes, const char *magic)
{
    return strncmp(bytes, magic, strlen(magic)) == 0;
}

result_t
read_image(image_t *i, const device_t *d)
{
    if (begins(i->bytes, FATBIN_MAGIC)) {
        fatbin_t head;
        memcpy(&head, i->bytes, sizeof(head));
        i->size = head.head_size + head.size;
        return head.head_size < sizeof(head) || head.size > IMAGE_MAX
            ? GPU_INVALID_IMAGE : INF_CU_SUCCESS;
    }
    return begins(i->bytes, ELFMAG) ? read_elf(i, d) : read_ptx(i, d);
}

bool
describe(const module_t *m, function_t *f)
{
    return begins(m->image, FATBIN_MAGIC) ? fatbin_has(m, f->name)
        : begins(m->image, ELFMAG) ? elf_has(m, f->name)
        : describe_ptx(m, f);
}
