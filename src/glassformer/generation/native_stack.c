/* The layers of a Transformer for a few rows, without a word of Python between them, nor between
   the tokens of a text that is written greedily.

   A row is a token that is being read: B sequences of T tokens each, of which `length` were read
   before. Each phase of a layer is shared out among the threads, which then wait for each other:

       norm | qkv | rotate, keep k and v | attend | out (+) | … | norm | up | activate | down (+)

   Matrices lie as PyTorch has them, (out, in), in float32 or int8; perhaps a second time in
   panels, for calls of many rows. The number of threads changes no bit of the result. */

#include "native_products.c"

#define MOST_DIM 256 /* of a head */

static long largest(long a, long b) { return a > b ? a : b; }

/* The widest input of a product: what is rounded for int8. */
static long widest(const stack_t *s) {
  return largest(largest(s->dim, s->hidden), s->heads * s->head_dim);
}

static long count_keys(const call_t *c) { return largest(c->capacity, c->context_len); }

static long projected_width(const stack_t *s) {
  return (s->heads + 2 * s->kv_heads) * s->head_dim;
}

/* How many floats the results between two phases take. */
long scratch_floats(const stack_t *s, const call_t *c) {
  long rows = c->n_sequences * c->n_tokens, hidden = s->hidden * (s->gated ? 2 : 1);
  long row = s->dim + projected_width(s) + s->heads * s->head_dim + hidden + 2;
  return rows * (row + (s->is_int8 ? 2 * (widest(s) / 4 + 1) : widest(s))) +
         c->most_threads * count_keys(c);
}

/* The place of a slot: padding on the left does not count. */
static long find_place(const call_t *c, long b, long slot) {
  long place = c->missing ? slot - c->missing[b] : slot;
  return place < 0 ? 0 : place;
}

static void embed_rows(const share_t *t) {
  const stack_t *s = t->stack;
  const call_t *c = t->call;
  const linear_t *table = &s->embedding;
  long n = s->dim;
  SHARE(r, t->n_rows) {
    long token = c->tokens[r];
    float *x = c->x + r * n, factor = s->embedding_scale;
    if (table->weight)
      for (long k = 0; k < n; k++) x[k] = table->weight[token * n + k] * factor;
    else
      for (long k = 0; k < n; k++)
        x[k] = table->integers[token * n + k] * table->scale[token] * factor;
    if (c->added) {
      long b = r / c->n_tokens, place = find_place(c, b, c->length + r % c->n_tokens);
      for (long k = 0; k < n; k++) x[k] += c->added[place * n + k];
    }
    if (s->embedding_norm.weight) normalize(x, &s->embedding_norm, x, n);
  }
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
    long place = find_place(c, b, slot);
    float *row = t->projected + r * (H + 2 * K) * D;
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

/* Where the keys of one head lie: those of a step stand one after the other, in the memory of the
   copy that read it. */
typedef struct {
  const float *first;
  const int32_t *origins; /* 0: all in one memory */
  long capacity, step;
} keys_t;

static inline const float *find_key(const keys_t *keys, long k) {
  long copy = keys->origins ? keys->origins[k] : 0;
  return keys->first + (copy * keys->capacity + k) * keys->step;
}

/* One head of one row over the keys `start` to `stop`; values lie K D after their keys. */
static void attend_head(const stack_t *s, const float *q, const keys_t *keys, long start, long stop,
                        float *scores, float *out) {
  long D = s->head_dim, value = s->kv_heads * D;
  float most = -INFINITY, sum = 0;
  memset(out, 0, D * sizeof(float));
  for (long k = start; k < stop; k++) {
    scores[k] = dot(q, find_key(keys, k), D) * s->scale;
    most = scores[k] > most ? scores[k] : most;
  }
  for (long k = start; k < stop; k++) scores[k] = exponential(scores[k] - most);
  for (long k = start; k < stop; k++) sum += scores[k];
  long k = start;
  for (; k + 4 <= stop; k += 4) {
    const float *a = find_key(keys, k) + value, *b = find_key(keys, k + 1) + value;
    const float *c = find_key(keys, k + 2) + value, *d = find_key(keys, k + 3) + value;
    for (long i = 0; i < D; i++)
      out[i] += (scores[k] * a[i] + scores[k + 1] * b[i]) +
                (scores[k + 2] * c[i] + scores[k + 3] * d[i]);
  }
  for (; k < stop; k++) {
    const float *a = find_key(keys, k) + value;
    for (long i = 0; i < D; i++) out[i] += scores[k] * a[i];
  }
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
    long row = c->origins ? b - b % c->copies : b; /* origins count from a prompt's first copy */
    keys_t keys = {.first = memory + row * c->capacity * 2 * K * D + h / (H / K) * D,
                   .origins = c->origins ? c->origins + b * c->capacity : 0,
                   .capacity = c->capacity,
                   .step = 2 * K * D};
    attend_head(s, t->projected + r * width + h * D, &keys, start, stop, t->scores,
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
    keys_t keys = {.first = context + b * c->context_len * 2 * K * D + h / (H / K) * D,
                   .step = 2 * K * D};
    attend_head(s, t->projected + (r * H + h) * D, &keys, 0, stop, t->scores,
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
  long rows = c->n_sequences * c->n_logits, n = s->dim;
  SHARE(r, rows) { /* the last tokens of each sequence */
    float *row = t->normed + r * n;
    long b = r / c->n_logits, token = c->n_tokens - c->n_logits + r % c->n_logits;
    memcpy(row, c->x + (b * c->n_tokens + token) * n, n * sizeof(float));
    for (long k = 0; k < n; k++) row[k] *= s->output_scale;
  }
  wait_for_all(t);
  round_rows(t, t->normed, n, rows);
  multiply(t, c->head, t->normed, c->logits, rows, 0);
}

static share_t take_share(const work_t *work) {
  const stack_t *s = work->stack;
  const call_t *c = work->call;
  long rows = c->n_sequences * c->n_tokens;
  float *projected = c->scratch + rows * s->dim;
  float *attended = projected + rows * projected_width(s);
  float *hidden = attended + rows * s->heads * s->head_dim;
  float *rounding = hidden + rows * s->hidden * (s->gated ? 2 : 1), *scores = rounding + 2 * rows;
  float *rounded = scores + c->most_threads * count_keys(c);
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
      .rounding = (rounding_t *)rounding,
      .scores = scores + thread * count_keys(c),
      .rounded = (int8_t *)rounded,
      .panels = rounded + (s->is_int8 ? rows * (widest(s) / 4 + 1) : 0),
  };
}

static void run_layers(void *argument) {
  const share_t share = take_share(argument), *t = &share;
  const stack_t *s = t->stack;
  const call_t *c = t->call;
  if (c->tokens) embed_rows(t);
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
  if (c->head) write_logits(t);
}

static void run_product(void *argument) {
  const work_t *work = argument;
  const share_t share = take_share(work), *t = &share;
  round_rows(t, work->input, work->linear->n_in, t->n_rows);
  multiply(t, work->linear, work->input, work->output, t->n_rows, 0);
}

static const uint8_t *find_forbidden(const call_t *c, const choice_t *choice, long b) {
  return choice->forbidden ? choice->forbidden + b / c->copies * c->head->n_out : 0;
}

static int64_t name_output(const call_t *c, int64_t k) { return c->outputs ? c->outputs[k] : k; }

/* Of each row: the best tokens, and what their logarithms are among all that are not excluded. */
static void run_ranking(void *argument) {
  const work_t *work = argument;
  const share_t share = take_share(work), *t = &share;
  const choice_t *choice = work->choice;
  long V = t->call->head->n_out, n = work->n_best;
  SHARE(b, t->call->n_sequences) {
    float *row = t->call->logits + b * V, values[n];
    const uint8_t *forbidden = find_forbidden(t->call, choice, b);
    double *logs = work->logs + b * n;
    exclude(row, choice->never, choice->n_never);
    int is_odd = has_nan(row, V);
    if (forbidden && choice->renormalizes) forbid(row, forbidden, V);
    double total = add_exponentials(row, with_rank(find_most(row, V)), V);
    if (forbidden && !choice->renormalizes) forbid(row, forbidden, V);
    int64_t *best = work->best + b * n;
    find_best(row, V, n, values, best);
    for (long i = 0; i < n; i++) {
      logs[i] = is_odd ? NAN : values[i] - total;
      best[i] = name_output(t->call, best[i]);
    }
  }
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

/* The best tokens of each row after the logits of this call, which are changed. */
void rank_rows(const stack_t *stack, const call_t *call, const choice_t *choice, long n_best,
               double *logs, int64_t *best) {
  run(run_ranking, (work_t){.stack = stack,
                            .call = call,
                            .choice = choice,
                            .n_best = n_best,
                            .logs = logs,
                            .best = best});
}

/* The token that row r of the logits chooses, or −1; the logits of excluded tokens become −∞. */
static int64_t choose_token(const call_t *call, const choice_t *choice, long r) {
  long V = call->head->n_out;
  float *row = call->logits + r * V;
  const uint8_t *forbidden = find_forbidden(call, choice, r / call->n_logits);
  exclude(row, choice->never, choice->n_never);
  if (forbidden) forbid(row, forbidden, V);
  int64_t most = find_first_most(row, V);
  return most < 0 ? most : name_output(call, most);
}

/* Append the most probable token to each row, up to `n_steps` times, until a row has ended.

   `written` is (n_steps, B). How many steps were made; or −1 − b where row b has no token to
   choose, and the logits say why. */
long write_greedily(const stack_t *stack, call_t *call, const choice_t *choice, long n_steps,
                    int64_t *written) {
  long B = call->n_sequences;
  for (long n = 0; n < n_steps; n++, written += B) {
    int has_ended = 0;
    read_rows(stack, call);
    for (long b = 0; b < B; b++) {
      written[b] = choose_token(call, choice, b);
      if (written[b] < 0) return -1 - b;
      has_ended |= is_among(written[b], choice->stops, choice->n_stops);
    }
    if (has_ended) return n + 1;
    call->length += call->n_tokens;
    call->tokens = written;
    call->n_tokens = 1;
  }
  return n_steps;
}

/* The tokens of one sequence are guesses but for the first: the most probable token after each, as
   long as the guess before it was right. How many these are, or −1 − r as above. */
long write_ahead(const stack_t *stack, call_t *call, const choice_t *choice, int64_t *written) {
  read_rows(stack, call);
  for (long r = 0; r < call->n_tokens; r++) {
    written[r] = choose_token(call, choice, r);
    if (written[r] < 0) return -1 - r;
    if (r + 1 == call->n_tokens || written[r] != call->tokens[r + 1]) return r + 1;
  }
  return call->n_tokens;
}
