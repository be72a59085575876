// Warp-wide operations. Each lane has published words in its lane_buffer; the results replace them.

// The 32 lanes' values of one published word.
__device__ unsigned* lane_words(Context* c, long long w, int word) {
    return c->lane_buffer + (w * LANE_BUFFER_WORDS + word) * LANES;
}

// The lane that shfl.sync reads, or -1: the lane keeps its own value. The third operand holds the last
// lane of a segment and, from bit 8 on, the bits that choose it.
__device__ int shuffle_source(Context* c, long long w, int lane, long long way) {
    unsigned amount = lane_words(c, w, 1)[lane], segment = lane_words(c, w, 2)[lane];
    int b = amount & 31, bound = segment & 31, bits = segment >> 8 & 31;
    int first = lane & bits, last = first | (bound & ~bits);
    int from;
    if (way == 0) from = lane - b;       // up
    else if (way == 1) from = lane + b;  // down
    else if (way == 2) from = lane ^ b;  // bfly
    else from = first | (b & ~bits);     // idx
    bool valid = way == 0 ? from >= last : from <= last;
    return valid ? from & 31 : -1;
}

// What a shuffle gets from a lane that does not take part, which PTX leaves undefined: a NaN, so that a
// sum that uses it is wrong.
const unsigned UNDEFINED = 0x7FC0BAAD;

__device__ void shuffle(Context* c, long long w, unsigned here, long long way) {
    unsigned* value = lane_words(c, w, 0);
    unsigned* amount = lane_words(c, w, 1);
    unsigned found[LANES], valid[LANES];
    for (int lane = 0; lane < LANES; ++lane) {
        int from = shuffle_source(c, w, lane, way);
        valid[lane] = from >= 0;
        bool takes_part = from < 0 || here >> from & 1;
        found[lane] = takes_part ? value[from < 0 ? lane : from] : UNDEFINED;
    }
    for (int lane = 0; lane < LANES; ++lane)
        if (here >> lane & 1) value[lane] = found[lane], amount[lane] = valid[lane];
}

__device__ void vote(Context* c, long long w, unsigned here, long long kind) {
    unsigned* p = lane_words(c, w, 0);
    unsigned holds = 0;
    for (int lane = 0; lane < LANES; ++lane) holds |= (p[lane] & 1) << lane;
    holds &= here;
    for (int lane = 0; lane < LANES; ++lane) {
        if (!(here >> lane & 1)) continue;
        unsigned named = c->thread[w * LANES + lane].mask & here, ballot = holds & named;
        if (kind == 0) p[lane] = ballot;
        else if (kind == 1) p[lane] = ballot == named;  // all
        else if (kind == 2) p[lane] = ballot != 0;      // any
        else p[lane] = ballot == 0 || ballot == named;  // uni
    }
}

__device__ void match(Context* c, long long w, unsigned here, long long all) {
    unsigned* low = lane_words(c, w, 0);
    unsigned* high = lane_words(c, w, 1);
    unsigned same[LANES];
    for (int lane = 0; lane < LANES; ++lane) {
        same[lane] = 0;
        for (int other = 0; other < LANES; ++other)
            if ((here >> other & 1) && low[lane] == low[other] && high[lane] == high[other])
                same[lane] |= 1u << other;
    }
    for (int lane = 0; lane < LANES; ++lane) {
        if (!(here >> lane & 1)) continue;
        unsigned named = c->thread[w * LANES + lane].mask & here;
        bool agree = (same[lane] & named) == named;
        low[lane] = all ? (agree ? named : 0) : same[lane] & named;
        high[lane] = agree;
    }
}

__device__ unsigned reduce_two(long long op, bool is_signed, unsigned a, unsigned b) {
    bool less = is_signed ? (int)a < (int)b : a < b;
    if (op == 0) return a + b;
    if (op == 1) return less ? a : b;
    if (op == 2) return less ? b : a;
    if (op == 3) return a & b;
    if (op == 4) return a | b;
    return a ^ b;
}

__device__ void reduce(Context* c, long long w, unsigned here, long long variant) {
    unsigned* value = lane_words(c, w, 0);
    unsigned found[LANES];
    for (int lane = 0; lane < LANES; ++lane) {
        unsigned named = c->thread[w * LANES + lane].mask & here;
        bool first = true;
        for (int other = 0; other < LANES; ++other) {
            if (!(named >> other & 1)) continue;
            found[lane] = first ? value[other]
                                : reduce_two(variant >> 1, variant & 1, found[lane], value[other]);
            first = false;
        }
    }
    for (int lane = 0; lane < LANES; ++lane)
        if (here >> lane & 1) value[lane] = found[lane];
}

// Executes a collective at which all the lanes `here` have arrived.
__device__ __noinline__ void execute_collective(Context* c, long long w, unsigned here) {
    int lane = __ffs(here) - 1;
    Thread* thread = c->thread + w * LANES + lane;
    long long pc = thread->pc >> 2, variant = thread->argument;
    switch (thread->collective) {
        case COLLECTIVE_SHUFFLE: shuffle(c, w, here, variant); break;
        case COLLECTIVE_VOTE: vote(c, w, here, variant); break;
        case COLLECTIVE_MATCH: match(c, w, here, variant); break;
        case COLLECTIVE_REDUCE: reduce(c, w, here, variant); break;
        case COLLECTIVE_ACTIVE:
            for (int i = 0; i < LANES; ++i)
                if (here >> i & 1) lane_words(c, w, 0)[i] = here;
            break;
        case COLLECTIVE_STORE_MATRIX: move_matrix(c, w, pc, variant, 0, 2, true); break;
        case COLLECTIVE_PRODUCTS: execute_products(c, w, (const Product*)variant); break;
        case COLLECTIVE_WMMA_LOAD: wmma_move(c, w, pc, variant, false); break;
        case COLLECTIVE_WMMA_STORE: wmma_move(c, w, pc, variant, true); break;
        case COLLECTIVE_WMMA: wmma(c, w, variant); break;
        case COLLECTIVE_MMA_DOUBLE: mma_double(c, w, variant); break;
        case COLLECTIVE_WGMMA_COMMIT: c->thread[w * LANES].products += 1; break;
    }
}
