/* y = x · wᵀ + bias with int8 weights, a scale for each row of w, and rows of x rounded to int8.

   Sums are whole numbers and therefore exact: a row of y depends neither on the other rows nor on
   the number of threads. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WIDE 4 /* rows of w at a time */
#define AHEAD 1024 /* bytes of w to prefetch: what one row of x reads comes from memory */

typedef void (*parallel_t)(void (*)(void *), void *, unsigned, unsigned); /* GOMP_parallel */
typedef int (*count_t)(void);

#ifdef __AVX2__
#include "x86.h"
#else
#include "plain.h"
#endif
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)

/* Sums of products of up to TALL rows of x with WIDE rows of w, in integers. */
static void multiply_integers(const int8_t *x, const int8_t *w, long n_in, long rows,
                              int32_t *sums) {
  switch (rows) {
    case 1: multiply_1(x, w, n_in, sums); return;
    case 2: multiply_2(x, w, n_in, sums); return;
    case 3: multiply_3(x, w, n_in, sums); return;
    default: multiply_4(x, w, n_in, sums);
  }
}

/* A row of x that was rounded: what its integers are multiplied by, and OFFSET times their sum. */
typedef struct {
  float scale;
  uint32_t excess;
} rounding_t;

/* The floats that n sums of a row stand for. */
static inline void restore(const int32_t *restrict sums, rounding_t x, const float *restrict w_scale,
                           long n, float *restrict to) {
  for (long j = 0; j < n; j++)
    to[j] = (float)(int32_t)((uint32_t)sums[j] - x.excess) * x.scale * w_scale[j];
}

typedef struct {
  const int8_t *x, *w;
  const rounding_t *rounding;
  const float *w_scale, *bias;
  float *y;
  long n_rows, n_out, n_in;
  count_t thread, n_threads;
} job_t;

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
    for (long m = 0; m < job->n_rows; m += TALL) {
      int32_t sums[WIDE * TALL];
      long rows = job->n_rows - m < TALL ? job->n_rows - m : TALL;
      multiply_integers(job->x + m * n_in, w, n_in, rows, sums);
      for (long i = 0; i < rows; i++) {
        float *to = job->y + (m + i) * n_out + n;
        restore(sums + WIDE * i, job->rounding[m + i], job->w_scale + n, WIDE, to);
        for (long j = 0; job->bias && j < WIDE; j++) to[j] += job->bias[n + j];
      }
    }
  }
}

/* A NaN or an infinity in a row becomes its scale, and with it every output of the row is NaN. */
static void round_row(const float *x, int8_t *rounded, rounding_t *rounding, long n_in) {
  uint32_t most = 0;
  for (long k = 0; k < n_in; k++) { /* without their sign, floats are ordered as their bits */
    uint32_t bits;
    memcpy(&bits, x + k, sizeof bits);
    bits &= 0x7fffffffu;
    most = bits > most ? bits : most;
  }
  float largest;
  memcpy(&largest, &most, sizeof largest);
  *rounding = (rounding_t){.scale = largest / 127.0f};
  if (most >= 0x7f800000u) {
    rounding->scale = NAN;
    largest = 0.0f;
  }
  float factor = largest > 0.0f ? 127.0f / largest : 0.0f;
  if (isinf(factor)) /* the row is below what a float can be divided by */
    rounding->scale = factor = 0.0f;
  if (factor == 0.0f) {
    memset(rounded, 0, n_in);
    return;
  }
  for (long k = 0; k < n_in; k++) rounded[k] = (int8_t)(int32_t)rintf(x[k] * factor);
  int32_t sum = 0;
  if (OFFSET)
    for (long k = 0; k < n_in; k++) sum += rounded[k];
  rounding->excess = OFFSET * (uint32_t)sum;
}

/* 0, or 1 if there is no memory. Without `parallel` there is one thread. */
int int8_linear(const float *x, const int8_t *w, const float *w_scale, const float *bias, float *y,
                long n_rows, long n_out, long n_in, parallel_t parallel, count_t thread,
                count_t n_threads, unsigned most_threads) {
  rounding_t *rounding = malloc(n_rows * (sizeof(rounding_t) + n_in));
  if (!rounding) return 1;
  int8_t *rounded = (int8_t *)(rounding + n_rows);
  for (long m = 0; m < n_rows; m++) round_row(x + m * n_in, rounded + m * n_in, rounding + m, n_in);
  job_t job = {rounded, w, rounding, w_scale, bias, y, n_rows, n_out, n_in, 0, 0};
  if (parallel && most_threads > 1) {
    job.thread = thread;
    job.n_threads = n_threads;
    parallel(multiply_share, &job, most_threads, 0);
  } else {
    multiply_share(&job);
  }
  free(rounding);
  return 0;
}
