// The main launch of the statistics kernel in CUDA, for Hopper: heads of 64 in bfloat16, causal, no map.
//
// Four warps hold 128 keys and visit 64 queries at a time, as in functional/statistics/kernels.py: each
// cell takes a multiply-add, an exponential, a multiply-add for the entropy, an addition for what its
// key receives and half a maximum of three. What differs: a warp reads its own 16 rows of queries,
// so that warps meet in no barrier, and the products of 64 keys run while the other 64 are summed.
// statistics_cuda.py compiles, checks and times it.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define INLINE __device__ __forceinline__
constexpr int KEYS = 128, ROWS = 64, WIDTH = 128;    // WIDTH: bytes of a head
constexpr int STAGE = 16 * WIDTH, STAGES = 3;        // of one warp: 16 rows of queries
constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;

INLINE float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

INLINE float read(const float* p) {
    float v;
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
}

// Rows of 128 bytes whose 16-byte chunks are swizzled, eight rows after each other.
INLINE u64 describe(u32 address) {
    return (u64)((address & 0x3FFFF) >> 4) | (1ull << 16) | (64ull << 32) | (1ull << 62);
}

#define EIGHT(a, o) "+f"(a[o]), "+f"(a[o + 1]), "+f"(a[o + 2]), "+f"(a[o + 3]), \
                    "+f"(a[o + 4]), "+f"(a[o + 5]), "+f"(a[o + 6]), "+f"(a[o + 7])

template <int ADDS>
INLINE void multiply(float (&s)[32], const u32 (&a)[4], u64 b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31},"
        "{%32,%33,%34,%35}, %36, %37, 1, 1, 0;"
        : EIGHT(s, 0), EIGHT(s, 8), EIGHT(s, 16), EIGHT(s, 24)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ADDS));
}

// Begin the product of 64 queries and 64 keys.
INLINE void begin_product(float (&s)[32], const u32 (&q)[4][4], u64 k) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply<0>(s, q[0], k);
    multiply<1>(s, q[1], k + 2);
    multiply<1>(s, q[2], k + 4);
    multiply<1>(s, q[3], k + 6);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

INLINE void end_product(float (&s)[32]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    #pragma unroll
    for (int i = 0; i < 32; i++) asm volatile("" : "+f"(s[i]) :: "memory");
}

INLINE void read_fragment(u32 (&r)[4], u32 at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
}

INLINE void copy(u32 into, const char* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(into), "l"(from));
}

// The negative of a row's lse in units of log 2; 0 where nothing is allowed.
INLINE float shift_of(float lse) { return lse == -__int_as_float(0x7f800000) ? 0.f : lse * -LOG2E; }

struct Sums { float entropy[2]; int peak[2]; };   // of rows r and r + 8

// A thread has two neighbouring columns of each eight, in both rows.
template <int FIRST>
INLINE void sum_half(const float (&s)[32], const float (&shift)[2], float scale, float (&received)[32], Sums& sums) {
    #pragma unroll
    for (int j = 0; j < 8; j++) {
        #pragma unroll
        for (int row = 0; row < 2; row++) {
            float x = fmaf(s[4 * j + 2 * row], scale, shift[row]), y = fmaf(s[4 * j + 2 * row + 1], scale, shift[row]);
            float v = exp2_fast(x), w = exp2_fast(y);
            sums.entropy[row] = fmaf(w, y, fmaf(v, x, sums.entropy[row]));
            sums.peak[row] = max(sums.peak[row], max(__float_as_int(v), __float_as_int(w)));
            received[FIRST + 2 * j] += v;
            received[FIRST + 2 * j + 1] += w;
        }
    }
}

// Four lanes have a row. Two of them end with its entropy and two with its peak, for one of two rows.
INLINE void add_rows(const Sums& sums, char* target, int is_peak, int is_second) {
    int kept[2];
    #pragma unroll
    for (int row = 0; row < 2; row++) {
        int own = __float_as_int(sums.entropy[row]), peak = sums.peak[row];
        int other = __shfl_xor_sync(~0u, is_peak ? own : peak, 1);
        kept[row] = is_peak ? max(peak, other) : __float_as_int(__int_as_float(own) + __int_as_float(other));
    }
    int own = is_second ? kept[1] : kept[0];
    int other = __shfl_xor_sync(~0u, is_second ? kept[0] : kept[1], 2);
    float entropy = (__int_as_float(own) + __int_as_float(other)) * -LN2;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %0, 0; @p red.relaxed.gpu.global.max.s32 [%1], %2;"
                 " @!p red.relaxed.gpu.global.add.f32 [%1], %3; }"
                 :: "r"(is_peak), "l"(target), "r"(max(own, other)), "f"(entropy) : "memory");
}

// Strides are in bytes.
extern "C" __global__ void __launch_bounds__(128, 3) statistics(
    const char* q, const char* k, const float* lse, float* entropy, int* peak, float* received,
    int q_batch, int q_head, int q_row, int k_batch, int k_head, int k_row,
    int H, int group, int L, int S, double wide_scale)
{
    extern __shared__ char raw[];
    char* tile = (char*)(((u64)raw + 1023) & ~1023ull);
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    int head = blockIdx.x, k0 = blockIdx.y * KEYS, high = S - L;
    float scale = (float)wide_scale;
    q += (i64)(head / H) * q_batch + (i64)(head % H) * q_head;
    k += (i64)(head / H) * k_batch + (i64)(head % H / group) * k_head;

    // Tiles all of whose cells are allowed; the others are checked cell by cell elsewhere.
    int begin = (max(k0 + KEYS - 1 - high, 0) + ROWS - 1) / ROWS, end = L / ROWS;
    if (k0 + KEYS > S || begin >= end) return;
    for (int i = t; i < KEYS * 8; i += 128) {
        int row = i >> 3, chunk = i & 7;
        *(uint4*)(tile + row * WIDTH + ((chunk ^ (row & 7)) << 4)) = *(const uint4*)(k + (i64)(k0 + row) * k_row + chunk * 16);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    u32 shared = (u32)__cvta_generic_to_shared(tile);
    u64 keys = describe(shared);

    // Lane 8 c + j copies chunk j of the rows c, c + 4, c + 8 and c + 12 of its warp.
    u32 mine = shared + KEYS * WIDTH + warp * STAGES * STAGE, at[4];
    int c = lane >> 3, chunk = lane & 7;
    const char* from = q + (i64)(begin * ROWS + warp * 16 + c) * q_row + chunk * 16;
    u32 even = mine + c * WIDTH + ((chunk ^ c) << 4), odd = mine + (c + 4) * WIDTH + ((chunk ^ (c + 4)) << 4);
    i64 hop = 4 * (i64)q_row;
    #pragma unroll
    for (int i = 0; i < 4; i++) at[i] = (mine + (lane & 15) * WIDTH + (((lane >> 4) ^ (lane & 7)) << 4)) ^ (i << 5);
    int left = end - begin, tiles = left;

    int is_peak = lane & 1, is_second = lane & 2;
    int place = head * L + begin * ROWS + warp * 16 + lane / 4;
    const float* known = lse + place;
    char* target = (char*)((is_peak ? (float*)peak : entropy) + place + is_second * 4);

    #define COPY_TILE(stage) { \
        if (left-- > 0) { \
            copy(even + (stage) * STAGE, from); \
            copy(odd + (stage) * STAGE, from + hop); \
            copy(even + (stage) * STAGE + STAGE / 2, from + 2 * hop); \
            copy(odd + (stage) * STAGE + STAGE / 2, from + 3 * hop); \
        } \
        from += 16 * hop; \
        asm volatile("cp.async.commit_group;" ::: "memory"); }
    #define READ_TILE(stage) { \
        asm volatile("cp.async.wait_group 2;" ::: "memory"); \
        __syncwarp(); \
        read_fragment(a[0], at[0] + (stage) * STAGE); read_fragment(a[1], at[1] + (stage) * STAGE); \
        read_fragment(a[2], at[2] + (stage) * STAGE); read_fragment(a[3], at[3] + (stage) * STAGE); \
        __syncwarp(); }
    #define SUM_TILE(stage) { \
        Sums sums = {}; \
        float shift[2] = {shift_of(next[0]), shift_of(next[1])}; \
        begin_product(s1, a, keys + 64 * WIDTH / 16); \
        COPY_TILE(stage) \
        if (tiles > 1) known += ROWS; \
        next[0] = read(known); next[1] = read(known + 8); \
        sum_half<0>(s0, shift, scale, gained, sums); \
        end_product(s1); \
        READ_TILE(((stage) + 1) % STAGES) \
        begin_product(s0, a, keys); \
        sum_half<16>(s1, shift, scale, gained, sums); \
        add_rows(sums, target, is_peak, is_second); \
        target += ROWS * 4; \
        end_product(s0); \
        if (--tiles == 0) break; }

    float s0[32], s1[32], gained[32] = {};
    u32 a[4][4];
    COPY_TILE(0) COPY_TILE(1) COPY_TILE(2)
    float next[2] = {read(known), read(known + 8)};
    READ_TILE(0)
    begin_product(s0, a, keys);
    end_product(s0);
    while (true) { SUM_TILE(0) SUM_TILE(1) SUM_TILE(2) }

    // What keys received: over the eight lanes that have the same keys, and over warps in memory.
    #pragma unroll
    for (int i = 0; i < 32; i++) {
        float sum = gained[i];
        sum += __shfl_xor_sync(~0u, sum, 4);
        sum += __shfl_xor_sync(~0u, sum, 8);
        sum += __shfl_xor_sync(~0u, sum, 16);
        if (lane < 4) atomicAdd(received + (i64)head * S + k0 + (i >> 1) * 8 + lane * 2 + (i & 1), sum);
    }
}
