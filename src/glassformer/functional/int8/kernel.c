/* y = x · wᵀ + bias with int8 weights, a scale for each row of w, and rows of x rounded to int8.

   Plain C: with -O3 the compiler turns the sums of products into the chip's own instructions
   (sdot on Arm; seen there only). Sums are whole numbers and therefore exact: a row of y depends
   neither on the other rows nor on the number of threads. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WIDE 4  /* rows of w at a time, and of x: 16 sums and 8 operands fit 32 registers */
#define AHEAD 1024 /* bytes of w to prefetch: what one row of x reads comes from memory */

typedef void (*parallel_t)(void (*)(void *), void *, unsigned, unsigned); /* GOMP_parallel */
typedef int (*count_t)(void);

typedef struct {
  const int8_t *x, *w;
  const float *x_scale, *w_scale, *bias;
  float *y;
  long n_rows, n_out, n_in;
  count_t thread, n_threads;
} job_t;

static void multiply_one(const int8_t *restrict x, const int8_t *restrict w, long n_in,
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
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)

/* One thread's share of the rows of w. */
static void multiply_share(void *argument) {
  const job_t *job = argument;
  long n_in = job->n_in, n_out = job->n_out;
  long n_threads = job->n_threads ? job->n_threads() : 1, thread = job->thread ? job->thread() : 0;
  long n_blocks = (n_out + WIDE - 1) / WIDE;
  for (long b = n_blocks * thread / n_threads; b < n_blocks * (thread + 1) / n_threads; b++) {
    /* The last block moves back to be whole; what it computes again is the same. */
    long n = WIDE * b + WIDE > n_out ? n_out - WIDE : WIDE * b;
    const int8_t *w = job->w + n * n_in;
    for (long m = 0; m < job->n_rows; m += WIDE) {
      int32_t sums[WIDE * WIDE];
      const int8_t *x = job->x + m * n_in;
      long rows = job->n_rows - m < WIDE ? job->n_rows - m : WIDE;
      switch (rows) {
        case 1: multiply_one(x, w, n_in, sums); break;
        case 2: multiply_2(x, w, n_in, sums); break;
        case 3: multiply_3(x, w, n_in, sums); break;
        default: multiply_4(x, w, n_in, sums);
      }
      for (long i = 0; i < rows; i++)
        for (long j = 0; j < WIDE; j++) {
          float sum = (float)sums[WIDE * i + j] * job->x_scale[m + i] * job->w_scale[n + j];
          job->y[(m + i) * n_out + n + j] = job->bias ? sum + job->bias[n + j] : sum;
        }
    }
  }
}

/* A NaN or an infinity in a row becomes its scale, and with it every output of the row is NaN. */
static void round_row(const float *x, int8_t *rounded, float *scale, long n_in) {
  uint32_t most = 0;
  for (long k = 0; k < n_in; k++) { /* without their sign, floats are ordered as their bits */
    uint32_t bits;
    memcpy(&bits, x + k, sizeof bits);
    bits &= 0x7fffffffu;
    most = bits > most ? bits : most;
  }
  float largest;
  memcpy(&largest, &most, sizeof largest);
  *scale = largest / 127.0f;
  if (most >= 0x7f800000u) {
    *scale = NAN;
    largest = 0.0f;
  }
  float factor = largest > 0.0f ? 127.0f / largest : 0.0f;
  if (isinf(factor)) *scale = factor = 0.0f; /* the row is below what a float can be divided by */
  if (factor == 0.0f) {
    memset(rounded, 0, n_in);
    return;
  }
  for (long k = 0; k < n_in; k++) rounded[k] = (int8_t)(int32_t)rintf(x[k] * factor);
}

/* 0, or 1 if there is no memory. Without `parallel` there is one thread. */
int int8_linear(const float *x, const int8_t *w, const float *w_scale, const float *bias, float *y,
                long n_rows, long n_out, long n_in, parallel_t parallel, count_t thread,
                count_t n_threads, unsigned most_threads) {
  float *scale = malloc(n_rows * (sizeof(float) + n_in));
  if (!scale) return 1;
  int8_t *rounded = (int8_t *)(scale + n_rows);
  for (long m = 0; m < n_rows; m++) round_row(x + m * n_in, rounded + m * n_in, scale + m, n_in);
  job_t job = {rounded, w, scale, w_scale, bias, y, n_rows, n_out, n_in, 0, 0};
  if (parallel && most_threads > 1) {
    job.thread = thread;
    job.n_threads = n_threads;
    parallel(multiply_share, &job, most_threads, 0);
  } else {
    multiply_share(&job);
  }
  free(scale);
  return 0;
}
