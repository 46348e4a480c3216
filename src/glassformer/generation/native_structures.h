/* What Python hands over (native_stack.py has the same fields), and what one thread makes of it. */

#include "../functional/quantized/kernel.c"
#include "native_arithmetic.c"
#include "native_barrier.c"
#include "native_choice.c"

typedef struct {
  const float *weight;    /* one of these two */
  const int8_t *integers;
  const float *scale, *bias;
  const void *panels;     /* the matrix again, see native_panels.c, or 0 */
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
  norm_t embedding_norm, final_norm; /* weight 0: none */
  linear_t embedding;                /* n_out 0: none */
  float embedding_scale;
  const layer_t *layers;
} stack_t;

typedef struct {
  long n_sequences, n_tokens, length; /* B, T, what was read before */
  long n_logits;                      /* tokens at the end of a sequence that have logits */
  long alike;                         /* whether a row's bits may not depend on the other rows */
  const linear_t *head;               /* (V, C), from hidden states to logits; or 0 */
  const int64_t *outputs;             /* (V,) the token of each row of the head; or 0: its number */
  const int64_t *tokens;              /* (B, T): they are embedded as x; or 0 */
  float *x;                           /* (B T, C), in and out */
  float *logits;                      /* (B, n_logits, V) */
  float *memory;                      /* (layers, B, capacity, 2, K, D) */
  long capacity, memory_stride;       /* floats from one layer's memory to the next's; 0: shared */
  const int64_t *missing;             /* (B,) padding on the left, or 0 */
  const int64_t *lengths;             /* (B,) tokens of a sequence that is not causal, or 0 */
  const float *added;                 /* (places, C) to add to embeddings, or 0 */
  const float *cos, *sin;             /* (places, D) or 0 */
  const int32_t *origins;             /* (B, capacity): in which copy's memory a slot is, or 0 */
  const float *const *contexts;       /* of each layer (B / copies, S, 2, K, D), or 0 */
  const int64_t *context_lengths;     /* (B / copies,) or 0 */
  long context_len, copies;
  float *scratch;                     /* see `scratch_floats` */
  parallel_t parallel;
  count_t thread, n_threads;
  barrier_t *barrier;
  unsigned most_threads;
} call_t;

typedef struct {
  const stack_t *stack;
  const call_t *call;
  const linear_t *linear; /* of one product: */
  const float *input;
  float *output;
  const choice_t *choice; /* of a ranking: */
  long n_best;
  double *logs;
  int64_t *best;
} work_t;

/* What one thread sees of a call. */
typedef struct {
  const stack_t *stack;
  const call_t *call;
  long thread, n_threads, n_rows;
  float *normed, *projected, *attended, *hidden, *scores;
  rounding_t *rounding; /* of each row, with */
  int8_t *rounded;      /* its integers */
  float *panels;        /* groups of rows, column by column */
} share_t;
