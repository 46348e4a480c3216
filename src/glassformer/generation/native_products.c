/* Products of rows with matrices, shared out among the threads of a call. */

#include "native_structures.h"

#define MOST_TALL (ALIKE > TALL ? ALIKE : TALL)
#define TILE 64 /* rows that are multiplied with a block of weights while it is near */

static void wait_for_all(const share_t *t) {
  if (t->n_threads > 1) pass_barrier(t->call->barrier, t->n_threads);
}

#define SHARE(ITEM, COUNT)                                                  \
  for (long ITEM = (COUNT)*t->thread / t->n_threads,                        \
            ITEM##_end = (COUNT) * (t->thread + 1) / t->n_threads;          \
       ITEM < ITEM##_end; ITEM++)

#include "native_panels.c"

typedef void (*product_t)(const float *, const float *, long, float *);

#if LANES == 8
static const product_t alike[] = {0, alike_1, alike_2, alike_3};
#else
static const product_t alike[] = {0, alike_1, alike_2, alike_3, alike_4, alike_5, alike_6};
#endif

static void multiply_block(const share_t *t, const linear_t *f, const float *x, long m, long rows,
                           long n, float *sums) {
  if (f->weight) {
    const float *from = x + m * f->n_in, *w = f->weight + n * f->n_in;
    if (t->call->alike) {
      alike[rows](from, w, f->n_in, sums);
      return;
    }
    switch (rows) {
      case 1: alike_1(from, w, f->n_in, sums); return;
      case 2: product_2(from, w, f->n_in, sums); return;
      case 3: product_3(from, w, f->n_in, sums); return;
      default: product_4(from, w, f->n_in, sums); return;
    }
  }
  int32_t whole[WIDE * TALL];
  multiply_integers(t->rounded + m * f->n_in, f->integers + n * f->n_in, f->n_in, rows, whole);
  for (long i = 0; i < rows; i++)
    restore(whole + WIDE * i, t->rounding[m + i], f->scale + n, WIDE, sums + WIDE * i);
}

/* y = x wᵀ + bias, or y + x wᵀ + bias. A phase; int8 reads what `round_rows` has left. */
static void multiply(const share_t *t, const linear_t *f, const float *x, float *y, long n_rows,
                     int added) {
  long n_blocks = (f->n_out + WIDE - 1) / WIDE, is_alike = f->weight && t->call->alike;
  long tall = is_alike ? ALIKE : TALL;
  long tile = is_alike ? 0 : multiply_panels(t, f, x, y, n_rows, added);
  for (; tile < n_rows; tile += TILE) {
    long end = tile + TILE < n_rows ? tile + TILE : n_rows;
    SHARE(b, n_blocks) {
      /* The last block moves back to be whole; only what is new of it is written. */
      long n = WIDE * b + WIDE > f->n_out ? f->n_out - WIDE : WIDE * b;
      for (long m = tile; m < end; m += tall) {
        float sums[WIDE * MOST_TALL];
        long rows = end - m < tall ? end - m : tall;
        multiply_block(t, f, x, m, rows, n, sums);
        for (long i = 0; i < rows; i++)
          for (long j = WIDE * b - n; j < WIDE; j++) {
            float sum = sums[WIDE * i + j] + (f->bias ? f->bias[n + j] : 0.0f);
            float *to = y + (m + i) * f->n_out + n + j;
            *to = added ? *to + sum : sum;
          }
      }
    }
  }
  wait_for_all(t);
}

static void round_rows(const share_t *t, const float *x, long n_in, long n_rows) {
  if (!t->stack->is_int8) return;
  SHARE(r, n_rows) round_row(x + r * n_in, t->rounded + r * n_in, t->rounding + r, n_in);
  wait_for_all(t);
}
