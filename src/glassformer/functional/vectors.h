/* Vectors are those of GCC and Clang: as wide as the chip's registers, without naming the chip. */

#include <stdint.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef void (*parallel_t)(void (*)(void *), void *, unsigned, unsigned); /* GOMP_parallel */

/* x − 0 is x, which compilers know; 0 + x is not for −0, and would cost an addition. */
static inline vec spread(float x) { return x - (vec){0}; }

static inline vec choose(ivec which, vec a, vec b) {
  return (vec)((which & (ivec)a) | (~which & (ivec)b));
}

static inline vec maximum_of(vec a, vec b) { return choose(a > b, a, b); }

/* e^x for x ≤ 0, within 1e-7 of itself; 0 where it would be below the smallest normal number. */
static inline vec exponential(vec x) {
  const vec magic = spread(12582912.0f); /* 1.5 · 2²³: adding it rounds to a whole number */
  ivec tiny = x < spread(-87.0f);
  vec y = choose(tiny, spread(-87.0f), x);
  vec n = y * spread(1.44269504f) + magic;
  n = n - magic;
  vec r = y - n * spread(0.693359375f); /* log 2 in two parts: the first times n is exact */
  r = r - n * spread(-2.12194440e-4f);
  vec p = spread(1.0f / 5040);
  p = p * r + spread(1.0f / 720);
  p = p * r + spread(1.0f / 120);
  p = p * r + spread(1.0f / 24);
  p = p * r + spread(1.0f / 6);
  p = p * r + spread(0.5f);
  p = p * r + spread(1.0f);
  p = p * r + spread(1.0f);
  ivec bits = (__builtin_convertvector(n, ivec) + 127) << 23;
  return choose(tiny, (vec){0}, p * (vec)bits);
}

/* Within 3e-7 of itself, also near 0, where 1 − e^−2x would lose what is there. */
static inline vec hyperbolic_tangent(vec x) {
  ivec negative = x < (vec){0};
  vec size = choose(negative, -x, x), small = size * size;
  vec decay = exponential(size * spread(-2.0f)), far = (spread(1.0f) - decay) / (spread(1.0f) + decay);
  vec p = spread(-0.00886323553f); /* x − x³/3 + 2x⁵/15 − 17x⁷/315 + 62x⁹/2835 − 1382x¹¹/155925 */
  p = p * small + spread(0.0218694886f);
  p = p * small + spread(-0.0539682540f);
  p = p * small + spread(0.133333333f);
  p = p * small + spread(-0.333333333f);
  vec near = size + size * small * p;
  vec y = choose(size < spread(0.3f), near, far);
  return choose(negative, -y, y);
}

static float add_lanes(vec x) {
  float sum = 0.0f;
  for (int i = 0; i < LANES; i++) sum += x[i];
  return sum;
}
