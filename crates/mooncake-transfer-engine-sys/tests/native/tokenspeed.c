/* A stand-in for libtokenspeed_transfer_engine.so: each function folds its arguments into what it
   gives back. VERSION is its ABI version; with ONLY_VERSION it has nothing else. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int ts_mooncake_abi_version(void) { return VERSION; }

#ifndef ONLY_VERSION
static int number(const void *p) { return (int)(uintptr_t)p; }

static int destroyed;
int last_destroyed(void) { return destroyed; }

void *ts_mooncake_create(const char *host, const char *metadata, const char *protocol, const char *device) {
    return (void *)(strlen(host) + 10 * strlen(metadata) + 100 * strlen(protocol) + 1000 * strlen(device));
}
void ts_mooncake_destroy(void *engine) { destroyed = number(engine); }
int ts_mooncake_rpc_port(void *engine) { return number(engine) + 1; }
int ts_mooncake_register(void *engine, void *addr, size_t len) { return number(engine) + 10 * number(addr) + 100 * (int)len; }
int ts_mooncake_unregister(void *engine, void *addr) { return number(engine) + 10 * number(addr); }
int ts_mooncake_write(void *engine, const char *target, const uint64_t *from, const uint64_t *to, const uint64_t *len, size_t count) {
    int sum = number(engine) + 10 * (int)strlen(target);
    for (size_t i = 0; i < count; i++) sum += 100 * (int)from[i] + 1000 * (int)(to[i] >> 40) + 10000 * (int)len[i];
    return sum;
}
int ts_mooncake_write_pages(void *engine, const char *target, const int64_t *from, const int64_t *to, size_t pages,
                            const int64_t *fields, size_t num_fields, size_t batch) {
    int sum = number(engine) + 10 * (int)strlen(target) + 10000000 * (int)batch;
    for (size_t i = 0; i < pages; i++) sum += 100 * (int)from[i] + 1000 * (int)to[i];
    for (size_t i = 0; i < 5 * num_fields; i++) sum += 10000 * (int)fields[i];
    return sum;
}
#endif
