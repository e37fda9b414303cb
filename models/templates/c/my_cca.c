/*
 * Template of a congestion control as a plugin: additive increase, and once a round trip a decrease by the share of
 * marked acknowledgements (as DCTCP, Alizadeh et al., SIGCOMM 2010), in whole numbers.
 *
 *     cc -shared -fPIC -O2 -I models/include -o my_cca.so my_cca.c
 *     wormhole plugin check my_cca.so
 *     wormhole run SCENARIO --plugin my_cca.so:gain_shift=4
 *
 * Whole numbers give the same bits on every machine. Whoever uses floating-point numbers keeps to + - * / and sqrt, and
 * compiles with -ffp-contract=off.
 */
#include "wormhole_plugin.h"

#include <stddef.h>
#include <string.h>

/* Shares are in units of 1/1024. */
#define WHOLE 1024u
/* Where a round trip ends if none has begun: no flow is that long. */
#define NOT_YET (UINT64_C(1) << 63)

/* Parameters: what the user may set. */
struct config {
    uint64_t increase_bps; /* per round trip */
    uint64_t min_rate_bps;
    uint32_t gain_shift;   /* the new share counts 1 / 2^gain_shift in the average */
    uint32_t reserved;
};

/* All that is remembered of a flow. No padding: states are compared bit for bit. */
struct state {
    uint64_t line_rate_bps;
    uint64_t bdp_bytes;
    uint64_t round_end_bytes; /* the round trip is over once this byte is acknowledged */
    uint32_t average;         /* share of marked acknowledgements */
    uint32_t acks;            /* of this round trip */
    uint32_t marks;
    uint32_t reserved;
};

static void defaults(void *memory) {
    struct config *config = memory;
    config->increase_bps = 500000000;
    config->min_rate_bps = 1000000000;
    config->gain_shift = 4;
}

static int32_t configure(void *memory, const char *key, int64_t value) {
    struct config *config = memory;
    if (strcmp(key, "gain_shift") == 0) {
        if (value < 0 || value > 10) return WORMHOLE_BAD_VALUE;
        config->gain_shift = (uint32_t)value;
    } else if (strcmp(key, "increase_bps") == 0) {
        if (value < 1) return WORMHOLE_BAD_VALUE;
        config->increase_bps = (uint64_t)value;
    } else if (strcmp(key, "min_rate_bps") == 0) {
        if (value < 1) return WORMHOLE_BAD_VALUE;
        config->min_rate_bps = (uint64_t)value;
    } else {
        return WORMHOLE_UNKNOWN_KEY;
    }
    return WORMHOLE_OK;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The rate, and a window in proportion to it: what fills the path at that rate. */
static void set_rate(const struct config *config, const struct state *state, uint64_t rate, struct wormhole_out *out) {
    rate = least(most(rate, config->min_rate_bps), state->line_rate_bps);
    out->rate_bps = rate;
    /* In parts per thousand of the line rate: the product fits. */
    out->window_bytes = most(state->bdp_bytes * (rate / (state->line_rate_bps / 1000 + 1) + 1) / 1000, 2000);
}

static void start(const void *config, void *memory, const struct wormhole_flow *flow, uint64_t now_ps,
                  struct wormhole_out *out) {
    struct state *state = memory;
    (void)now_ps;
    state->line_rate_bps = flow->line_rate_bps;
    state->bdp_bytes = flow->bdp_bytes;
    state->round_end_bytes = NOT_YET;
    set_rate(config, state, flow->line_rate_bps, out);
}

static void on_ack(const void *memory, void *state_memory, const struct wormhole_ack *ack, struct wormhole_out *out) {
    const struct config *config = memory;
    struct state *state = state_memory;
    uint32_t share;
    if (state->round_end_bytes == NOT_YET) state->round_end_bytes = ack->snd_nxt_bytes;
    state->acks += 1;
    state->marks += ack->marked;
    if (ack->acked_bytes < state->round_end_bytes) return;
    share = state->marks * WHOLE / state->acks;
    state->average = state->average - (state->average >> config->gain_shift) + (share >> config->gain_shift);
    if (state->marks != 0) {
        set_rate(config, state, out->rate_bps - out->rate_bps / (2 * WHOLE) * least(state->average, WHOLE), out);
    } else {
        set_rate(config, state, out->rate_bps + config->increase_bps, out);
    }
    state->acks = 0;
    state->marks = 0;
    state->round_end_bytes = ack->snd_nxt_bytes;
}

/* Something was lost: half. */
static void on_timeout(const void *config, void *state, uint64_t now_ps, struct wormhole_out *out) {
    (void)now_ps;
    set_rate(config, state, out->rate_bps / 2, out);
}

/* Byte positions become distances from what is acknowledged. There are no times and no telemetry counters here. */
static int32_t relative(const void *config, void *memory, const struct wormhole_origin *origin) {
    struct state *state = memory;
    (void)config;
    if (state->round_end_bytes != NOT_YET) state->round_end_bytes -= origin->acked_bytes;
    return 1;
}

static void absolute(const void *config, void *memory, const struct wormhole_origin *origin) {
    struct state *state = memory;
    (void)config;
    if (state->round_end_bytes != NOT_YET) state->round_end_bytes += origin->acked_bytes;
}

static const struct wormhole_cca DESCRIPTOR = {
    .plugin = {
        .magic = WORMHOLE_PLUGIN_MAGIC,
        .abi_version = WORMHOLE_PLUGIN_ABI,
        .struct_size = sizeof(struct wormhole_cca),
        .kind = WORMHOLE_CCA,
        .model_version = 1,
        .name = "my-cca",
        .config_size = sizeof(struct config),
        .config_align = _Alignof(struct config),
        .state_size = sizeof(struct state),
        .state_align = _Alignof(struct state),
        .defaults = defaults,
        .configure = configure,
    },
    .start = start,
    .on_ack = on_ack,
    .on_timeout = on_timeout,
    .relative = relative,
    .absolute = absolute,
};

const struct wormhole_plugin *wormhole_plugin(void) { return &DESCRIPTOR.plugin; }
