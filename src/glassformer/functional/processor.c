/* Whether this processor has the instructions that the compiler was free to use: a library may have
   been built on another one that shares the folder. Part of every library. */

int fits_processor(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
#define REQUIRE(NAME) \
  if (!__builtin_cpu_supports(NAME)) return 0;
#ifdef __AVX2__
  REQUIRE("avx2")
#endif
#ifdef __FMA__
  REQUIRE("fma")
#endif
#ifdef __FMA4__
  REQUIRE("fma4")
#endif
#ifdef __BMI2__
  REQUIRE("bmi2")
#endif
#ifdef __AVX512F__
  REQUIRE("avx512f")
#endif
#ifdef __AVX512BW__
  REQUIRE("avx512bw")
#endif
#ifdef __AVX512DQ__
  REQUIRE("avx512dq")
#endif
#ifdef __AVX512VL__
  REQUIRE("avx512vl")
#endif
#ifdef __AVX512VBMI__
  REQUIRE("avx512vbmi")
#endif
#ifdef __AVX512VNNI__
  REQUIRE("avx512vnni")
#endif
#endif
  return 1;
}
