/* Sums of int8 products in plain C, which the compiler turns into the chip's own instructions (sdot
   on Arm; seen there only). */

#define OFFSET 0
#define TALL 4 /* rows of x at a time: 16 sums and 8 operands fit 32 registers */

static void multiply_1(const int8_t *restrict x, const int8_t *restrict w, long n_in,
                         int32_t *restrict sums) {
  for (int j = 0; j < WIDE; j++, w += n_in) {
    int32_t sum = 0;
    long k = 0;
    for (; k + 64 <= n_in; k += 64) {
      __builtin_prefetch(w + k + AHEAD);
      for (int i = 0; i < 64; i++) sum += (int32_t)x[k + i] * w[k + i];
    }
    for (; k < n_in; k++) sum += (int32_t)x[k] * w[k];
    sums[j] = sum;
  }
}

/* The number of rows is known when this is compiled: the sums stay in registers. */
#define MULTIPLY(ROWS)                                                                     \
  static void multiply_##ROWS(const int8_t *restrict x, const int8_t *restrict w, long n_in, \
                              int32_t *restrict sums) {                                    \
    int32_t sum[ROWS][WIDE] = {{0}};                                                       \
    for (long k = 0; k < n_in; k++)                                                        \
      _Pragma("GCC unroll 4") for (int i = 0; i < ROWS; i++)                               \
        _Pragma("GCC unroll 4") for (int j = 0; j < WIDE; j++)                             \
          sum[i][j] += (int32_t)x[i * n_in + k] * w[j * n_in + k];                         \
    memcpy(sums, sum, sizeof sum);                                                         \
  }
