/* Panels on x86: entries of x are broadcast from memory, so any number of rows is a group. */

#define PANEL (2 * LANES)
#define GROUP (LANES == 16 ? 12 : 6) /* sums fill 24 of 32 registers, or 12 of 16 */
#define LEAST_ROWS 5 /* fewer wait for memory in either layout */
#define INT8_PANELS 1

#define OF_PANEL(ROWS)                                                                       \
  static void floats_##ROWS(const float *x, const float *w, long n, float *sums) {           \
    vec_t sum[ROWS][2] = {{{0}}};                                                            \
    for (long k = 0; k < n; k++, x += ROWS, w += PANEL) {                                    \
      vec_t v = *(const near_t *)w, other = *(const near_t *)(w + LANES);                    \
      __builtin_prefetch(w + AHEAD / 2);                                                     \
      __builtin_prefetch(w + AHEAD / 2 + LANES);                                             \
      _Pragma("GCC unroll 12") for (int i = 0; i < ROWS; i++) {                              \
        sum[i][0] += v * x[i];                                                               \
        sum[i][1] += other * x[i];                                                           \
      }                                                                                      \
    }                                                                                        \
    memcpy(sums, sum, sizeof sum);                                                           \
  }                                                                                          \
  static void integers_##ROWS(const int32_t *x, const int8_t *w, long n, int32_t *sums) {    \
    bytes_t sum[ROWS][2];                                                                    \
    for (int i = 0; i < ROWS; i++) sum[i][0] = sum[i][1] = VECTOR(set1_epi32)(0);            \
    for (long k = 0; k < n; k += 4, x += ROWS, w += 2 * BYTES) {                             \
      bytes_t v = LOAD(w), other = LOAD(w + BYTES);                                          \
      __builtin_prefetch(w + 2 * AHEAD);                                                     \
      __builtin_prefetch(w + 2 * AHEAD + BYTES);                                             \
      _Pragma("GCC unroll 12") for (int i = 0; i < ROWS; i++) {                              \
        bytes_t u = VECTOR(set1_epi32)(x[i]);                                                \
        sum[i][0] = add_products(sum[i][0], v, u);                                           \
        sum[i][1] = add_products(sum[i][1], other, u);                                       \
      }                                                                                      \
    }                                                                                        \
    memcpy(sums, sum, sizeof sum);                                                           \
  }

#if LANES == 16
#define FOR_GROUPS(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12)
#else
#define FOR_GROUPS(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6)
#endif
FOR_GROUPS(OF_PANEL)
#define FLOATS(ROWS) floats_##ROWS,
#define INTEGERS(ROWS) integers_##ROWS,
static void (*const of_floats[])(const float *, const float *, long, float *) = {
    0, FOR_GROUPS(FLOATS)};
static void (*const of_integers[])(const int32_t *, const int8_t *, long, int32_t *) = {
    0, FOR_GROUPS(INTEGERS)};

static void multiply_group(const share_t *t, const linear_t *f, const float *x, long p, long m,
                           long rows, float *sums) {
  if (f->weight) {
    of_floats[rows](x, (const float *)f->panels + p * PANEL * f->n_in, f->n_in, sums);
    return;
  }
  int32_t whole[GROUP * PANEL];
  const int8_t *w = (const int8_t *)f->panels + p * PANEL * f->n_in;
  of_integers[rows]((const int32_t *)x, w, f->n_in, whole);
  long n = p * PANEL, width = f->n_out - n < PANEL ? f->n_out - n : PANEL;
  for (long i = 0; i < rows; i++)
    restore(whole + PANEL * i, t->rounding[m + i], f->scale + n, width, sums + PANEL * i);
}
