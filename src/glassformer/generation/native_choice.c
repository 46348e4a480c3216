/* Choosing tokens from logits: the most probable one, or the best few and their log-probabilities.

   Floats are compared as integers of the same order, which the compiler can do many at a time. */

#define BLOCK 64

typedef struct {
  const int64_t *never, *stops; /* tokens that no row may have; tokens that end a text */
  long n_never, n_stops;
  const uint8_t *forbidden;     /* (B / copies, V) what a prompt's rows may not have, or 0 */
  int32_t renormalizes;         /* whether probabilities are among what is not forbidden */
} choice_t;

#define NOTHING INT32_MIN /* below every number, −∞ included */

static inline int32_t rank_of(float x) {
  int32_t bits;
  x += 0.0f; /* −0 becomes 0 */
  memcpy(&bits, &x, sizeof bits);
  return bits ^ ((bits >> 31) & INT32_MAX);
}

static inline float with_rank(int32_t rank) {
  int32_t bits = rank ^ ((rank >> 31) & INT32_MAX);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static int32_t find_most(const float *x, long n) {
  int32_t most = NOTHING;
  for (long k = 0; k < n; k++) {
    int32_t rank = rank_of(x[k]);
    most = rank > most ? rank : most;
  }
  return most;
}

static int has_nan(const float *x, long n) {
  int32_t most = 0;
  for (long k = 0; k < n; k++) {
    int32_t bits;
    memcpy(&bits, x + k, sizeof bits);
    bits &= INT32_MAX;
    most = bits > most ? bits : most;
  }
  return most > 0x7f800000;
}

static void exclude(float *x, const int64_t *tokens, long n) {
  for (long i = 0; i < n; i++) x[tokens[i]] = -INFINITY;
}

static void forbid(float *x, const uint8_t *forbidden, long n) {
  for (long k = 0; k < n; k++) x[k] = forbidden[k] ? -INFINITY : x[k];
}

static int is_among(int64_t token, const int64_t *tokens, long n) {
  for (long i = 0; i < n; i++)
    if (tokens[i] == token) return 1;
  return 0;
}

/* The first of the most probable tokens, or −1 where the logits leave none to choose. */
static int64_t find_first_most(const float *x, long n) {
  int32_t most = has_nan(x, n) ? NOTHING : find_most(x, n);
  if (most <= rank_of(-INFINITY)) return -1;
  for (long k = 0; k < n; k++)
    if (rank_of(x[k]) == most) return k;
  return -1;
}

/* log Σ e^x: the exponentials in float32, their sum in float64. */
static double add_exponentials(const float *x, float most, long n) {
  double sums[8] = {0};
  for (long first = 0; first < n; first += BLOCK) {
    float terms[BLOCK] = {0};
    long count = n - first < BLOCK ? n - first : BLOCK;
    for (long k = 0; k < count; k++) terms[k] = exponential(x[first + k] - most);
    for (long k = 0; k < BLOCK; k += 8)
      for (long i = 0; i < 8; i++) sums[i] += terms[k + i];
  }
  double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
               ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  return log(sum) + most;
}

/* The `n_best` largest, in falling order; among equals the first come first. */
static void find_best(const float *x, long n, long n_best, float *values, int64_t *tokens) {
  long found = 0;
  int32_t least = NOTHING;
  for (long first = 0; first < n; first += BLOCK) {
    long end = n - first < BLOCK ? n : first + BLOCK;
    if (find_most(x + first, end - first) <= least) continue;
    for (long k = first; k < end; k++) {
      if (rank_of(x[k]) <= least) continue;
      long at = found < n_best ? found++ : n_best - 1;
      for (; at > 0 && rank_of(values[at - 1]) < rank_of(x[k]); at--) {
        values[at] = values[at - 1];
        tokens[at] = tokens[at - 1];
      }
      values[at] = x[k];
      tokens[at] = k;
      if (found == n_best) least = rank_of(values[n_best - 1]);
    }
  }
  for (; found < n_best; found++) { /* there are not as many */
    values[found] = -INFINITY;
    tokens[found] = 0;
  }
}
