#include "core/sched/block_sums.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define STEP_WORDS (INF_BLOCK_STEP / sizeof(uint64_t))

static inf_block_sums_t sums_plain(const void *data, size_t len,
    const uint64_t *secret);
static uint64_t product(uint64_t word, uint64_t secret);
#if defined(__x86_64__)
static inf_block_sums_t sums_sse2(const void *data, size_t len,
    const uint64_t *secret);
static inf_block_sums_t sums_avx2(const void *data, size_t len,
    const uint64_t *secret);
static uint64_t halves(__m128i sum);
#endif

inf_block_sums_fn_t
inf_block_sums(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") ? sums_avx2 : sums_sse2;
#else
    return sums_plain;
#endif
}

inf_block_sums_fn_t
inf_block_sums_way(unsigned n)
{
    const inf_block_sums_fn_t ways[] = {
        sums_plain,
#if defined(__x86_64__)
        sums_sse2,
        __builtin_cpu_supports("avx2") ? sums_avx2 : NULL
#endif
    };
    return n < sizeof(ways) / sizeof(ways[0]) ? ways[n] : NULL;
}

static inf_block_sums_t
sums_plain(const void *data, size_t len, const uint64_t *secret)
{
    const char *at = data;
    inf_block_sums_t s = { 0, 0 };

    for (size_t i = 0; i < len / sizeof(uint64_t); i++) {
        uint64_t word;
        memcpy(&word, at + i * sizeof(word), sizeof(word));
        s.first += product(word, secret[i]);
        s.second += product(word, secret[i + STEP_WORDS]);
    }
    return s;
}

static uint64_t
product(uint64_t word, uint64_t secret)
{
    uint32_t low = (uint32_t) word + (uint32_t) secret;
    uint32_t high = (uint32_t) (word >> 32) + (uint32_t) (secret >> 32);
    return (uint64_t) low * high;
}

#if defined(__x86_64__)

static inf_block_sums_t
sums_sse2(const void *data, size_t len, const uint64_t *secret)
{
    const __m128i *d = data;
    const __m128i *s = (const void *) secret;
    const size_t step = INF_BLOCK_STEP / sizeof(__m128i);
    __m128i first = _mm_setzero_si128();
    __m128i second = first;

    for (size_t i = 0; i < len / sizeof(__m128i); i++) {
        __m128i word = _mm_loadu_si128(d + i);
        __m128i a = _mm_add_epi32(word, _mm_loadu_si128(s + i));
        __m128i b = _mm_add_epi32(word, _mm_loadu_si128(s + i + step));
        first = _mm_add_epi64(first,
            _mm_mul_epu32(a, _mm_srli_epi64(a, 32)));
        second = _mm_add_epi64(second,
            _mm_mul_epu32(b, _mm_srli_epi64(b, 32)));
    }
    return (inf_block_sums_t) { halves(first), halves(second) };
}

__attribute__((target("avx2")))
static inf_block_sums_t
sums_avx2(const void *data, size_t len, const uint64_t *secret)
{
    const __m256i *d = data;
    const __m256i *s = (const void *) secret;
    __m256i first = _mm256_setzero_si256();
    __m256i second = first;
    __m256i key = _mm256_loadu_si256(s);

    for (size_t i = 0; i < len / sizeof(__m256i); i++) {
        __m256i word = _mm256_loadu_si256(d + i);
        __m256i next = _mm256_loadu_si256(s + i + 1);
        __m256i a = _mm256_add_epi32(word, key);
        __m256i b = _mm256_add_epi32(word, next);
        first = _mm256_add_epi64(first,
            _mm256_mul_epu32(a, _mm256_srli_epi64(a, 32)));
        second = _mm256_add_epi64(second,
            _mm256_mul_epu32(b, _mm256_srli_epi64(b, 32)));
        key = next;
    }
    return (inf_block_sums_t) {
        halves(_mm_add_epi64(_mm256_castsi256_si128(first),
            _mm256_extracti128_si256(first, 1))),
        halves(_mm_add_epi64(_mm256_castsi256_si128(second),
            _mm256_extracti128_si256(second, 1)))
    };
}

static uint64_t
halves(__m128i sum)
{
    sum = _mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum));
    return (uint64_t) _mm_cvtsi128_si64(sum);
}

#endif
