/* A driver without a device: memory is the host's, streams run when told to. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_READY = 600 };
enum { BLOCKS = 64, DEPTH = 16, DEVICES = 2 };

typedef struct { int used, device, kind, managed, shareable; char *base; size_t len; } block_t;
typedef struct { int recorded; uintptr_t stream; unsigned turn; } event_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block_t blocks[BLOCKS];
static char failing[64];
static int failing_code, count = DEVICES, ordering = 100;
static int retained[DEVICES], pushes, pops, events, copies_not_waited_for, flushes, synchronized;
static unsigned held_from, turn;
static uintptr_t held_stream;
static __thread int stack[DEPTH];
static __thread int depth;

/* Control. */
void fake_fail(const char *call, int code) { strncpy(failing, call, sizeof failing - 1); failing_code = code; }
void fake_devices(int n) { count = n; }
void fake_ordering(int n) { ordering = n; }
/* From now on nothing that this stream is given runs. */
void fake_hold(uintptr_t stream) { held_stream = stream; held_from = turn + 1; }
void fake_run(void) { held_from = 0; }
int fake_current(void) { return depth ? stack[depth - 1] : -1; }
int fake_count(const char *what) {
    int all = 0, i;
    if (!strcmp(what, "blocks")) { for (i = 0; i < BLOCKS; i++) all += blocks[i].used; return all; }
    if (!strcmp(what, "contexts")) { for (i = 0; i < DEVICES; i++) all += retained[i]; return all; }
    if (!strcmp(what, "entered")) return pushes - pops;
    if (!strcmp(what, "events")) return events;
    if (!strcmp(what, "unwaited")) return copies_not_waited_for;
    if (!strcmp(what, "flushes")) return flushes;
    if (!strcmp(what, "synchronized")) return synchronized;
    return -1;
}
/* A block that our caller did not allocate. */
uint64_t fake_block(size_t len, int device, int kind, int managed, int shareable) {
    for (int i = 0; i < BLOCKS; i++)
        if (!blocks[i].used) {
            blocks[i] = (block_t){1, device, kind, managed, shareable, calloc(1, len), len};
            return (uint64_t)(uintptr_t)blocks[i].base;
        }
    return 0;
}

static int fails(const char *call) { return strcmp(failing, call) ? OK : failing_code; }
#define ENTER() int failed = fails(__func__); if (failed) return failed
#define CURRENT() ENTER(); if (!depth) return INVALID_CONTEXT

static block_t *find(uint64_t at) {
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].used && (uint64_t)(uintptr_t)blocks[i].base <= at && at < (uint64_t)(uintptr_t)blocks[i].base + blocks[i].len)
            return &blocks[i];
    return 0;
}
static int inside(uint64_t at, size_t len) {
    block_t *b = find(at);
    return b && b->device == stack[depth - 1] && at + len <= (uint64_t)(uintptr_t)b->base + b->len;
}

int cuGetErrorName(int code, const char **name) {
    *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 34 ? "CUDA_ERROR_STUB_LIBRARY" : 0;
    return *name ? OK : INVALID_VALUE;
}
int cuInit(unsigned flags) { ENTER(); return flags ? INVALID_VALUE : OK; }
int cuDriverGetVersion(int *version) { ENTER(); *version = 13020; return OK; }
int cuDeviceGetCount(int *n) { ENTER(); *n = count; return OK; }
int cuDeviceGet(int *device, int ordinal) { ENTER(); *device = ordinal + 40; return ordinal < count ? OK : 101; }
int cuDeviceGetName(char *name, int len, int device) {
    ENTER();
    strncpy(name, device == 40 ? "Fake 0" : "Fake 1", len);
    return OK;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    ENTER();
    (void)device;
    *value = attribute == 118 ? ordering : attribute == 117 ? 1 : 0;
    return OK;
}
int cuDevicePrimaryCtxRetain(uintptr_t *context, int device) {
    ENTER();
    pthread_mutex_lock(&lock); retained[device - 40]++; pthread_mutex_unlock(&lock);
    *context = device;
    return OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    ENTER();
    pthread_mutex_lock(&lock); retained[device - 40]--; pthread_mutex_unlock(&lock);
    return OK;
}
int cuCtxSetCurrent(uintptr_t context) {
    ENTER();
    if (!depth) depth = 1;
    stack[depth - 1] = (int)context - 40;
    return OK;
}
int cuCtxPushCurrent_v2(uintptr_t context) {
    ENTER();
    if (retained[context - 40] <= 0) return INVALID_CONTEXT;
    stack[depth++] = (int)context - 40;
    pthread_mutex_lock(&lock); pushes++; pthread_mutex_unlock(&lock);
    return OK;
}
int cuCtxPopCurrent_v2(uintptr_t *context) {
    ENTER();
    *context = stack[--depth] + 40;
    pthread_mutex_lock(&lock); pops++; pthread_mutex_unlock(&lock);
    return OK;
}
int cuCtxSynchronize(void) { CURRENT(); synchronized++; copies_not_waited_for = 0; return OK; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { CURRENT(); *free = 1000; *total = 4000; return OK; }
int cuMemAlloc_v2(uint64_t *at, size_t len) {
    CURRENT();
    if (len > 1 << 24) return OUT_OF_MEMORY;
    pthread_mutex_lock(&lock); *at = fake_block(len, stack[depth - 1], 2, 0, 1); pthread_mutex_unlock(&lock);
    if (*at) memset((void *)(uintptr_t)*at, 0xEE, len);
    return *at ? OK : OUT_OF_MEMORY;
}
int cuMemFree_v2(uint64_t at) {
    CURRENT();
    block_t *b = find(at);
    if (!inside(at, 1) || (uint64_t)(uintptr_t)b->base != at) return INVALID_VALUE;
    free(b->base);
    b->used = 0;
    return OK;
}
int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t len) {
    CURRENT();
    if (!inside(at, len)) return INVALID_VALUE;
    memset((void *)(uintptr_t)at, value, len);
    copies_not_waited_for = 1;
    return OK;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t len) {
    CURRENT();
    if (!inside(to, len)) return INVALID_VALUE;
    memcpy((void *)(uintptr_t)to, from, len);
    copies_not_waited_for = 1;
    return OK;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t len) {
    CURRENT();
    if (!inside(from, len)) return INVALID_VALUE;
    memcpy(to, (void *)(uintptr_t)from, len);
    return OK;
}
int cuMemGetAddressRange_v2(uint64_t *base, size_t *len, uint64_t at) {
    CURRENT();
    block_t *b = find(at);
    if (!b) return INVALID_VALUE;
    *base = (uint64_t)(uintptr_t)b->base;
    *len = b->len;
    return OK;
}
int cuPointerGetAttributes(unsigned n, int *attributes, void **values, uint64_t at) {
    ENTER();
    block_t *b = find(at);
    for (unsigned i = 0; i < n; i++) {
        int value = attributes[i] == 2 ? (b ? b->kind : 0)
                  : attributes[i] == 8 ? (b ? b->managed : 0)
                  : attributes[i] == 9 ? (b ? b->device : -2)
                  : attributes[i] == 10 ? (b ? b->shareable : 0) : -1;
        if (attributes[i] == 8 || attributes[i] == 10) *(char *)values[i] = (char)value;
        else *(int *)values[i] = value;
    }
    return OK;
}
int cuStreamSynchronize(uintptr_t stream) {
    CURRENT();
    if (stream == 0) copies_not_waited_for = 0;
    synchronized++;
    return stream == 0xBAD ? INVALID_HANDLE : OK;
}
int cuEventCreate(event_t **event, unsigned flags) {
    CURRENT();
    if (flags != 2) return INVALID_VALUE;
    *event = calloc(1, sizeof **event);
    events++;
    return OK;
}
int cuEventRecord(event_t *event, uintptr_t stream) {
    CURRENT();
    if (stream == 0xBAD) return INVALID_HANDLE;
    *event = (event_t){1, stream, ++turn};
    return OK;
}
int cuEventQuery(event_t *event) {
    CURRENT();
    int held = held_from && event->stream == held_stream && event->turn >= held_from;
    return event->recorded && held ? NOT_READY : OK;
}
int cuEventDestroy_v2(event_t *event) { CURRENT(); free(event); events--; return OK; }
#ifndef OLD
int cuFlushGPUDirectRDMAWrites(int target, int scope) { CURRENT(); flushes++; return target == 0 && scope == 100 ? OK : INVALID_VALUE; }
#endif
