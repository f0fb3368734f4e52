// Which columns a bulk copy loads, and how threads wait for it.

// A warp's part of a slice, and its copies. The last copy of the last
// part also loads the remaining columns.
constexpr unsigned PART = (GROUPS + SPLIT - 1) / SPLIT;
constexpr unsigned COPIES =
    PART > DEPTH ? (PART + DEPTH - 1) / DEPTH : 1;
constexpr unsigned GROUP_BYTES = LANES * sizeof(VECTOR);
constexpr unsigned LEFT_BYTES = LANES * LEFT * sizeof(REAL);
constexpr unsigned STAGE_BYTES = DEPTH * GROUP_BYTES + LEFT_BYTES;
constexpr unsigned X_BYTES = FACES * STRIDE * sizeof(REAL);

// Barriers that count bytes (PTX ISA, "mbarrier"), given by their
// addresses in shared memory.
__device__ void initialize(unsigned barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;" ::"r"(barrier)
                 : "memory");
}

__device__ void expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 "
                 "_, [%0], %1;"
                 ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ void wait(unsigned barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 "
                 "done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier), "r"(parity)
                 : "memory");
}

__device__ void copy(unsigned to, const void* from, unsigned bytes,
                     unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global"
                 ".mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

// The groups of columns that copy c of a part loads.
__device__ uint2 brought(unsigned part, unsigned c)
{
    const unsigned begin = min(part * PART + c * DEPTH, GROUPS);
    const unsigned end = min((part + 1) * PART, GROUPS);
    return {begin, max(begin, min(begin + DEPTH, end))};
}
