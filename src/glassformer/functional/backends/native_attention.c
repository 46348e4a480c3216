/* Attention in a band of the matrix and within documents, and its gradients; blocks outside are left
   out.

   64 queries lie side by side in vectors: scores are computed transposed, keys × queries, so that
   the softmax runs along vectors. Every product is one routine, `multiply`, in which the numbers of
   the first operand may lie anywhere. A thread needs the same little memory for every length.

   Blocks of keys begin where the upper edge of the band meets a block of queries: with a causal
   mask one block in each row of blocks is a triangle, and the work above it is left out, too. */

#include <math.h>
#include <stdlib.h>

#include "../vectors.h"

#define BLOCK 64 /* queries, and keys at a time */
#define ROWS 6   /* of a tile of a product, which is kept in registers */
#if LANES == 16 || defined(__aarch64__)
#define MOST 4 /* vectors of a row of a tile */
#else
#define MOST 2
#endif
#define WIDTH (MOST * LANES)
#define GROUP 16 /* columns: all widths are multiples of it */

typedef struct {
  float *at;
  int64_t batch, head, row; /* strides; those of a row are 1 */
} heads_t;

typedef struct {
  heads_t q, k, v, out, grad, dq, dk, dv;
  float *norms; /* B × H × L × 2: the largest score of a query, and 1 / Σ exp(score − largest) */
  const int32_t *limits; /* six for all sequences or for each: see masks/limits.py */
  const float *bias;     /* of a head, for query − key = 1 − S … L − 1 and BLOCK more; or NULL */
  const int64_t *query_documents, *key_documents; /* a query sees keys of its own; or NULL */
  const int64_t *prefixes; /* keys before these are seen although they come later; or NULL */
  int64_t B, H, K, L, S, D;
  int64_t limits_batch, bias_head, queries_batch, keys_batch, prefixes_batch; /* strides, or 0 */
  float scale, softcap;                              /* softcap 0: none */
  int64_t next; /* written by all threads */
} job_t;

static float *head_of(const heads_t *x, long b, long h) {
  return x->at + b * x->batch + h * x->head;
}

/* A tile of c = (c · factors + ) a b: the row r of a begins at a + r · a_row. */
typedef struct {
  const float *a, *b, *factors; /* factors: one for each row; without, 1 */
  float *c;
  long a_row, a_depth, b_depth, c_row; /* strides */
  int adds;                            /* to what c is, or makes it new */
} product_t;

static inline __attribute__((always_inline)) void multiply_tile(int rows, int vectors,
                                                                const product_t *p, long row,
                                                                long col, long first, long stop) {
  vec sums[ROWS][MOST];
  const float *a = p->a + row * p->a_row + first * p->a_depth;
  const float *b = p->b + first * p->b_depth + col;
  float *c = p->c + row * p->c_row + col;
  long a_row = p->a_row, a_depth = p->a_depth, b_depth = p->b_depth;
#pragma GCC unroll 6
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++) sums[i][j] = (vec){0};
  if (p->adds) {
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
      float factor = p->factors ? p->factors[row + i] : 1.0f;
#pragma GCC unroll 4
      for (int j = 0; j < vectors; j++)
        sums[i][j] = *(const vec *)(c + i * p->c_row + j * LANES) * factor;
    }
  }
  for (long k = first; k < stop; k++, a += a_depth, b += b_depth) {
    vec right[MOST];
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++) right[j] = *(const vec *)(b + j * LANES);
#pragma GCC unroll 6
    for (int i = 0; i < rows; i++) {
      vec left = spread(a[i * a_row]);
#pragma GCC unroll 4
      for (int j = 0; j < vectors; j++) sums[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; j++) *(vec *)(c + i * p->c_row + j * LANES) = sums[i][j];
}

/* Which cells of a product in the block on the diagonal are known to be zero or not needed. */
enum { ALL, COLS_FROM_ROW, DEPTH_TO_ROW, DEPTH_FROM_ROW };

static inline __attribute__((always_inline)) void multiply_rows(int rows, const product_t *p,
                                                                long row, long cols, long depth,
                                                                int shape) {
  long first = shape == DEPTH_FROM_ROW ? row : 0;
  long stop = shape == DEPTH_TO_ROW && row + rows < depth ? row + rows : depth;
  long col = shape == COLS_FROM_ROW ? row / GROUP * GROUP : 0;
  for (; col + WIDTH <= cols; col += WIDTH) multiply_tile(rows, MOST, p, row, col, first, stop);
#if WIDTH > GROUP
  long rest = (cols - col) / LANES;
  if (rest == 3) multiply_tile(rows, 3, p, row, col, first, stop);
  if (rest == 2) multiply_tile(rows, 2, p, row, col, first, stop);
  if (rest == 1) multiply_tile(rows, 1, p, row, col, first, stop);
#endif
}

static void multiply(const product_t *p, long rows, long cols, long depth, int shape) {
  for (long row = 0; row < rows;) { /* in tiles that lie in one group: 6 + 6 + 4 rows */
    long end = row + GROUP < rows ? row + GROUP : rows;
    for (; row + ROWS <= end; row += ROWS) multiply_rows(ROWS, p, row, cols, depth, shape);
    if (row + 4 <= end) multiply_rows(4, p, row, cols, depth, shape), row += 4;
    for (; row < end; row++) multiply_rows(1, p, row, cols, depth, shape);
  }
}

static void copy_rows(const float *from, long stride, float *to, long n, long D) {
  for (long i = 0; i < n; i++)
    for (long d = 0; d < D; d += LANES)
      *(vec *)(to + i * D + d) = *(const vec *)(from + i * stride + d);
}

static void clear_rows(float *to, long stride, long n, long D) {
  for (long i = 0; i < n; i++)
    for (long d = 0; d < D; d += LANES) *(vec *)(to + i * stride + d) = (vec){0};
}

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
#if defined(__clang__) || __GNUC__ >= 12
#define PICK __builtin_shufflevector
#else
typedef int32_t places __attribute__((vector_size(16)));
#define PICK(a, b, ...) __builtin_shuffle(a, b, (places){__VA_ARGS__})
#endif

static long widen(long n) { return (n + GROUP - 1) / GROUP * GROUP; }

/* To D × BLOCK; columns without a query are zeros, as far as they are read. */
static void transpose(const float *from, long stride, float *to, long n, long D, float scale) {
  for (long i = 0; i < widen(n); i += 4)
    for (long d = 0; d < D; d += 4) {
      quad x[4] = {{0}};
      for (long j = 0; j < 4; j++)
        if (i + j < n) x[j] = *(const quad *)(from + (i + j) * stride + d) * scale;
      quad a = PICK(x[0], x[1], 0, 4, 1, 5), b = PICK(x[2], x[3], 0, 4, 1, 5);
      quad c = PICK(x[0], x[1], 2, 6, 3, 7), e = PICK(x[2], x[3], 2, 6, 3, 7);
      float *at = to + d * BLOCK + i;
      *(quad *)at = PICK(a, b, 0, 1, 4, 5);
      *(quad *)(at + BLOCK) = PICK(a, b, 2, 3, 6, 7);
      *(quad *)(at + 2 * BLOCK) = PICK(c, e, 0, 1, 4, 5);
      *(quad *)(at + 3 * BLOCK) = PICK(c, e, 2, 3, 6, 7);
    }
}

/* Which keys a block of queries may see. */
typedef struct {
  const int32_t *limits;
  const int64_t *queries, *keys; /* their documents, from the first of the block and of all */
  int64_t low, high;             /* of the documents of the block */
  long begin, n;                 /* queries */
  long first, stop;              /* keys that one of them sees */
  long prefix;                   /* keys before it are seen by queries before them, too */
  long grid;                     /* where a block of keys begins, up to multiples of BLOCK */
} band_t;

static void find_ends(const int64_t *numbers, long n, int64_t *low, int64_t *high) {
  *low = *high = numbers[0];
  for (long i = 1; i < n; i++) {
    *low = numbers[i] < *low ? numbers[i] : *low;
    *high = numbers[i] > *high ? numbers[i] : *high;
  }
}

static band_t find_band(const job_t *job, long b, long begin) {
  const int32_t *limits = job->limits + b * job->limits_batch;
  long n = job->L - begin < BLOCK ? job->L - begin : BLOCK;
  band_t band = {.limits = limits, .begin = begin, .n = n};
  band.grid = limits[1] < job->S ? begin + limits[1] : 0;
  band.first = begin + limits[0] > limits[2] ? begin + limits[0] : limits[2];
  band.prefix = job->prefixes ? job->prefixes[b * job->prefixes_batch] : 0;
  band.stop = begin + n + limits[1] > band.prefix ? begin + n + limits[1] : band.prefix;
  if (band.stop > limits[3]) band.stop = limits[3];
  if (band.stop > job->S) band.stop = job->S;
  if (begin + n <= limits[4] || begin >= limits[5] || band.stop < band.first)
    band.stop = band.first;
  if (job->key_documents) {
    band.queries = job->query_documents + b * job->queries_batch + begin;
    band.keys = job->key_documents + b * job->keys_batch;
    find_ends(band.queries, n, &band.low, &band.high);
  }
  return band;
}

/* Keys of a block: those of [at, at + n) that are on the grid and in the band. */
typedef struct {
  long at, n;
  int diagonal; /* row r of it is seen by the queries r and later */
  int edge;     /* some of its cells are hidden */
  int hidden;   /* all are */
} keys_t;

static keys_t find_keys(const band_t *band, long at) {
  long behind = (at - band->grid) % BLOCK, limit;
  if (behind < 0) behind += BLOCK;
  limit = at - behind + BLOCK;
  keys_t keys = {.at = at, .n = (limit < band->stop ? limit : band->stop) - at};
  const int32_t *limits = band->limits;
  int is_late = at + keys.n - 1 > band->begin + limits[1] && at + keys.n > band->prefix;
  keys.diagonal = at == band->begin + limits[1] && at >= band->prefix;
  keys.edge = keys.diagonal || is_late || at < band->begin + band->n - 1 + limits[0] || band->begin < limits[4] ||
              band->begin + band->n > limits[5];
  if (band->keys) {
    int64_t low, high;
    find_ends(band->keys + at, keys.n, &low, &high);
    keys.hidden = low > band->high || high < band->low;
    keys.edge |= low != high || low != band->low || low != band->high;
  }
  return keys;
}

static long clamp(long n, long low, long high) { return n < low ? low : n > high ? high : n; }

/* −∞ where a query, a column, may not see a key, a row. */
static void hide(float *scores, const band_t *band, const keys_t *keys, long cols) {
  const int32_t *limits = band->limits;
  for (long row = 0; row < keys->n; row++) {
    long first = keys->at + row - limits[1], stop = keys->at + row - limits[0] + 1;
    if (first < limits[4] || keys->at + row < band->prefix) first = limits[4];
    if (stop > limits[5]) stop = limits[5];
    long start = keys->diagonal ? row / GROUP * GROUP : 0;
    float *x = scores + row * BLOCK;
    first = clamp(first - band->begin, start, cols);
    for (long col = start; col < first; col++) x[col] = -INFINITY;
    for (long col = clamp(stop - band->begin, first, cols); col < cols; col++) x[col] = -INFINITY;
    for (long col = start; band->keys && col < band->n; col++)
      if (band->queries[col] != band->keys[keys->at + row]) x[col] = -INFINITY;
  }
}

/* Products of queries and keys to scores: the formula's soft cap, or its bias, and its mask. */
static void finish_scores(const job_t *job, long h, float *scores, const band_t *band,
                          const keys_t *keys, long cols) {
  for (long row = 0; row < keys->n && (job->bias || job->softcap); row++) {
    float *x = scores + row * BLOCK;
    long col = keys->diagonal ? row / GROUP * GROUP : 0;
    const float *bias = job->bias + h * job->bias_head + band->begin - keys->at - row + job->S - 1;
    vec cap = spread(job->softcap), inverse = spread(1.0f / job->softcap);
    if (job->bias)
      for (; col < cols; col += LANES) *(vec *)(x + col) += *(const vec *)(bias + col);
    else
      for (; col < cols; col += LANES)
        *(vec *)(x + col) = cap * hyperbolic_tangent(*(vec *)(x + col) * inverse);
  }
  if (keys->edge) hide(scores, band, keys, cols);
}

typedef struct {
  float top[BLOCK], sum[BLOCK], shrink[BLOCK];
} softmax_t;

/* Scores to exp(score − top), with a top that may have grown. */
static void update_softmax(softmax_t *s, float *scores, long keys, long cols, int diagonal) {
  for (long col = 0; col < cols; col += LANES) {
    long end = diagonal && col / GROUP * GROUP + GROUP < keys ? col / GROUP * GROUP + GROUP : keys;
    float *x = scores + col;
    vec old = *(vec *)(s->top + col), sum = {0}, tops[4] = {old, old, old, old};
    long key = 0;
    for (; key + 4 <= end; key += 4)
      for (int i = 0; i < 4; i++)
        tops[i] = maximum_of(tops[i], *(vec *)(x + (key + i) * BLOCK));
    for (; key < end; key++) tops[0] = maximum_of(tops[0], *(vec *)(x + key * BLOCK));
    vec top = maximum_of(maximum_of(tops[0], tops[1]), maximum_of(tops[2], tops[3]));
    vec finite = choose(top == spread(-INFINITY), (vec){0}, top);
    for (key = 0; key < end; key++) {
      vec weight = exponential(*(vec *)(x + key * BLOCK) - finite);
      *(vec *)(x + key * BLOCK) = weight;
      sum += weight;
    }
    vec shrink = exponential(old - finite);
    *(vec *)(s->top + col) = top;
    *(vec *)(s->shrink + col) = shrink;
    *(vec *)(s->sum + col) = *(vec *)(s->sum + col) * shrink + sum;
  }
}

static void attend_block(const job_t *job, long b, long h, long block, float *room) {
  long L = job->L, D = job->D, begin = block * BLOCK;
  band_t band = find_band(job, b, begin);
  long n = band.n, cols = widen(n), kv = h / (job->H / job->K);
  float *queries = room, *values = queries + BLOCK * D, *sums = values + BLOCK * D;
  float *scores = sums + BLOCK * D;
  const float *k = head_of(&job->k, b, kv), *v = head_of(&job->v, b, kv);
  softmax_t softmax;
  keys_t keys;
  int begun = 0;
  for (int i = 0; i < BLOCK; i++) softmax.top[i] = -INFINITY, softmax.sum[i] = 0.0f;
  transpose(head_of(&job->q, b, h) + begin * job->q.row, job->q.row, queries, n, D, job->scale);
  for (long at = band.first; at < band.stop; at += keys.n) {
    keys = find_keys(&band, at);
    if (keys.hidden) continue;
    product_t score = {.a = k + at * job->k.row, .a_row = job->k.row, .a_depth = 1,
                       .b = queries, .b_depth = BLOCK, .c = scores, .c_row = BLOCK};
    multiply(&score, keys.n, cols, D, keys.diagonal ? COLS_FROM_ROW : ALL);
    finish_scores(job, h, scores, &band, &keys, cols);
    update_softmax(&softmax, scores, keys.n, cols, keys.diagonal);
    copy_rows(v + at * job->v.row, job->v.row, values, keys.n, D);
    product_t gather = {.a = scores, .a_row = 1, .a_depth = BLOCK, .b = values, .b_depth = D,
                        .c = sums, .c_row = D, .adds = begun, .factors = softmax.shrink};
    multiply(&gather, n, D, keys.n, keys.diagonal ? DEPTH_TO_ROW : ALL);
    begun = 1;
  }
  if (!begun) clear_rows(sums, D, n, D);
  float *out = head_of(&job->out, b, h) + begin * job->out.row;
  float *norms = job->norms + 2 * ((b * job->H + h) * L + begin);
  for (long i = 0; i < n; i++) {
    int empty = softmax.sum[i] == 0.0f; /* no key, or all scores are −∞: all weights are 0 */
    float factor = empty ? 0.0f : 1.0f / softmax.sum[i];
    norms[2 * i] = empty ? 0.0f : softmax.top[i];
    norms[2 * i + 1] = factor;
    for (long d = 0; d < D; d += LANES)
      *(vec *)(out + i * job->out.row + d) = *(vec *)(sums + i * D + d) * factor;
  }
}

typedef struct {
  float top[BLOCK], factor[BLOCK], drift[BLOCK]; /* drift: Σ weight · its gradient */
} query_rows_t;

/* Scores and gradients of weights to weights and gradients of scores. */
static void bend(const job_t *job, float *scores, float *grads, const query_rows_t *rows,
                 const keys_t *keys, long cols) {
  vec cap = spread(job->softcap), inverse = spread(1.0f / job->softcap), one = spread(1.0f);
  for (long key = 0; key < keys->n; key++)
    for (long col = keys->diagonal ? key / GROUP * GROUP : 0; col < cols; col += LANES) {
      vec *score = (vec *)(scores + key * BLOCK + col), *grad = (vec *)(grads + key * BLOCK + col);
      vec capped = *score, weight = exponential(capped - *(const vec *)(rows->top + col));
      weight *= *(const vec *)(rows->factor + col);
      *score = weight;
      *grad = weight * (*grad - *(const vec *)(rows->drift + col)) * job->scale;
      if (job->softcap) { /* d (c tanh(x / c)) = 1 − tanh²; −∞ is a hidden cell */
        vec slope = maximum_of(-cap, capped) * inverse;
        *grad *= one - slope * slope;
      }
    }
}

static void differentiate_head(const job_t *job, long b, long h, float *room) {
  long L = job->L, D = job->D, kv = h / (job->H / job->K), size = BLOCK * D;
  float *queries = room, *grads = queries + size; /* D × BLOCK */
  float *query_rows = grads + size, *grad_rows = query_rows + size, *key_rows = grad_rows + size;
  float *dq = key_rows + size, *weights = dq + size, *dscores = weights + BLOCK * BLOCK;
  float *k = head_of(&job->k, b, kv), *v = head_of(&job->v, b, kv);
  float *dk = head_of(&job->dk, b, h), *dv = head_of(&job->dv, b, h);
  long q_row = job->q.row, grad_row = job->grad.row;
  clear_rows(dk, job->dk.row, job->S, D);
  clear_rows(dv, job->dv.row, job->S, D);
  for (long begin = 0; begin < L; begin += BLOCK) {
    band_t band = find_band(job, b, begin);
    keys_t keys;
    long n = band.n, cols = widen(n);
    int begun = 0;
    float *q = head_of(&job->q, b, h) + begin * q_row;
    float *grad = head_of(&job->grad, b, h) + begin * grad_row;
    float *out = head_of(&job->out, b, h) + begin * job->out.row;
    query_rows_t rows = {{0}};
    const float *kept = job->norms + 2 * ((b * job->H + h) * L + begin);
    for (long i = 0; i < n; i++) {
      vec sum = {0};
      for (long d = 0; d < D; d += LANES)
        sum += *(vec *)(grad + i * grad_row + d) * *(vec *)(out + i * job->out.row + d);
      rows.top[i] = kept[2 * i], rows.factor[i] = kept[2 * i + 1];
      rows.drift[i] = add_lanes(sum);
    }
    transpose(q, q_row, queries, n, D, job->scale);
    transpose(grad, grad_row, grads, n, D, 1.0f);
    copy_rows(q, q_row, query_rows, n, D);
    copy_rows(grad, grad_row, grad_rows, n, D);
    for (long at = band.first; at < band.stop; at += keys.n) {
      keys = find_keys(&band, at);
      if (keys.hidden) continue;
      copy_rows(k + at * job->k.row, job->k.row, key_rows, keys.n, D);
      product_t product = {.a = key_rows, .a_row = D, .a_depth = 1, .b = queries,
                           .b_depth = BLOCK, .c = weights, .c_row = BLOCK};
      multiply(&product, keys.n, cols, D, keys.diagonal ? COLS_FROM_ROW : ALL);
      product.a = v + at * job->v.row, product.a_row = job->v.row;
      product.b = grads, product.c = dscores;
      multiply(&product, keys.n, cols, D, keys.diagonal ? COLS_FROM_ROW : ALL);
      finish_scores(job, h, weights, &band, &keys, cols);
      bend(job, weights, dscores, &rows, &keys, cols);
      product = (product_t){.a = weights, .a_row = BLOCK, .a_depth = 1, .b = grad_rows,
                            .b_depth = D, .c = dv + at * job->dv.row, .c_row = job->dv.row,
                            .adds = 1};
      multiply(&product, keys.n, D, n, keys.diagonal ? DEPTH_FROM_ROW : ALL);
      product.a = dscores, product.b = query_rows;
      product.c = dk + at * job->dk.row, product.c_row = job->dk.row;
      multiply(&product, keys.n, D, n, keys.diagonal ? DEPTH_FROM_ROW : ALL);
      product = (product_t){.a = dscores, .a_row = 1, .a_depth = BLOCK, .b = key_rows,
                            .b_depth = D, .c = dq, .c_row = D, .adds = begun};
      multiply(&product, n, D, keys.n, keys.diagonal ? DEPTH_TO_ROW : ALL);
      begun = 1;
    }
    if (!begun) clear_rows(dq, D, n, D);
    float *to = head_of(&job->dq, b, h) + begin * job->dq.row;
    for (long i = 0; i < n; i++)
      for (long d = 0; d < D; d += LANES)
        *(vec *)(to + i * job->dq.row + d) = *(vec *)(dq + i * D + d);
  }
}

static long count_blocks(const job_t *job) { return (job->L + BLOCK - 1) / BLOCK; }

static void attend_share(void *pointer) {
  job_t *job = pointer;
  long n_blocks = count_blocks(job), n = job->B * job->H * n_blocks;
  float *room = aligned_alloc(64, sizeof(float) * BLOCK * (3 * job->D + BLOCK));
  while (room) {
    long task = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED), head = task / n_blocks;
    if (task >= n) break;
    /* The last block, with most keys, first: threads end together. */
    attend_block(job, head / job->H, head % job->H, n_blocks - 1 - task % n_blocks, room);
  }
  free(room);
}

static void differentiate_share(void *pointer) {
  job_t *job = pointer;
  float *room = aligned_alloc(64, sizeof(float) * BLOCK * (6 * job->D + 2 * BLOCK));
  while (room) {
    long head = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
    if (head >= job->B * job->H) break;
    differentiate_head(job, head / job->H, head % job->H, room);
  }
  free(room);
}

static void share_out(job_t *job, void (*share)(void *), parallel_t parallel, unsigned threads) {
  if (parallel && threads > 1)
    parallel(share, job, threads, 0);
  else
    share(job);
}

/* Both return 0 if no thread found memory. Without `parallel` there is one thread. */
int attend(job_t *job, parallel_t parallel, unsigned most_threads) {
  share_out(job, attend_share, parallel, most_threads);
  return job->next >= job->B * job->H * count_blocks(job);
}

int differentiate(job_t *job, parallel_t parallel, unsigned most_threads) {
  share_out(job, differentiate_share, parallel, most_threads);
  return job->next >= job->B * job->H;
}
