/* Statistics of attention in one parallel region: no thread waits for another before the end.

   A task is a head, or every n-th block of its rows. For a block of ROWS queries the scores of all
   keys that it may see are computed into a buffer, then each row is read once more for the sums
   and the exponentials, which take the place of the scores. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../vectors.h"

#define ROWS 16            /* queries of a block: a strip of keys is read once for all of them */
#define HIGH 4             /* rows of one product in registers, */
#define STRIP (4 * LANES)  /* and its columns: 16 sums */

typedef struct {
  const float *q, *k, *positions, *known; /* known: lse, or NULL */
  const int32_t *limits;                  /* six for each sequence: see masks/limits.py */
  float *lse, *entropy, *peak, *distance; /* BH × L; distance may be NULL */
  float *received;                        /* parts × BH × S */
  float *mass, *maximum;                  /* parts × BH × M × N, or NULL */
  const int32_t *row_cells, *col_edges;   /* the cell of each row; where columns of cells begin */
  const int32_t *bands;                   /* n_bands × B × 6, as limits */
  float *within;                          /* n_bands × BH × L: the share of each row in a band */
  float *observed;                        /* parts × BH × S: received from the last rows; or NULL */
  float scale;
  int32_t B, H, K, L, S, D, M, N, each_limit, n_parts, first_row, stop_row;
  int32_t n_bands, first_observed;
  int32_t next, failed; /* written by all threads */
} job_t;

/* Keys as strips of kᵀ: D × STRIP numbers side by side, filled up with zeros. */
static void pack_keys(const float *k, float *packed, long S, long D) {
  for (long start = 0; start < S; start += STRIP, packed += D * STRIP)
    for (long j = 0; j < STRIP; j++)
      for (long d = 0; d < D; d++)
        packed[d * STRIP + j] = start + j < S ? k[(start + j) * D + d] : 0.0f;
}

/* HIGH rows of q (D × HIGH, side by side) times one strip. */
static void multiply(const float *restrict q, const float *restrict strip, float *restrict out,
                     long width, long D) {
  vec sums[HIGH][4] = {{{0}}};
  for (long d = 0; d < D; d++, q += HIGH, strip += STRIP) {
    vec k[4];
    for (int j = 0; j < 4; j++) k[j] = *(const vec *)(strip + j * LANES);
    for (int i = 0; i < HIGH; i++)
      for (int j = 0; j < 4; j++) sums[i][j] += k[j] * q[i];
  }
  for (int i = 0; i < HIGH; i++)
    for (int j = 0; j < 4; j++) *(vec *)(out + i * width + j * LANES) = sums[i][j];
}

typedef struct {
  float *packed, *scores, *queries, *sums, *most; /* of one thread */
  long width;                                     /* S, rounded up to whole strips */
} room_t;

/* Add what the rows of one row of cells gave: to their keys, and to the map. */
static void add_rows(const job_t *job, room_t *room, long start, long stop, float *received,
                     float *observed, float *mass, float *maximum) {
  for (long j = start; j < stop; j++) received[j] += room->sums[j];
  if (observed)
    for (long j = start; j < stop; j++) observed[j] += room->sums[j];
  if (mass)
    for (long n = 0; n < job->N; n++) {
      long first = job->col_edges[n] > start ? job->col_edges[n] : start;
      long last = job->col_edges[n + 1] < stop ? job->col_edges[n + 1] : stop;
      float sum = 0.0f, most = 0.0f;
      for (long j = first; j < last; j++) {
        sum += room->sums[j];
        most = room->most[j] > most ? room->most[j] : most;
      }
      mass[n] += sum;
      maximum[n] = most > maximum[n] ? most : maximum[n];
    }
  long first = start / LANES * LANES, last = (stop + LANES - 1) / LANES * LANES;
  memset(room->sums + first, 0, (last - first) * sizeof(float));
  if (mass) memset(room->most + first, 0, (last - first) * sizeof(float));
}

/* The keys low … high − 1 that a query may see. */
static void find_keys(const job_t *job, const int32_t *limits, long query, long *low, long *high) {
  *low = query + limits[0] > limits[2] ? query + limits[0] : limits[2];
  *high = query + limits[1] + 1 < limits[3] ? query + limits[1] + 1 : limits[3];
  if (*low < 0) *low = 0;
  if (*high > job->S) *high = job->S;
  if (query < limits[4] || query >= limits[5] || *low > *high) *low = *high = 0;
}

/* The share of a row's terms, low … high − 1, that lies in each band. */
static void add_bands(const job_t *job, const float *row, long at, long low, long high,
                      float factor) {
  long rows = (long)job->B * job->H * job->L, batch = at / job->L / job->H;
  for (long band = 0; band < job->n_bands; band++) {
    long first, last;
    find_keys(job, job->bands + (band * job->B + batch) * 6, at % job->L, &first, &last);
    if (first < low) first = low;
    if (last > high) last = high;
    vec sums = {0};
    float sum = 0.0f;
    for (; first + LANES <= last; first += LANES) sums += *(const vec *)(row + first);
    for (; first < last; first++) sum += row[first];
    job->within[band * rows + at] = (sum + add_lanes(sums)) * factor;
  }
}

/* One row of scores, start … stop: its statistics, and its weights added to sums and most. */
static void measure_row(const job_t *job, room_t *room, float *row, long at, float position,
                        long low, long high) {
  long start = low / LANES * LANES, stop = (high + LANES - 1) / LANES * LANES;
  for (long j = start; j < low; j++) row[j] = -INFINITY;
  for (long j = high; j < stop; j++) row[j] = -INFINITY;
  float shift = -INFINITY;
  if (job->known) {
    shift = job->known[at];
  } else {
    vec most = spread(-INFINITY);
    for (long j = start; j < stop; j += LANES) most = maximum_of(*(vec *)(row + j), most);
    for (int i = 0; i < LANES; i++) shift = most[i] > shift ? most[i] : shift;
    if (shift == -INFINITY) /* a row of NaN has no maximum, and must not pass for an empty one */
      for (long j = low; j < high; j++) shift = isnan(row[j]) ? NAN : shift;
  }
  if (shift == -INFINITY) return; /* nothing is allowed: zeros, and an lse of −∞ */
  vec total = {0}, spent = {0}, far = {0}, largest = {0}, index = {0};
  for (int i = 0; i < LANES; i++) index[i] = (float)i;
  for (long j = start; j < stop; j += LANES) {
    vec x = *(vec *)(row + j) - spread(shift);
    x = choose(x < spread(-1000.0f), spread(-1000.0f), x); /* 0 · −∞ would be NaN; a NaN stays */
    vec term = exponential(x);
    total += term;
    spent += term * x;
    if (job->known) largest = maximum_of(term, largest);
    if (job->distance) {
      vec away = index + spread((float)j - position);
      far += term * choose(away < spread(0.0f), -away, away);
    }
    *(vec *)(row + j) = term;
  }
  float sum = add_lanes(total), factor = 1.0f;
  job->entropy[at] = -add_lanes(spent);
  if (job->known) {
    job->lse[at] = shift;
    for (int i = 0; i < LANES; i++)
      job->peak[at] = largest[i] > job->peak[at] ? largest[i] : job->peak[at];
  } else { /* −Σ w log w = log total − Σ term · log term / total, and both are ≥ 0 */
    factor = 1.0f / sum;
    job->lse[at] = shift + logf(sum);
    job->entropy[at] = logf(sum) + job->entropy[at] * factor;
    job->peak[at] = factor;
  }
  if (job->distance) job->distance[at] = add_lanes(far) * factor;
  add_bands(job, row, at, low, high, factor);
  for (long j = start; j < stop; j += LANES) {
    vec weight = *(vec *)(row + j) * spread(factor);
    *(vec *)(room->sums + j) += weight;
    if (job->mass) {
      vec *most = (vec *)(room->most + j);
      *most = maximum_of(weight, *most);
    }
  }
}

static void measure_block(const job_t *job, room_t *room, long task, long first, long stop) {
  long head = task % ((long)job->B * job->H), D = job->D, width = room->width;
  const int32_t *limits = job->limits + (job->each_limit ? head / job->H * 6 : 0);
  const float *q = job->q + (head * job->L + first) * D;
  long low[ROWS], high[ROWS], start = job->S, end = 0, n = stop - first;
  for (long i = 0; i < n; i++) {
    find_keys(job, limits, first + i, low + i, high + i);
    if (low[i] < high[i] && low[i] < start) start = low[i];
    if (high[i] > end) end = high[i];
  }
  if (start >= end) return;
  memset(room->queries, 0, ROWS * D * sizeof(float));
  for (long i = 0; i < n; i++)
    for (long d = 0; d < D; d++)
      room->queries[i / HIGH * HIGH * D + d * HIGH + i % HIGH] = q[i * D + d] * job->scale;
  for (long j = start / STRIP * STRIP; j < end; j += STRIP)
    for (long i = 0; i < n; i += HIGH)
      multiply(room->queries + i * D, room->packed + j * D, room->scores + i * width + j, width, D);

  float *received = job->received + task * job->S;
  float *observed = job->observed ? job->observed + task * job->S : 0;
  for (long i = 0; i < n; i++) {
    long at = head * job->L + first + i, cell = job->mass ? job->row_cells[first + i] : 0;
    if (low[i] < high[i])
      measure_row(job, room, room->scores + i * width, at, job->positions[first + i], low[i],
                  high[i]);
    if (i + 1 == n || first + i + 1 == job->first_observed ||
        (job->mass && job->row_cells[first + i + 1] != cell)) {
      long place = (task * job->M + cell) * job->N;
      add_rows(job, room, start, end, received, first + i >= job->first_observed ? observed : 0,
               job->mass ? job->mass + place : 0, job->mass ? job->maximum + place : 0);
    }
  }
}

static void measure_share(void *data) {
  job_t *job = data;
  long heads = (long)job->B * job->H, group = job->H / job->K, D = job->D;
  room_t room = {0};
  room.width = (job->S + STRIP - 1) / STRIP * STRIP;
  long size = room.width * (D + ROWS + 2) + ROWS * D;
  room.packed = calloc(size, sizeof(float));
  if (!room.packed) {
    __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
    return;
  }
  room.scores = room.packed + room.width * D;
  room.sums = room.scores + room.width * ROWS;
  room.most = room.sums + room.width;
  room.queries = room.most + room.width;
  const float *packed = 0;
  long task;
  while ((task = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < heads * job->n_parts) {
    long head = task % heads, part = task / heads;
    const float *k = job->k + (head / job->H * job->K + head % job->H / group) * job->S * D;
    if (packed != k) pack_keys(packed = k, room.packed, job->S, D);
    for (long first = job->first_row + part * ROWS; first < job->stop_row;
         first += (long)job->n_parts * ROWS)
      measure_block(job, &room, task, first,
                    first + ROWS < job->stop_row ? first + ROWS : job->stop_row);
  }
  free(room.packed);
}

/* 0, or 1 if there is no memory. Without `parallel` there is one thread. */
int attention_statistics(job_t *job, parallel_t parallel, unsigned most_threads) {
  if (parallel && most_threads > 1)
    parallel(measure_share, job, most_threads, 0);
  else
    measure_share(job);
  return job->failed;
}
