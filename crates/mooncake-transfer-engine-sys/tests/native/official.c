/* A stand-in for libtransfer_engine.so: each function folds its arguments into what it gives back,
   so that a wrong name, order or width shows. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request { int opcode; void *source; int32_t target; uint64_t offset; uint64_t length; };
struct status { int status; uint64_t bytes; };
struct entry { void *addr; size_t length; };
struct message { char *name; char *msg; };
struct nic { char name[64]; uint64_t inflight; double bandwidth; };

static int text(const char *s) { return s ? (int)strlen(s) : -1; }
static int number(const void *p) { return (int)(uintptr_t)p; }

static int destroyed;
int last_destroyed(void) { return destroyed; }

void *createTransferEngine(const char *metadata, const char *name, const char *host, uint64_t port, int discover) {
    return (void *)(uintptr_t)(text(metadata) + 10 * text(name) + 100 * text(host) + 1000 * port + discover * 10000000);
}
void destroyTransferEngine(void *engine) { destroyed = number(engine); }
void *installTransport(void *engine, const char *proto, void **args) {
    return (void *)(uintptr_t)(number(engine) + 10 * text(proto) + 100 * (args ? number(args[0]) : 0));
}
int getLocalIpAndPort(void *engine, char *out, size_t len) { return snprintf(out, len, "host:%d", number(engine)); }
int registerLocalMemory(void *engine, void *addr, size_t len, const char *location, int remote) {
    return number(engine) + 10 * number(addr) + 100 * (int)len + 1000 * text(location) + 10000 * remote;
}
int unregisterLocalMemory(void *engine, void *addr) { return number(engine) + 10 * number(addr); }
int32_t openSegment(void *engine, const char *name) { return number(engine) + 10 * text(name); }
int32_t openSegmentNoCache(void *engine, const char *name) { return -(number(engine) + 10 * text(name)); }
int closeSegment(void *engine, int32_t segment) { return number(engine) - segment; }
uint64_t allocateBatchID(void *engine, size_t size) { return size ? ((uint64_t)size << 40) + number(engine) : UINT64_MAX; }
int submitTransfer(void *engine, uint64_t batch, struct request *r, size_t count) {
    int sum = number(engine) + (int)(batch >> 40);
    for (size_t i = 0; i < count; i++)
        sum += r[i].opcode + 10 * number(r[i].source) + 100 * r[i].target + 1000 * (int)(r[i].offset >> 40) + 10000 * (int)r[i].length;
    return sum;
}
int getTransferStatus(void *engine, uint64_t batch, size_t task, struct status *s) {
    s->status = (int)task;
    s->bytes = batch + number(engine);
    return 0;
}
#ifndef WITHOUT_FREE_BATCH
int freeBatchID(void *engine, uint64_t batch) { return number(engine) + (int)(batch >> 40); }
#endif

int discoverTopology(void *engine) { return number(engine) + 1; }
int uninstallTransport(void *engine, const char *proto) { return number(engine) + 20 * text(proto); }
int warmupEfaSegment(void *engine, const char *name) { return number(engine) + 30 * text(name); }
int removeLocalSegment(void *engine, const char *name) { return number(engine) + 40 * text(name); }
int registerLocalMemoryBatch(void *engine, struct entry *e, size_t n, const char *location) {
    int sum = number(engine) + 1000 * text(location);
    for (size_t i = 0; i < n; i++) sum += 10 * number(e[i].addr) + 100 * (int)e[i].length;
    return sum;
}
int unregisterLocalMemoryBatch(void *engine, void **addr, size_t n) {
    int sum = number(engine);
    for (size_t i = 0; i < n; i++) sum += 10 * number(addr[i]);
    return sum;
}
int submitTransferWithNotify(void *engine, uint64_t batch, struct request *r, size_t n, struct message m) {
    return submitTransfer(engine, batch, r, n) + 100000 * text(m.name) + 1000000 * text(m.msg);
}
struct message *getNotifsFromEngine(void *engine, int *size) {
    struct message *m = malloc(sizeof *m);
    m->name = strdup("name");
    m->msg = strdup("message");
    *size = number(engine);
    return m;
}
int freeNotifsMsgBuf(struct message *m, int size) {
    free(m->name);
    free(m->msg);
    free(m);
    return size;
}
int genNotifyInEngine(void *engine, uint64_t target, struct message m) {
    return number(engine) + (int)(target >> 40) + 10 * text(m.name) + 100 * text(m.msg);
}
int syncSegmentCache(void *engine) { return number(engine) + 2; }
int getNicLoadStats(void *engine, struct nic *stats, size_t *count) {
    strcpy(stats[*count - 1].name, "mlx5_0");
    stats[*count - 1].inflight = (uint64_t)1 << 40;
    stats[*count - 1].bandwidth = 0.5;
    *count = number(engine);
    return 0;
}
void enableGracefulShutdown(void *engine) { destroyed = -number(engine); }
#ifndef WITHOUT_SHOW_LINKS
int showLinks(void *engine, char *out, size_t len, int json) { return snprintf(out, len, "%d %d", number(engine), json); }
#endif
