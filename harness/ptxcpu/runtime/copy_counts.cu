// The cost of asynchronous copies, as `ncu` counts LDGSTS on an H100. The rules fit every pattern
// of addresses that was measured there (tests/ptxcpu/async_copies.json).

// Banks are as wide as the copy of a lane.
__device__ int wide_bank(Address address, int bytes) { return (int)(address / bytes % (128 / bytes)); }

// A copy through the L1 cache takes phases of 128 bytes. A lane of a phase waits for all lanes with
// which it shares the bank that it reads or the bank that it writes.
__device__ int cached_wavefronts(const Address* from, unsigned reads, const Address* to, unsigned here, int bytes) {
    int lanes = 128 / bytes, total = 0;
    for (int first = 0; first < LANES; first += lanes) {
        int most = 0;
        for (int i = first; i < first + lanes; ++i) {
            int waits = 0;
            for (int j = first; (here >> i & 1) && j < first + lanes; ++j) {
                bool both_read = reads >> i & reads >> j & 1;
                bool meet = (both_read && wide_bank(from[i], bytes) == wide_bank(from[j], bytes)) ||
                            wide_bank(to[i], bytes) == wide_bank(to[j], bytes);
                waits += (here >> j & 1) && meet;
            }
            most = most < waits ? waits : most;
        }
        total += most;
    }
    return total;
}

// A copy that bypasses the L1 cache moves sectors. `opens` gets the first lane of each pair of
// sectors; `halves` gets, for these lanes, which halves go to which. Returns the number of pairs.
__device__ int sector_pairs(const Address* from, const Address* to, unsigned here, unsigned* opens, int* halves) {
    *opens = 0;
    for (int i = 0; i < LANES; ++i) {
        if (!(here >> i & 1)) continue;
        int first = 0;
        while (first < i && !(*opens >> first & 1 && from[i] >> 5 == from[first] >> 5 && to[i] >> 5 == to[first] >> 5)) ++first;
        if (first == i) *opens |= 1u << i, halves[i] = 0;
        halves[first] |= 1 << (from[i] >> 4 & 1) * 2 + (to[i] >> 4 & 1);
    }
    return __popc(*opens);
}

// Sectors move at once from one line of 128 bytes to one line, where the same halves go to the same
// halves, by an even or by an odd number of sectors.
__device__ int bypassing_wavefronts(const Address* from, const Address* to, unsigned opens, const int* halves) {
    int total = 0;
    for (int i = 0; i < LANES; ++i) {
        bool alone = opens >> i & 1;
        for (int j = 0; j < i; ++j) {
            bool same_lines = from[i] >> 7 == from[j] >> 7 && to[i] >> 7 == to[j] >> 7;
            bool odd = ((from[i] ^ to[i] ^ from[j] ^ to[j]) >> 5 & 1) != 0;
            if (opens >> j & 1 && same_lines && !odd && halves[i] == halves[j]) alone = false;
        }
        total += alone;
    }
    return total;
}

// The write is counted as a store until the addresses of the read are known.
__device__ void count_target(Context* c, long long pc, const Address* address, unsigned here, int bytes) {
    Count* row = c->counts->rows + pc;
    for (int lane = 0; lane < LANES; ++lane) c->counts->to[lane] = address[lane];
    c->counts->to_lanes = here;
    c->counts->to_wavefronts = -row->wavefronts;
    count_access(c, pc, address, here, bytes);
    c->counts->to_wavefronts += row->wavefronts;
}

__device__ void count_source(Context* c, long long pc, const Address* from, unsigned here, int bytes, bool bypass) {
    Count* row = c->counts->rows + pc;
    const Address* to = c->counts->to;
    unsigned all = (unsigned)c->counts->to_lanes, opens;
    int halves[LANES], pairs = sector_pairs(from, to, here, &opens, halves);
    count_global(c, row, from, here, bytes, bypass ? pairs : pieces(from, here, bytes, 5));
    if (bypass && here != all) return;  // if some lanes only fill with zeros, it counts as a store
    row->wavefronts -= c->counts->to_wavefronts;
    row->wavefronts += bypass ? bypassing_wavefronts(from, to, opens, halves)
                              : cached_wavefronts(from, here, to, all, bytes);
}
