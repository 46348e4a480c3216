/* Sums of int8 products on x86: AVX-512 with or without VNNI, or AVX2. All of them are exact.

   The chip multiplies unsigned by signed bytes. With VNNI, w + 128 is the unsigned one: a sum is too
   large by 128 Σ x, which `rounding_t` keeps for a row. Without, |w| is, and x takes the sign of w;
   a pair of products is at most 2 · 128 · 127, so the 16-bit sum of it cannot saturate. */

#include <immintrin.h>

#ifdef __AVX512BW__
#define BYTES 64
#define TALL 4 /* rows of x at a time: 16 sums and 5 operands fit 32 registers */
typedef __m512i bytes_t;
#define VECTOR(NAME) _mm512_##NAME
#define LOAD(FROM) _mm512_loadu_si512(FROM)
static inline bytes_t load_part(const int8_t *from, long n) {
  return _mm512_maskz_loadu_epi8(n < BYTES ? (1ull << n) - 1 : ~0ull, from);
}
#else
#define BYTES 32
#define TALL 2 /* 16 registers */
typedef __m256i bytes_t;
#define VECTOR(NAME) _mm256_##NAME
#define LOAD(FROM) _mm256_loadu_si256((const __m256i *)(FROM))
static inline bytes_t load_part(const int8_t *from, long n) {
  if (n >= BYTES) return LOAD(from);
  int8_t part[BYTES] = {0};
  memcpy(part, from, n);
  return LOAD(part);
}
#endif
/* A type of its own: GCC 12 moves sums that are bytes_t to memory and back. */
typedef int32_t sums_t __attribute__((vector_size(BYTES)));

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#define OFFSET 128
static inline bytes_t lift(bytes_t w) { return _mm512_xor_si512(w, _mm512_set1_epi8(-128)); }
static inline sums_t add_products(sums_t sum, bytes_t w, bytes_t x) {
  return (sums_t)_mm512_dpbusd_epi32((bytes_t)sum, w, x);
}
#else
#define OFFSET 0
static inline bytes_t lift(bytes_t w) { return w; }
static inline sums_t add_products(sums_t sum, bytes_t w, bytes_t x) {
#ifdef __AVX512BW__
  x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
#else
  x = _mm256_sign_epi8(x, w);
#endif
  bytes_t pairs = VECTOR(maddubs_epi16)(VECTOR(abs_epi8)(w), x);
  return sum + (sums_t)VECTOR(madd_epi16)(pairs, VECTOR(set1_epi16)(1));
}
#endif

/* The sums of four vectors. */
static inline void add_lanes_of_four(const sums_t *sum, int32_t *to) {
  __m128i four[4];
  _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++) {
#ifdef __AVX512BW__
    __m256i half = _mm256_add_epi32(_mm512_castsi512_si256((bytes_t)sum[j]),
                                    _mm512_extracti64x4_epi64((bytes_t)sum[j], 1));
#else
    __m256i half = (bytes_t)sum[j];
#endif
    four[j] = _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  }
  __m128i low = _mm_hadd_epi32(four[0], four[1]), high = _mm_hadd_epi32(four[2], four[3]);
  _mm_storeu_si128((__m128i *)to, _mm_hadd_epi32(low, high));
}

/* ROWS rows of x with WIDE rows of w. The next ones are prefetched in the order of memory, which four
   rows side by side hide from the chip. */
#define MULTIPLY(ROWS)                                                                     \
  static void multiply_##ROWS(const int8_t *x, const int8_t *w, long n_in, int32_t *sums) { \
    sums_t sum[ROWS][WIDE] = {{{0}}};                                                      \
    bytes_t v[WIDE];                                                                       \
    for (long k = 0; k < n_in; k += BYTES) {                                               \
      _Pragma("GCC unroll 4") for (int j = 0; j < WIDE; j++) {                             \
        __builtin_prefetch(w + WIDE * (n_in + k) + j * BYTES);                             \
        v[j] = lift(load_part(w + j * n_in + k, n_in - k));                                \
      }                                                                                    \
      _Pragma("GCC unroll 4") for (int i = 0; i < ROWS; i++) {                             \
        bytes_t u = load_part(x + i * n_in + k, n_in - k);                                 \
        _Pragma("GCC unroll 4") for (int j = 0; j < WIDE; j++)                             \
          sum[i][j] = add_products(sum[i][j], v[j], u);                                    \
      }                                                                                    \
    }                                                                                      \
    _Pragma("GCC unroll 4") for (int i = 0; i < ROWS; i++)                                 \
      add_lanes_of_four(sum[i], sums + WIDE * i);                                          \
  }
MULTIPLY(1)
