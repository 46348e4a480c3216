/* Panels elsewhere, that is on Arm: operands are loaded as vectors and multiplied by lane. */

#define PANEL 8
#define GROUP 8
#define LEAST_ROWS 8
#define INT8_PANELS 0

static void multiply_group(const share_t *t, const linear_t *f, const float *x, long p, long m,
                           long rows, long part, long parts, float *sums) {
  enum { VECTORS = PANEL / LANES };
  vec_t sum[GROUP][VECTORS] = {{{0}}};
  const float *w = (const float *)f->panels + p * PANEL * f->n_in;
  (void)t, (void)m, (void)rows, (void)part, (void)parts;
  for (long k = 0; k < f->n_in; k++, x += GROUP, w += PANEL) {
    vec_t u[VECTORS], v[VECTORS];
    _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++) {
      u[j] = *(const near_t *)(x + j * LANES);
      v[j] = *(const near_t *)(w + j * LANES);
    }
    _Pragma("GCC unroll 16") for (int i = 0; i < GROUP; i++)
      _Pragma("GCC unroll 4") for (int j = 0; j < VECTORS; j++)
        sum[i][j] += v[j] * u[i / LANES][i % LANES];
  }
  memcpy(sums, sum, sizeof sum);
}
