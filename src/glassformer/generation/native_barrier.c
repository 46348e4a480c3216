/* Where the threads of a call wait for each other, some hundred times for each token.

   OpenMP's own barrier spins for milliseconds. If another program has taken a processor, the thread
   that is waited for does not run meanwhile, and decoding becomes ten times slower. Here a thread
   spins for about as long as waking it up would take, and then sleeps, so that the system can run
   the other one in its place. */

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <limits.h>
#include <sched.h>

#define SPINS 1024

typedef struct {
  int32_t n_arrived, phase, n_asleep;
  int32_t n_passed, n_slept; /* how often, since Python has looked */
} barrier_t;

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void sleep_in(barrier_t *barrier, int32_t phase) {
#ifdef __linux__
  __atomic_add_fetch(&barrier->n_asleep, 1, __ATOMIC_SEQ_CST);
  /* Returns at once if the phase is over: the kernel looks again. */
  syscall(SYS_futex, &barrier->phase, FUTEX_WAIT_PRIVATE, phase, 0, 0, 0);
  __atomic_sub_fetch(&barrier->n_asleep, 1, __ATOMIC_SEQ_CST);
#else
  (void)barrier, (void)phase;
  sched_yield();
#endif
}

static void wake_all(barrier_t *barrier) {
#ifdef __linux__
  if (__atomic_load_n(&barrier->n_asleep, __ATOMIC_SEQ_CST))
    syscall(SYS_futex, &barrier->phase, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
#else
  (void)barrier;
#endif
}

static void pass_barrier(barrier_t *barrier, int32_t n_threads) {
  int32_t phase = __atomic_load_n(&barrier->phase, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&barrier->n_arrived, 1, __ATOMIC_SEQ_CST) == n_threads) {
    barrier->n_passed++;
    __atomic_store_n(&barrier->n_arrived, 0, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&barrier->phase, 1, __ATOMIC_SEQ_CST);
    wake_all(barrier);
    return;
  }
  for (int i = 0; i < SPINS; i++, relax())
    if (__atomic_load_n(&barrier->phase, __ATOMIC_ACQUIRE) != phase) return;
  __atomic_add_fetch(&barrier->n_slept, 1, __ATOMIC_RELAXED);
  while (__atomic_load_n(&barrier->phase, __ATOMIC_ACQUIRE) == phase) sleep_in(barrier, phase);
}
