/*
 * Template of a buffer manager as a plugin: each ingress queue has a fixed share of its own, in proportion to the rate
 * of its port. So what one queue may hold never depends on the others: a switch is always calm.
 *
 *     cc -shared -fPIC -O2 -I models/include -o my_buffers.so my_buffers.c
 *     wormhole run SCENARIO --plugin my_buffers.so:pause_bytes=200000
 */
#include "wormhole_plugin.h"

#include <string.h>

/* For 100 Gb/s. */
struct config {
    uint64_t pause_bytes;    /* from here on the sender is paused */
    uint64_t headroom_bytes; /* for what is on its way when the pause goes out; beyond it frames are dropped */
};

struct port {
    uint64_t pause_bytes;
    uint64_t limit_bytes;
};

struct queue {
    uint64_t bytes;
};

static void defaults(void *memory) {
    struct config *config = memory;
    config->pause_bytes = 500000;
    config->headroom_bytes = 50000;
}

static int32_t configure(void *memory, const char *key, int64_t value) {
    struct config *config = memory;
    uint64_t *field = strcmp(key, "pause_bytes") == 0 ? &config->pause_bytes
                      : strcmp(key, "headroom_bytes") == 0 ? &config->headroom_bytes : 0;
    if (!field) return WORMHOLE_UNKNOWN_KEY;
    if (value < 1 || value > INT64_C(1) << 40) return WORMHOLE_BAD_VALUE;
    *field = (uint64_t)value;
    return WORMHOLE_OK;
}

static void start_port(const void *memory, void *port_memory, const struct wormhole_port *info) {
    const struct config *config = memory;
    struct port *port = port_memory;
    uint64_t gbps = info->rate_bps / 1000000000;
    port->pause_bytes = config->pause_bytes * gbps / 100;
    port->limit_bytes = port->pause_bytes + config->headroom_bytes * gbps / 100;
}

static int32_t admit(const void *config, void *sw, const void *port_memory, void *queue_memory, uint32_t bytes) {
    const struct port *port = port_memory;
    struct queue *queue = queue_memory;
    (void)config, (void)sw;
    if (queue->bytes + bytes > port->limit_bytes) return 0;
    queue->bytes += bytes;
    return 1;
}

static int32_t pauses(const void *config, const void *sw, const void *port, const void *queue) {
    (void)config, (void)sw;
    return ((const struct queue *)queue)->bytes >= ((const struct port *)port)->pause_bytes;
}

static void release(const void *config, void *sw, const void *port, void *queue, uint32_t bytes) {
    (void)config, (void)sw, (void)port;
    ((struct queue *)queue)->bytes -= bytes;
}

static int32_t resumes(const void *config, const void *sw, const void *port, const void *queue) {
    (void)config, (void)sw;
    return ((const struct queue *)queue)->bytes <= ((const struct port *)port)->pause_bytes / 2;
}

static int32_t is_calm(const void *config, const void *sw, uint64_t more_bytes) {
    (void)config, (void)sw, (void)more_bytes;
    return 1;
}

/* A switch counts nothing here. */
static void replace(const void *config, void *sw, const void *queue, const void *to) {
    (void)config, (void)sw, (void)queue, (void)to;
}

static const struct wormhole_buffers DESCRIPTOR = {
    .plugin = {
        .magic = WORMHOLE_PLUGIN_MAGIC,
        .abi_version = WORMHOLE_PLUGIN_ABI,
        .struct_size = sizeof(struct wormhole_buffers),
        .kind = WORMHOLE_BUFFERS,
        .model_version = 1,
        .name = "my-buffers",
        .config_size = sizeof(struct config),
        .config_align = _Alignof(struct config),
        .defaults = defaults,
        .configure = configure,
    },
    .port_state_size = sizeof(struct port),
    .port_state_align = _Alignof(struct port),
    .queue_state_size = sizeof(struct queue),
    .queue_state_align = _Alignof(struct queue),
    .start_port = start_port,
    .admit = admit,
    .pauses = pauses,
    .release = release,
    .resumes = resumes,
    .is_calm = is_calm,
    .replace = replace,
};

const struct wormhole_plugin *wormhole_plugin(void) { return &DESCRIPTOR.plugin; }
