/*
 * digest.h - MD5 (RFC 1321) and SHA-256 (FIPS 180-4) of bytes that come
 *            piece by piece.
 *
 * Owner    the caller's memory: init, add as often as needed, text.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   none, but for a name that is no algorithm.
 * Route    checksum -> [digest]
 */

#ifndef CHECKSUM_DIGEST_H
#define CHECKSUM_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_TEXT_MAX 65      /* hexadecimal, and a NUL                    */

typedef struct digest_kind_s digest_kind_t;

typedef struct {
    const digest_kind_t *kind;
    uint32_t             state[8];
    uint64_t             total;         /* bytes so far                      */
    uint8_t              block[64];     /* total % 64 of them, not yet mixed */
} digest_t;

/* "MD5" or "SHA256" in any case; false: neither. */
bool digest_init(digest_t *d, const char *name, size_t name_len);

/* As its standard spells it. */
const char *digest_name(const digest_t *d);

void digest_add(digest_t *d, const void *bytes, size_t len);

/* Lower case; the digest is over then. */
void digest_text(digest_t *d, char text[DIGEST_TEXT_MAX]);

#endif /* CHECKSUM_DIGEST_H */
