// The translation of device addresses to host addresses, and the faults of invalid ones.

// Record the first fault of the block.
extern "C" __device__ void rt_fault(Context* c, long long t, long long fault, long long pc,
                                    Address address, long long bytes, long long access) {
    if (c->fault) return;
    c->fault = fault;
    c->fault_pc = pc;
    c->fault_address = address;
    c->fault_bytes = bytes;
    c->fault_access = access;
    c->fault_thread = t;
}

__device__ __noinline__ long long window_of(Address address) {
    Address window = (address >> WINDOW_BITS) - FIRST_WINDOW;
    return window < WINDOWS ? (long long)window : WINDOW_NONE;
}

__device__ __noinline__ long long offset_in_window(Address address) {
    return (long long)(address & ((1ull << WINDOW_BITS) - 1)) - (1ll << (WINDOW_BITS - 1));
}

// Returns the block whose shared memory contains an address of the shared window; null if none does.
__device__ __noinline__ Context* block_at(Context* c, Address address) {
    long long offset = offset_in_window(address);
    bool is_one = window_of(address) == WINDOW_SHARED && offset >= 0 && offset >> BLOCK_BITS < c->cluster_blocks;
    return is_one ? c->cluster + (offset >> BLOCK_BITS) : 0;
}

__device__ __noinline__ long long offset_in_block(Address address) { return address & ((1ll << BLOCK_BITS) - 1); }

// The address at which the block's shared memory begins.
__device__ __noinline__ Address shared_begin(Context* c) {
    return ((Address)(FIRST_WINDOW + WINDOW_SHARED) << WINDOW_BITS) + (1ull << (WINDOW_BITS - 1)) + c->shared_address;
}

// The address of the same byte in another block of the cluster.
__device__ __noinline__ Address address_in(Context* block, Address address) {
    return address - offset_in_window(address) + block->shared_address + offset_in_block(address);
}

__device__ __noinline__ void copy_bytes(char* to, const char* from, long long n) {
    if ((((Address)to | (Address)from | n) & 7) == 0) {
        for (; n >= 64; n -= 64, to += 64, from += 64) {
            long long words[8];
#pragma unroll
            for (int i = 0; i < 8; ++i) words[i] = ((const long long*)from)[i];
#pragma unroll
            for (int i = 0; i < 8; ++i) ((long long*)to)[i] = words[i];
        }
        for (long long i = 0; i < n; i += 8) *(long long*)(to + i) = *(const long long*)(from + i);
        return;
    }
    for (long long i = 0; i < n; ++i) to[i] = from[i];
}

// The inputs are never written: a store goes to scratch and is compared with the input later.
__device__ __noinline__ void compare_diverted_write(Context* c) {
    for (long long i = 0; i < c->pending_bytes; ++i)
        if (c->scratch[64 + i] != c->pending_target[i]) c->changed |= 1ll << c->pending_window;
    c->pending_bytes = 0;
}

__device__ char* divert_write(Context* c, char* target, long long n, long long window) {
    compare_diverted_write(c);
    copy_bytes(c->scratch + 64, target, n);
    c->pending_target = target;
    c->pending_bytes = n;
    c->pending_window = window;
    return c->scratch + 64;
}

// The host address of n bytes, or null if the access is outside every array or misaligned, or in a
// block that has exited or that the access may not use.
__device__ char* locate(Context* c, long long t, Address address, long long n, long long align,
                        int access) {
    long long window = window_of(address), offset = offset_in_window(address);
    Span* span = c->windows + window;
    if (window == WINDOW_SHARED) {
        Context* block = block_at(c, address);
        if (!block || (block != c && ((access & ACCESS_OWN) || block->is_over))) return 0;
        span = block->windows + window;
        offset = offset_in_block(address);
    }
    if (window == WINDOW_NONE || offset < 0 || n > span->bytes || offset > span->bytes - n) return 0;
    if (offset & (align - 1)) return 0;
    char* host = span->host + offset + (window == WINDOW_LOCAL ? t * c->local_bytes : 0);
    if (!(access & ACCESS_WRITE) || span->writable) return host;
    if (n <= 64) return divert_write(c, host, n, window);
    c->changed |= 1ll << window;  // a bulk copy into an input
    return 0;
}

// Locates the bytes of an access that was checked for all lanes of a unit.
extern "C" __device__ char* rt_locate(Context* c, long long t, Address address, long long n, long long access) {
    return locate(c, t, address, n, n, (int)access);
}

// Adds to a float atomically, and returns the old value. GPUs flush subnormal terms and sums to zero, but not in
// shared memory (PTX ISA, `atom`).
extern "C" __device__ unsigned rt_add_flushed(Context* c, long long t, Address address, unsigned* place, unsigned term) {
    unsigned found = *place, old;
    do {
        old = found;
        float before = __uint_as_float(old), added = __uint_as_float(term), sum = before + added;
        if (window_of(address) != WINDOW_SHARED) asm("add.ftz.f32 %0, %1, %2;" : "=f"(sum) : "f"(before), "f"(added));
        found = atomicCAS(place, old, __float_as_uint(sum));
    } while (found != old);
    return old;
}

// Checks the parts of a valid access that the kernel uses.
__device__ __noinline__ void check_used(Context* c, long long t, long long pc, Address address, long long n, int access) {
    int used = ~(access / ACCESS_UNUSED) & 15;
    long long quarter = n / 4;
    access &= ACCESS_UNUSED - 1;
    for (int i = 0, next; i < 4; i = next) {
        for (next = i + 1; next < 4 && (used >> i & 1) == (used >> next & 1);) ++next;
        if (used >> i & 1) check_access(c, t, pc, address + i * quarter, (next - i) * quarter, access);
    }
}

// A checked access. Without checks, an invalid one is a fault and gives null; with checks it is
// recorded, and the access goes to scratch.
__device__ __noinline__ char* checked_access(Context* c, long long t, long long pc, Address address, long long n,
                       long long align, int access) {
    char* host = locate(c, t, address, n, align, access);
    if (c->checks) {
        if (host) {
            if (access >= ACCESS_UNUSED) check_used(c, t, pc, address, n, access);
            else check_access(c, t, pc, address, n, access);
            return host;
        }
        note_bad_access(c, t, pc, address, n, access & (ACCESS_UNUSED - 1));
        for (int i = 0; i < 64; ++i) c->scratch[i] = 0;
        return n <= 64 ? c->scratch : 0;
    }
    if (!host) rt_fault(c, t, CAUSE_MEMORY, pc, address, n, access);
    return host;
}

// The same, with counters and checks. It never returns null, because the thread continues.
extern "C" __device__ char* rt_watched_access(Context* c, long long t, long long pc, Address address,
                                              long long n, long long access) {
    if (window_of(address) != WINDOW_LOCAL) rt_trace(c, t, pc << 2 | 1, address, n << 8 | EVENT_ACCESS);
    if (c->checks && (access | ACCESS_WRITE) == (ACCESS_OWN | ACCESS_WRITE))
        if (char* host = access_in_order(c, t, pc, address, n, access & ACCESS_WRITE)) return host;
    char* host = checked_access(c, t, pc, address, n, n, (int)access);
    return host ? host : c->scratch;
}

// Checks a load, when it is known that its value is used. rt_watched_access has checked the address.
extern "C" __device__ void rt_watched_use(Context* c, long long t, long long pc, Address address,
                                          long long n, long long access) {
    if (c->checks && locate(c, t, address, n, 1, (int)access)) check_access(c, t, pc, address, n, (int)access);
}

extern "C" __device__ char* rt_checked_access(Context* c, long long t, long long pc, Address address,
                                     long long n, long long access) {
    return checked_access(c, t, pc, address, n, n, (int)access);
}
