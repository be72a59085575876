// Declarations of functions that the files of the runtime use before their definitions. The files
// are compiled together, in the order of execution/build.py, after the structs of layout.py. Calls
// between files are not inlined, which keeps the code small.

// Returns the cell of a byte; cells have 1, 2 or 4 bytes. (A division would take longer than the rest of a check.)
__device__ __forceinline__ long long cell_of(long long byte, long long width) { return byte >> (width >> 1); }

// The same event of a lane further on.
__device__ __forceinline__ Event of_lane(const Event* first, int lane) {
    Event e = *first;
    e.thread += lane;
    return e;
}

// checks.cu
__device__ __noinline__ unsigned* arrival_at(Context* c, long long barrier);
__device__ __noinline__ void check_access(Context* c, long long t, long long pc, Address address, long long n,
                             int access);
__device__ __noinline__ char* access_in_order(Context* c, long long t, long long pc, Address address, long long n, bool is_write);
__device__ __noinline__ void note_bad_access(Context* c, long long t, long long pc, Address address, long long n,
                                int access);
__device__ __noinline__ void check_products(Context* c, long long w, long long waited_for);

// cluster.cu
__device__ __noinline__ void begin_cluster_checks(Context* c);
__device__ __noinline__ bool init_is_known(Context* c, long long t, Event* init);
__device__ __noinline__ void check_visit(Context* c, long long t, long long pc, Address address, long long n, int access);

// watch.cu
__device__ __noinline__ void watch_mbarrier(Context* c, long long t, Address mbarrier);
__device__ __noinline__ void watch_bulk(Context* c, long long t, Address to, long long bytes);
__device__ __noinline__ void watch_arrival(Context* c, long long t, Address to, long long bytes);

// warp.cu
__device__ __noinline__ int shuffle_source(Context* c, long long w, int lane, long long way);
__device__ __noinline__ unsigned* lane_words(Context* c, long long w, int word);

// units.cu
__device__ __noinline__ void deliver_of_unit(Context* c, long long t, long long end);

// counts.cu
extern "C" __device__ void rt_trace(Context* c, long long t, long long order, Address address, long long kind);

// copy_counts.cu
__device__ __noinline__ void count_target(Context* c, long long pc, const Address* address, unsigned here, int bytes);
__device__ __noinline__ void count_source(Context* c, long long pc, const Address* from, unsigned here, int bytes, bool bypass);
