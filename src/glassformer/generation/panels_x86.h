/* Panels on x86: entries of x are broadcast from memory, so any number of rows is a group. */

#define PANEL (2 * LANES)
#define GROUP (LANES == 16 ? 12 : 6) /* sums fill 24 of 32 registers, or 12 of 16 */
#define LEAST_ROWS 2 /* one waits for memory in either layout */
#define INT8_PANELS 1

#define OF_PANEL(ROWS)                                                                       \
  static void floats_##ROWS(const float *x, const float *w, long n, const char *next,        \
                            long step, float *sums) {                                        \
    vec_t sum[ROWS][2] = {{{0}}};                                                            \
    for (long k = 0; k < n; k++, x += ROWS, w += PANEL, next += step) {                      \
      vec_t v = *(const near_t *)w, other = *(const near_t *)(w + LANES);                    \
      __builtin_prefetch(next, 0, 2);                                                        \
      __builtin_prefetch(next + 64, 0, 2);                                                   \
      _Pragma("GCC unroll 12") for (int i = 0; i < ROWS; i++) {                              \
        sum[i][0] += v * x[i];                                                               \
        sum[i][1] += other * x[i];                                                           \
      }                                                                                      \
    }                                                                                        \
    memcpy(sums, sum, sizeof sum);                                                           \
  }                                                                                          \
  static void integers_##ROWS(const int32_t *x, const int8_t *w, long n, const char *next,   \
                              long step, int32_t *sums) {                                    \
    sums_t sum[ROWS][2] = {{{0}}};                                                           \
    for (long k = 0; k < n; k += 4, x += ROWS, w += 2 * BYTES, next += step) {               \
      bytes_t v = LOAD(w), other = LOAD(w + BYTES);                                          \
      __builtin_prefetch(next, 0, 2);                                                        \
      __builtin_prefetch(next + 64, 0, 2);                                                   \
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
static void (*const of_floats[])(const float *, const float *, long, const char *, long,
                                 float *) = {0, FOR_GROUPS(FLOATS)};
static void (*const of_integers[])(const int32_t *, const int8_t *, long, const char *, long,
                                   int32_t *) = {0, FOR_GROUPS(INTEGERS)};

/* A group of rows with panel p. Of `parts` groups, each prefetches its part of the next panel. */
static void multiply_group(const share_t *t, const linear_t *f, const float *x, long p, long m,
                           long rows, long part, long parts, float *sums) {
  long size = panel_size(f), step = 2 * BYTES / parts;
  const char *panel = (const char *)f->panels + p * size;
  const char *next = panel + size + size / parts * part;
  if (f->weight) {
    of_floats[rows](x, (const float *)panel, f->n_in, next, step, sums);
    return;
  }
  int32_t whole[GROUP * PANEL];
  of_integers[rows]((const int32_t *)x, (const int8_t *)panel, f->n_in, next, step, whole);
  long n = p * PANEL, width = f->n_out - n < PANEL ? f->n_out - n : PANEL;
  for (long i = 0; i < rows; i++)
    restore(whole + PANEL * i, t->rounding[m + i], f->scale + n, width, sums + PANEL * i);
}
