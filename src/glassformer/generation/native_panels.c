/* Products of many rows with a matrix that lies in panels of PANEL outputs:

     float32  w (out / PANEL, in, PANEL)           x (in, rows)
     int8     w (out / PANEL, in / 4, PANEL, 4)    x (in / 4, rows, 4)    on x86 alone

   Rows of x are taken in groups of up to GROUP, laid out column by column likewise. An operand is
   loaded once for all its products, and no sum has to be gathered from lanes. */

/* Bytes of one panel. */
#define panel_size(F) (PANEL * (F)->n_in * (long)((F)->weight ? sizeof(float) : 1))

#ifdef BYTES
#include "panels_x86.h"
#else
#include "panels_plain.h"
#endif

/* Whether there are kernels for this processor, or only C that works on any. */
int is_tuned(void) {
#if defined(BYTES) || defined(__ARM_NEON)
  return 1;
#else
  return 0;
#endif
}

/* Fewer rows are multiplied with the matrix as it is. */
long least_rows(void) { return LEAST_ROWS; }

static long count_panels(const linear_t *f) { return (f->n_out + PANEL - 1) / PANEL; }

/* How many bytes a matrix takes in panels; 0 if it cannot lie so. */
long panel_bytes(const linear_t *f) {
  long size = count_panels(f) * PANEL * f->n_in;
  if (f->weight) return size * (long)sizeof(float);
  return INT8_PANELS && f->n_in % 4 == 0 ? size : 0;
}

/* Fill the panels of a matrix; the last is filled up with zeros. */
void lay_out(const linear_t *f, void *panels) {
  float *floats = panels;
  uint8_t *bytes = panels;
  for (long p = 0; p < count_panels(f); p++)
    for (long k = 0; k < f->n_in; k++)
      for (long j = 0; j < PANEL; j++) {
        long n = p * PANEL + j, from = n * f->n_in + k;
        if (f->weight)
          floats[(p * f->n_in + k) * PANEL + j] = n < f->n_out ? f->weight[from] : 0.0f;
        else
          bytes[(p * f->n_in + k / 4 * 4) * PANEL + 4 * j + k % 4] =
              n < f->n_out ? (uint8_t)(f->integers[from] + OFFSET) : 0;
      }
}

/* Rows m to m + rows of x, column by column. */
static void lay_out_rows(const share_t *t, const linear_t *f, const float *x, long m, long rows) {
  long n = f->weight ? f->n_in : f->n_in / 4; /* four integers lie together */
  float *to = t->panels + m * n;
  if (!f->weight) x = (const float *)t->rounded;
  for (long i = 0; i < rows; i++)
    for (long k = 0; k < n; k++) memcpy(to + k * rows + i, x + (m + i) * n + k, sizeof(float));
}

static void write_sums(const linear_t *f, const float *restrict sums, long n, float *restrict y,
                       int added) {
  long width = f->n_out - n < PANEL ? f->n_out - n : PANEL;
  for (long j = 0; j < width; j++) {
    float sum = sums[j] + (f->bias ? f->bias[n + j] : 0.0f);
    y[n + j] = added ? y[n + j] + sum : sum;
  }
}

/* As many rows as there are panels for; says how many that were. */
static long multiply_panels(const share_t *t, const linear_t *f, const float *x, float *y,
                            long n_rows, int added) {
  long in_panels = LEAST_ROWS < GROUP ? n_rows : n_rows / GROUP * GROUP;
  long n_groups = (in_panels + GROUP - 1) / GROUP, n = f->weight ? f->n_in : f->n_in / 4;
  if (!f->panels || in_panels < LEAST_ROWS) return 0;
#define FIRST(G) (in_panels * (G) / n_groups) /* groups are as equal as they can be */
  SHARE(g, n_groups) lay_out_rows(t, f, x, FIRST(g), FIRST(g + 1) - FIRST(g));
  wait_for_all(t);
  for (long tile = 0; tile < n_groups; tile += TILE / GROUP) {
    long end = tile + TILE / GROUP < n_groups ? tile + TILE / GROUP : n_groups;
    SHARE(p, count_panels(f))
      for (long g = tile; g < end; g++) {
        float sums[GROUP * PANEL];
        long m = FIRST(g), rows = FIRST(g + 1) - m;
        multiply_group(t, f, t->panels + m * n, p, m, rows, g - tile, end - tile, sums);
        for (long i = 0; i < rows; i++)
          write_sums(f, sums + PANEL * i, p * PANEL, y + (m + i) * f->n_out, added);
      }
  }
#undef FIRST
  return in_panels;
}
