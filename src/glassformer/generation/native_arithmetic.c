/* Arithmetic on rows of float32: products with a few rows of a matrix, norms, activations.

   Vectors are as wide as the chip's; the compiler turns a sum of products into fused instructions.
   WIDE rows of a matrix are taken at a time, and prefetched, as in the int8 kernel. */

#ifdef BYTES /* of the int8 kernel's vectors on x86 */
#define LANES (BYTES / 4)
#else
#define LANES 4
#endif

typedef float vec_t __attribute__((vector_size(4 * LANES)));
typedef float near_t __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

typedef struct {
  const float *weight, *bias;
  float eps;
  int32_t centered; /* LayerNorm, or RMSNorm where 0 */
} norm_t;

#if LANES == 4
static inline float add_lanes(vec_t sum) {
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* The sums of WIDE vectors. */
static inline void add_lanes_of(const vec_t *sum, float *to) {
  for (int j = 0; j < WIDE; j++) to[j] = add_lanes(sum[j]);
}
#else
static inline __m128 fold(vec_t sum) {
#if LANES == 16
  __m256 half = _mm512_castps512_ps256((__m512)sum) +
                _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd((__m512)sum), 1));
#else
  __m256 half = (__m256)sum;
#endif
  return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
}

static inline float add_lanes(vec_t sum) {
  __m128 four = fold(sum);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

static inline void add_lanes_of(const vec_t *sum, float *to) {
  __m128 low = _mm_hadd_ps(fold(sum[0]), fold(sum[1]));
  _mm_storeu_ps(to, _mm_hadd_ps(low, _mm_hadd_ps(fold(sum[2]), fold(sum[3]))));
}
#endif

static float dot(const float *a, const float *b, long n) {
  vec_t sum = {0}, other = {0};
  long k = 0;
  for (; k + 2 * LANES <= n; k += 2 * LANES) {
    sum += *(const near_t *)(a + k) * *(const near_t *)(b + k);
    other += *(const near_t *)(a + k + LANES) * *(const near_t *)(b + k + LANES);
  }
  for (; k + LANES <= n; k += LANES) sum += *(const near_t *)(a + k) * *(const near_t *)(b + k);
  float rest = 0;
  for (; k < n; k++) rest += a[k] * b[k];
  return add_lanes(sum + other) + rest;
}

/* One row, or several whose sums are each, bit for bit, those of the row alone. What counts is that
   weights arrive from memory in order: the rows of x are near. */
#define ALIKE (LANES == 8 ? 3 : 6) /* rows at a time: 24 sums of 32 registers, or 12 of 16 */

#define PRODUCT_ALIKE(ROWS)                                                              \
  static void alike_##ROWS(const float *x, const float *w, long n, float *sums) {        \
    for (int j = 0; j < WIDE; j++, w += n) {                                             \
      vec_t sum[ROWS][4] = {{{0}}};                                                      \
      long k = 0;                                                                        \
      for (; k + 4 * LANES <= n; k += 4 * LANES) {                                       \
        __builtin_prefetch(w + k + AHEAD / 4);                                           \
        _Pragma("GCC unroll 4") for (int l = 0; l < 4; l++) {                            \
          vec_t v = *(const near_t *)(w + k + l * LANES);                                \
          _Pragma("GCC unroll 6") for (int i = 0; i < ROWS; i++)                         \
            sum[i][l] += *(const near_t *)(x + i * n + k + l * LANES) * v;               \
        }                                                                                \
      }                                                                                  \
      _Pragma("GCC unroll 6") for (int i = 0; i < ROWS; i++) {                           \
        float rest = 0;                                                                  \
        for (long m = k; m < n; m++) rest += x[i * n + m] * w[m];                        \
        sums[WIDE * i + j] = add_lanes((sum[i][0] + sum[i][1]) + (sum[i][2] + sum[i][3])) + rest; \
      }                                                                                  \
    }                                                                                    \
  }
PRODUCT_ALIKE(1)
PRODUCT_ALIKE(2)
PRODUCT_ALIKE(3)
#if LANES != 8
PRODUCT_ALIKE(4)
PRODUCT_ALIKE(5)
PRODUCT_ALIKE(6)
#endif

/* The next rows are prefetched in the order of memory, which four rows side by side hide from x86. */
#define PRODUCT(ROWS)                                                              \
  static void product_##ROWS(const float *x, const float *w, long n, float *sums) { \
    vec_t sum[ROWS][WIDE] = {{{0}}};                                               \
    long k = 0;                                                                    \
    for (; k + LANES <= n; k += LANES) {                                           \
      vec_t v[WIDE];                                                               \
      _Pragma("GCC unroll 4") for (int j = 0; j < WIDE; j++) {                     \
        if (LANES > 4) __builtin_prefetch(w + WIDE * (n + k) + j * LANES);         \
        v[j] = *(const near_t *)(w + j * n + k);                                   \
      }                                                                            \
      _Pragma("GCC unroll 4") for (int i = 0; i < ROWS; i++) {                     \
        vec_t u = *(const near_t *)(x + i * n + k);                                \
        _Pragma("GCC unroll 4") for (int j = 0; j < WIDE; j++) sum[i][j] += u * v[j]; \
      }                                                                            \
    }                                                                              \
    _Pragma("GCC unroll 4") for (int i = 0; i < ROWS; i++) {                       \
      add_lanes_of(sum[i], sums + WIDE * i);                                       \
      for (int j = 0; j < WIDE; j++) {                                             \
        float rest = 0;                                                            \
        for (long l = k; l < n; l++) rest += x[i * n + l] * w[j * n + l];          \
        sums[WIDE * i + j] += rest;                                                \
      }                                                                            \
    }                                                                              \
  }
PRODUCT(2)
PRODUCT(3)
PRODUCT(4)

/* Σ (x − mean), or of the squares. */
static float add_up(const float *x, float mean, int squared, long n) {
  vec_t sum = {0};
  float rest = 0;
  long k = 0;
  for (; k + LANES <= n; k += LANES) {
    vec_t z = *(const near_t *)(x + k) - mean;
    sum += squared ? z * z : z;
  }
  for (; k < n; k++) rest += squared ? (x[k] - mean) * (x[k] - mean) : x[k] - mean;
  return add_lanes(sum) + rest;
}

static void normalize(const float *x, const norm_t *norm, float *y, long n) {
  float mean = norm->centered ? add_up(x, 0.0f, 0, n) / n : 0.0f;
  float square = add_up(x, mean, 1, n);
  float factor = 1.0f / sqrtf(square / n + norm->eps);
  for (long k = 0; k < n; k++) {
    float z = (x[k] - mean) * factor;
    y[k] = norm->bias ? z * norm->weight[k] + norm->bias[k] : z * norm->weight[k];
  }
}

/* e^x to about 1 unit in the last place: x = n ln 2 + r, and a polynomial of r. */
static inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  float n = rintf(x * 1.44269504f);
  float r = x - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.0f + r * (1.0f + r * (0.5f + r * (1.66666667e-1f + r * (4.16666667e-2f +
            r * (8.33333333e-3f + r * (1.38888889e-3f + r * 1.98412698e-4f))))));
  int32_t bits = ((int32_t)n + 127) << 23;
  float power;
  memcpy(&power, &bits, sizeof power);
  return p * power;
}

/* Abramowitz and Stegun 7.1.26: erfc(x) for x ≥ 0, to 1.5e-7. */
static inline float complementary_error(float x) {
  float u = 1.0f / (1.0f + 0.3275911f * x);
  float p = u * (0.254829592f + u * (-0.284496736f + u * (1.421413741f +
            u * (-1.453152027f + u * 1.061405429f))));
  return p * exponential(-x * x);
}

static void activate(float *restrict x, long n, int kind) {
  switch (kind) {
    case 0: /* relu; NaN stays */
      for (long k = 0; k < n; k++) x[k] = x[k] < 0.0f ? 0.0f : x[k];
      return;
    case 1: /* gelu: x Φ(x) */
      for (long k = 0; k < n; k++) {
        float size = fabsf(x[k]), tail = 0.5f * size * complementary_error(size * 0.70710678f);
        x[k] = (x[k] < 0.0f ? 0.0f : x[k]) - tail;
      }
      return;
    case 2: /* gelu by tanh, ½ (1 + tanh u) = 1 / (1 + e^-2u) */
      for (long k = 0; k < n; k++)
        x[k] = x[k] / (1.0f + exponential(-1.59576912f * (x[k] + 0.044715f * x[k] * x[k] * x[k])));
      return;
    default: /* silu */
      for (long k = 0; k < n; k++) x[k] = x[k] / (1.0f + exponential(-x[k]));
  }
}
