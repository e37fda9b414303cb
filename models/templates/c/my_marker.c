/*
 * Template of a marker as a plugin: nothing is marked below one queue length, everything above another, and in between
 * a share that rises in proportion, by chance. Both lengths are for 100 Gb/s; other ports get their share.
 *
 *     cc -shared -fPIC -O2 -I models/include -o my_marker.so my_marker.c
 *     wormhole run SCENARIO --plugin my_marker.so:min_bytes=100000,max_bytes=400000
 */
#include "wormhole_plugin.h"

#include <string.h>

struct config {
    uint64_t min_bytes;
    uint64_t max_bytes;
};

/* Of an egress port. */
struct state {
    uint64_t min_bytes;
    uint64_t max_bytes;
};

static void defaults(void *memory) {
    struct config *config = memory;
    config->min_bytes = 400000;
    config->max_bytes = 1600000;
}

static int32_t configure(void *memory, const char *key, int64_t value) {
    struct config *config = memory;
    uint64_t *field = strcmp(key, "min_bytes") == 0 ? &config->min_bytes
                      : strcmp(key, "max_bytes") == 0 ? &config->max_bytes : 0;
    if (!field) return WORMHOLE_UNKNOWN_KEY;
    if (value < 0 || value > INT64_C(1) << 40) return WORMHOLE_BAD_VALUE;
    *field = (uint64_t)value;
    return WORMHOLE_OK;
}

static void start(const void *memory, void *state_memory, const struct wormhole_port *port) {
    const struct config *config = memory;
    struct state *state = state_memory;
    uint64_t gbps = port->rate_bps / 1000000000;
    state->min_bytes = config->min_bytes * gbps / 100;
    state->max_bytes = config->max_bytes * gbps / 100;
}

static int32_t marks(const void *config, void *memory, uint64_t queue_bytes, uint64_t random, uint32_t *drew) {
    const struct state *state = memory;
    (void)config;
    if (queue_bytes <= state->min_bytes) return 0;
    if (queue_bytes > state->max_bytes) return 1;
    /* Chance decides, and that must be told: it is not memoised. */
    *drew = 1;
    return random % (state->max_bytes - state->min_bytes) < queue_bytes - state->min_bytes;
}

static const struct wormhole_marker DESCRIPTOR = {
    .plugin = {
        .magic = WORMHOLE_PLUGIN_MAGIC,
        .abi_version = WORMHOLE_PLUGIN_ABI,
        .struct_size = sizeof(struct wormhole_marker),
        .kind = WORMHOLE_MARKER,
        .model_version = 1,
        .name = "my-marker",
        .config_size = sizeof(struct config),
        .config_align = _Alignof(struct config),
        .state_size = sizeof(struct state),
        .state_align = _Alignof(struct state),
        .defaults = defaults,
        .configure = configure,
    },
    .start = start,
    .marks = marks,
};

const struct wormhole_plugin *wormhole_plugin(void) { return &DESCRIPTOR.plugin; }
