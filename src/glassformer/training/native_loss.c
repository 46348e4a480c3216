/* Cross-entropy of rows of logits, and its gradient in their place. */

#include <math.h>

#include "../functional/vectors.h"

#define ROWS 8 /* that a thread takes at a time */

typedef struct {
  float *logits; /* n × V */
  const int64_t *targets;
  float *losses;
  int64_t n, V;
  float smoothing;
  int32_t learns;
  int64_t next; /* written by all threads */
} job_t;

static float largest_of(const float *x, long n) {
  vec top[4];
  for (int i = 0; i < 4; i++) top[i] = spread(-INFINITY);
  long k = 0;
  for (; k + 4 * LANES <= n; k += 4 * LANES)
    for (int i = 0; i < 4; i++) top[i] = maximum_of(top[i], *(const vec *)(x + k + i * LANES));
  float largest = -INFINITY;
  for (; k < n; k++) largest = x[k] > largest ? x[k] : largest;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < LANES; j++) largest = top[i][j] > largest ? top[i][j] : largest;
  return largest;
}

/* The end of a row, as a vector that is filled up with `rest`. */
static vec read_end(const float *x, long n, float rest) {
  vec end = spread(rest);
  for (long k = 0; k < n; k++) end[k] = x[k];
  return end;
}

/* Σ exp(x − top); the terms take the place of x if they are kept. */
static double add_exponentials(float *x, long n, float top, int keeps) {
  vec sums[4] = {{0}};
  long k = 0;
  for (; k + 4 * LANES <= n; k += 4 * LANES)
    for (int i = 0; i < 4; i++) {
      vec *at = (vec *)(x + k + i * LANES), term = exponential(*at - top);
      if (keeps) *at = term;
      sums[i] += term;
    }
  for (; k < n; k += LANES) {
    long here = n - k < LANES ? n - k : LANES;
    vec term = exponential(read_end(x + k, here, -INFINITY) - top);
    if (keeps)
      for (long j = 0; j < here; j++) x[k + j] = term[j];
    sums[0] += term;
  }
  double sum = 0.0;
  for (int i = 0; i < 4; i++) sum += add_lanes(sums[i]);
  return sum;
}

static double add_up(const float *x, long n) {
  vec sums[4] = {{0}};
  long k = 0;
  for (; k + 4 * LANES <= n; k += 4 * LANES)
    for (int i = 0; i < 4; i++) sums[i] += *(const vec *)(x + k + i * LANES);
  double sum = 0.0;
  for (; k < n; k++) sum += x[k];
  for (int i = 0; i < 4; i++) sum += add_lanes(sums[i]);
  return sum;
}

static void measure_row(const job_t *job, long row) {
  long V = job->V, target = job->targets[row];
  float *x = job->logits + row * V, share = job->smoothing / V, chosen = x[target];
  double total = job->smoothing ? add_up(x, V) : 0.0; /* of the logits */
  float top = largest_of(x, V);
  double sum = add_exponentials(x, V, top, job->learns), lse = top + log(sum);
  job->losses[row] = (job->smoothing - 1.0f) * (chosen - lse) - share * (total - V * lse);
  if (!job->learns) return;
  float factor = 1.0 / sum;
  for (long k = 0; k < V; k++) x[k] = x[k] * factor - share;
  x[target] += job->smoothing - 1.0f;
}

static void measure_share(void *pointer) {
  job_t *job = pointer;
  for (;;) {
    long first = __atomic_fetch_add(&job->next, ROWS, __ATOMIC_RELAXED);
    if (first >= job->n) return;
    long end = first + ROWS < job->n ? first + ROWS : job->n;
    for (long row = first; row < end; row++) measure_row(job, row);
  }
}

/* Without `parallel` there is one thread. */
void measure_losses(job_t *job, parallel_t parallel, unsigned most_threads) {
  if (parallel && most_threads > 1)
    parallel(measure_share, job, most_threads, 0);
  else
    measure_share(job);
}
