/* The layers of a Transformer for a few rows, without a word of Python between them.

   A row is a token that is being read: B sequences of T tokens each, of which `length` were read
   before. Each phase of a layer is shared out among the threads, which then wait for each other:

       norm | qkv | rotate, keep k and v | attend | out (+) | … | norm | up | activate | down (+)

   Matrices lie as PyTorch has them, (out, in), in float32 or int8; in float32 perhaps a second time
   in panels, for calls of many rows. The number of threads changes no bit of the result. */

#include "../functional/int8/kernel.c"
#include "native_arithmetic.c"

#define TILE 64   /* rows that are multiplied with a block of weights while it is near */
#define MOST_DIM 256 /* of a head */

typedef struct {
  const float *weight;    /* one of these two */
  const int8_t *integers;
  const float *scale, *bias;
  const float *panels;    /* the weight again, (out / PANEL, in, PANEL), or 0 */
  long n_out, n_in;
} linear_t;

typedef struct {
  norm_t attention_norm, q_norm, k_norm, cross_norm, feed_forward_norm;
  linear_t qkv, out, cross_q, cross_out, up, down;
} layer_t;

typedef struct {
  long n_layers, dim, hidden, heads, kv_heads, head_dim, window; /* window 0: none */
  float scale, output_scale;
  int32_t pre_norm, gated, activation, interleaved, causal, is_int8;
  norm_t final_norm; /* weight 0: none */
  linear_t head;     /* n_out 0: none */
  const layer_t *layers;
} stack_t;

typedef struct {
  long n_sequences, n_tokens, length; /* B, T, what was read before */
  float *x;                           /* (B T, C), in and out */
  float *logits;                      /* (B, V), after each sequence's last token */
  float *memory;                      /* (layers, B, capacity, 2, K, D) */
  long capacity, memory_stride;       /* floats from one layer's memory to the next's; 0: shared */
  const int64_t *missing;             /* (B,) padding on the left, or 0 */
  const int64_t *lengths;             /* (B,) tokens of a sequence that is not causal, or 0 */
  const float *cos, *sin;             /* (places, D) or 0 */
  const float *const *contexts;       /* of each layer (B / copies, S, 2, K, D), or 0 */
  const int64_t *context_lengths;     /* (B / copies,) or 0 */
  long context_len, copies;
  float *scratch;                     /* see `scratch_floats` */
  parallel_t parallel;
  count_t thread, n_threads;
  void (*barrier)(void);
  unsigned most_threads;
} call_t;

typedef struct {
  const stack_t *stack;
  const call_t *call;
  const linear_t *linear; /* of one product: */
  const float *input;
  float *output;
} work_t;

/* What one thread sees of a call. */
typedef struct {
  const stack_t *stack;
  const call_t *call;
  long thread, n_threads, n_rows;
  float *normed, *projected, *attended, *hidden, *scores, *x_scale;
  int8_t *rounded; /* rows as int8 */
  float *panels;   /* or in groups of PANEL, column by column */
} share_t;

static long largest(long a, long b) { return a > b ? a : b; }

/* The widest input of a product: what is rounded for int8. */
static long widest(const stack_t *s) {
  return largest(largest(s->dim, s->hidden), s->heads * s->head_dim);
}

static long count_keys(const call_t *c) {
  return largest(c->length + c->n_tokens, c->context_len);
}

static long projected_width(const stack_t *s) {
  return (s->heads + 2 * s->kv_heads) * s->head_dim;
}

/* How many floats the results between two phases take. */
long scratch_floats(const stack_t *s, const call_t *c) {
  long rows = c->n_sequences * c->n_tokens, hidden = s->hidden * (s->gated ? 2 : 1);
  long row = s->dim + projected_width(s) + s->heads * s->head_dim + hidden + 1;
  return rows * (row + (s->is_int8 ? widest(s) / 4 + 1 : widest(s))) +
         c->most_threads * count_keys(c);
}

static void wait_for_all(const share_t *t) {
  if (t->n_threads > 1) t->call->barrier();
}

#define SHARE(ITEM, COUNT)                                                  \
  for (long ITEM = (COUNT)*t->thread / t->n_threads,                        \
            ITEM##_end = (COUNT) * (t->thread + 1) / t->n_threads;          \
       ITEM < ITEM##_end; ITEM++)

static void multiply_block(const share_t *t, const linear_t *f, const float *x, long m, long rows,
                           long n, float *sums) {
  if (f->weight) {
    const float *from = x + m * f->n_in, *w = f->weight + n * f->n_in;
    switch (rows) {
      case 1: product_1(from, w, f->n_in, sums); return;
      case 2: product_2(from, w, f->n_in, sums); return;
      case 3: product_3(from, w, f->n_in, sums); return;
      default: product_4(from, w, f->n_in, sums); return;
    }
  }
  const int8_t *from = t->rounded + m * f->n_in, *w = f->integers + n * f->n_in;
  int32_t whole[WIDE * WIDE];
  switch (rows) {
    case 1: multiply_one(from, w, f->n_in, whole); break;
    case 2: multiply_2(from, w, f->n_in, whole); break;
    case 3: multiply_3(from, w, f->n_in, whole); break;
    default: multiply_4(from, w, f->n_in, whole);
  }
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < WIDE; j++)
      sums[WIDE * i + j] = (float)whole[WIDE * i + j] * t->x_scale[m + i] * f->scale[n + j];
}

/* Whole groups of PANEL rows by the panels of a matrix; says how many rows that were. */
static long multiply_panels(const share_t *t, const linear_t *f, const float *x, float *y,
                            long n_rows, int added) {
  long n_groups = n_rows / PANEL, n_panels = (f->n_out + PANEL - 1) / PANEL, size = PANEL * f->n_in;
  if (!f->panels || !n_groups) return 0;
  SHARE(g, n_groups)
    for (long k = 0; k < f->n_in; k++)
      for (long i = 0; i < PANEL; i++)
        t->panels[g * size + k * PANEL + i] = x[(g * PANEL + i) * f->n_in + k];
  wait_for_all(t);
  for (long tile = 0; tile < n_groups; tile += TILE / PANEL) {
    long end = tile + TILE / PANEL < n_groups ? tile + TILE / PANEL : n_groups;
    SHARE(p, n_panels) {
      long n = p * PANEL, width = f->n_out - n < PANEL ? f->n_out - n : PANEL;
      for (long g = tile; g < end; g++) {
        float sums[PANEL * PANEL];
        product_of_panels(t->panels + g * size, f->panels + p * size, f->n_in, sums);
        for (long i = 0; i < PANEL; i++)
          for (long j = 0; j < width; j++) {
            float sum = sums[PANEL * i + j] + (f->bias ? f->bias[n + j] : 0.0f);
            float *to = y + (g * PANEL + i) * f->n_out + n + j;
            *to = added ? *to + sum : sum;
          }
      }
    }
  }
  return n_groups * PANEL;
}

/* y = x wᵀ + bias, or y + x wᵀ + bias. A phase; int8 reads what `round_rows` has left. */
static void multiply(const share_t *t, const linear_t *f, const float *x, float *y, long n_rows,
                     int added) {
  long n_blocks = (f->n_out + WIDE - 1) / WIDE;
  for (long tile = multiply_panels(t, f, x, y, n_rows, added); tile < n_rows; tile += TILE) {
    long end = tile + TILE < n_rows ? tile + TILE : n_rows;
    SHARE(b, n_blocks) {
      /* The last block moves back to be whole; only what is new of it is written. */
      long n = WIDE * b + WIDE > f->n_out ? f->n_out - WIDE : WIDE * b;
      for (long m = tile; m < end; m += WIDE) {
        float sums[WIDE * WIDE];
        long rows = end - m < WIDE ? end - m : WIDE;
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
  SHARE(r, n_rows) round_row(x + r * n_in, t->rounded + r * n_in, t->x_scale + r, n_in);
  wait_for_all(t);
}

static void normalize_rows(const share_t *t, const float *x, const norm_t *norm, float *y,
                           long n_rows) {
  long n = t->stack->dim;
  SHARE(r, n_rows) normalize(x + r * n, norm, y + r * n, n);
  wait_for_all(t);
}

static void rotate(const stack_t *s, float *head, const float *cos, const float *sin) {
  long D = s->head_dim;
  float turned[MOST_DIM];
  for (long d = 0; d < D; d++) {
    long partner = s->interleaved ? d ^ 1 : d < D / 2 ? d + D / 2 : d - D / 2;
    turned[d] = head[d] * cos[d] + head[partner] * sin[d];
  }
  memcpy(head, turned, D * sizeof(float));
}

/* Head norms, rotation, and keys and values into the memory. */
static void keep_rows(const share_t *t, const layer_t *layer, float *memory) {
  const stack_t *s = t->stack;
  const call_t *c = t->call;
  long D = s->head_dim, H = s->heads, K = s->kv_heads;
  SHARE(r, t->n_rows) {
    long b = r / c->n_tokens, slot = c->length + r % c->n_tokens;
    long place = c->missing ? slot - c->missing[b] : slot;
    float *row = t->projected + r * (H + 2 * K) * D;
    place = place < 0 ? 0 : place;
    for (long h = 0; h < H + K; h++) {
      float *head = row + h * D;
      const norm_t *norm = h < H ? &layer->q_norm : &layer->k_norm;
      if (norm->weight) normalize(head, norm, head, D);
      if (c->cos) rotate(s, head, c->cos + place * D, c->sin + place * D);
    }
    memcpy(memory + (b * c->capacity + slot) * 2 * K * D, row + H * D, 2 * K * D * sizeof(float));
  }
  wait_for_all(t);
}

/* One head of one row over the keys `start` to `stop`, each 2 K D after the last. */
static void attend_head(const stack_t *s, const float *q, const float *keys, long start, long stop,
                        float *scores, float *out) {
  long D = s->head_dim, step = 2 * s->kv_heads * D;
  const float *values = keys + s->kv_heads * D;
  float most = -INFINITY, sum = 0;
  memset(out, 0, D * sizeof(float));
  for (long k = start; k < stop; k++) {
    scores[k] = dot(q, keys + k * step, D) * s->scale;
    most = scores[k] > most ? scores[k] : most;
  }
  for (long k = start; k < stop; k++) scores[k] = exponential(scores[k] - most);
  for (long k = start; k < stop; k++) sum += scores[k];
  long k = start;
  for (; k + 4 <= stop; k += 4) {
    const float *a = values + k * step, *b = a + step, *c = b + step, *d = c + step;
    for (long i = 0; i < D; i++)
      out[i] += (scores[k] * a[i] + scores[k + 1] * b[i]) +
                (scores[k + 2] * c[i] + scores[k + 3] * d[i]);
  }
  for (; k < stop; k++)
    for (long i = 0; i < D; i++) out[i] += scores[k] * values[k * step + i];
  float factor = stop > start ? 1.0f / sum : 0.0f;
  for (long i = 0; i < D; i++) out[i] *= factor;
}

static void attend(const share_t *t, const float *memory) {
  const stack_t *s = t->stack;
  const call_t *c = t->call;
  long D = s->head_dim, H = s->heads, K = s->kv_heads, width = (H + 2 * K) * D;
  SHARE(i, t->n_rows * H) {
    long r = i / H, h = i % H, b = r / c->n_tokens, slot = c->length + r % c->n_tokens;
    long start = c->missing ? c->missing[b] : 0, stop = slot + 1;
    if (s->window && start < stop - s->window) start = stop - s->window;
    if (!s->causal) stop = c->lengths ? c->lengths[b] : c->n_tokens;
    const float *keys = memory + b * c->capacity * 2 * K * D + h / (H / K) * D;
    attend_head(s, t->projected + r * width + h * D, keys, start, stop, t->scores,
                t->attended + (r * H + h) * D);
  }
  wait_for_all(t);
}

static void attend_context(const share_t *t, const float *context) {
  const stack_t *s = t->stack;
  const call_t *c = t->call;
  long D = s->head_dim, H = s->heads, K = s->kv_heads;
  SHARE(i, t->n_rows * H) {
    long r = i / H, h = i % H, b = r / c->n_tokens / c->copies;
    long stop = c->context_lengths ? c->context_lengths[b] : c->context_len;
    const float *keys = context + b * c->context_len * 2 * K * D + h / (H / K) * D;
    attend_head(s, t->projected + (r * H + h) * D, keys, 0, stop, t->scores,
                t->attended + (r * H + h) * D);
  }
  wait_for_all(t);
}

/* The input of a part: normed before it, or the residual stream itself. */
static const float *enter(const share_t *t, const norm_t *norm) {
  const float *x = t->call->x;
  if (t->stack->pre_norm) {
    normalize_rows(t, x, norm, t->normed, t->n_rows);
    x = t->normed;
  }
  round_rows(t, x, t->stack->dim, t->n_rows);
  return x;
}

/* The output of a part is added to the residual stream. */
static void leave(const share_t *t, const linear_t *out, const float *y, const norm_t *norm) {
  round_rows(t, y, out->n_in, t->n_rows);
  multiply(t, out, y, t->call->x, t->n_rows, 1);
  if (!t->stack->pre_norm) normalize_rows(t, t->call->x, norm, t->call->x, t->n_rows);
}

static void feed_forward(const share_t *t, const layer_t *layer) {
  const stack_t *s = t->stack;
  long n = s->hidden;
  const float *x = enter(t, &layer->feed_forward_norm);
  multiply(t, &layer->up, x, t->hidden, t->n_rows, 0);
  if (!s->gated) {
    /* By whole rows: the last numbers of a run are computed one by one, which rounds otherwise. */
    SHARE(r, t->n_rows) activate(t->hidden + r * n, n, s->activation);
    wait_for_all(t);
  } else { /* rows move together: each thread's row goes where it and those before it lay */
    SHARE(r, t->n_rows) {
      float *gate = t->hidden + r * 2 * n, *up = gate + n;
      activate(gate, n, s->activation);
      for (long k = 0; k < n; k++) gate[k] *= up[k];
    }
    wait_for_all(t);
    if (t->thread == 0)
      for (long r = 1; r < t->n_rows; r++)
        memmove(t->hidden + r * n, t->hidden + r * 2 * n, n * sizeof(float));
    wait_for_all(t);
  }
  leave(t, &layer->down, t->hidden, &layer->feed_forward_norm);
}

static void write_logits(const share_t *t) {
  const stack_t *s = t->stack;
  const call_t *c = t->call;
  long B = c->n_sequences, n = s->dim;
  SHARE(b, B) { /* the last token of each sequence */
    float *row = t->normed + b * n;
    memcpy(row, c->x + ((b + 1) * c->n_tokens - 1) * n, n * sizeof(float));
    for (long k = 0; k < n; k++) row[k] *= s->output_scale;
  }
  wait_for_all(t);
  round_rows(t, t->normed, n, B);
  multiply(t, &s->head, t->normed, c->logits, B, 0);
}

static share_t take_share(const work_t *work) {
  const stack_t *s = work->stack;
  const call_t *c = work->call;
  long rows = c->n_sequences * c->n_tokens;
  float *projected = c->scratch + rows * s->dim;
  float *attended = projected + rows * projected_width(s);
  float *hidden = attended + rows * s->heads * s->head_dim;
  float *x_scale = hidden + rows * s->hidden * (s->gated ? 2 : 1), *scores = x_scale + rows;
  long thread = c->parallel ? c->thread() : 0;
  return (share_t){
      .stack = s,
      .call = c,
      .thread = thread,
      .n_threads = c->parallel ? c->n_threads() : 1,
      .n_rows = rows,
      .normed = c->scratch,
      .projected = projected,
      .attended = attended,
      .hidden = hidden,
      .x_scale = x_scale,
      .scores = scores + thread * count_keys(c),
      .rounded = (int8_t *)(scores + c->most_threads * count_keys(c)),
      .panels = scores + c->most_threads * count_keys(c),
  };
}

static void run_layers(void *argument) {
  const share_t share = take_share(argument), *t = &share;
  const stack_t *s = t->stack;
  const call_t *c = t->call;
  for (long i = 0; i < s->n_layers; i++) {
    const layer_t *layer = s->layers + i;
    float *memory = c->memory + i * c->memory_stride;
    multiply(t, &layer->qkv, enter(t, &layer->attention_norm), t->projected, t->n_rows, 0);
    keep_rows(t, layer, memory);
    attend(t, memory);
    leave(t, &layer->out, t->attended, &layer->attention_norm);
    if (c->contexts) {
      multiply(t, &layer->cross_q, enter(t, &layer->cross_norm), t->projected, t->n_rows, 0);
      attend_context(t, c->contexts[i]);
      leave(t, &layer->cross_out, t->attended, &layer->cross_norm);
    }
    feed_forward(t, layer);
  }
  if (s->final_norm.weight) normalize_rows(t, c->x, &s->final_norm, c->x, t->n_rows);
  if (s->head.n_out) write_logits(t);
}

static void run_product(void *argument) {
  const work_t *work = argument;
  const share_t share = take_share(work), *t = &share;
  round_rows(t, work->input, work->linear->n_in, t->n_rows);
  multiply(t, work->linear, work->input, work->output, t->n_rows, 0);
}

static void run(void (*part)(void *), work_t work) {
  if (work.call->parallel)
    work.call->parallel(part, &work, work.call->most_threads, 0);
  else
    part(&work);
}

/* All layers; x becomes what they make of it. */
void read_rows(const stack_t *stack, const call_t *call) {
  run(run_layers, (work_t){.stack = stack, .call = call});
}

/* One product of as many rows as the call has. */
void project_rows(const stack_t *stack, const call_t *call, const linear_t *linear,
                  const float *input, float *output) {
  run(run_product,
      (work_t){.stack = stack, .call = call, .linear = linear, .input = input, .output = output});
}
