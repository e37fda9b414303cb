/*
 * models/src/cca/dctcp.rs in C, with the parameters of the reference runs: the same operations in the same order, so
 * the same bits. Compile with -ffp-contract=off.
 */
#include "wormhole_plugin.h"

#define GAIN 0.0625
#define ADDITIVE_BPS UINT64_C(615000000)
#define MIN_RATE_BPS UINT64_C(1000000000)
/* The distance of a position that is not set yet. */
#define UNSET (UINT64_C(1) << 63)

struct state {
    uint64_t line_bps;
    uint64_t bdp_bytes;
    uint64_t mtu_bytes;
    uint64_t end_bytes; /* of the round trip; 0 before the first acknowledgement */
    uint64_t recover_bytes;
    uint64_t reduced;
    uint64_t marks;
    uint64_t batch;
    double alpha;
};

static void set_rate(const struct state *state, uint64_t rate, struct wormhole_out *out) {
    uint64_t window = state->bdp_bytes * rate / state->line_bps;
    out->rate_bps = rate;
    out->window_bytes = window ? window : 1;
}

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void start(const void *config, void *memory, const struct wormhole_flow *flow, uint64_t now_ps,
                  struct wormhole_out *out) {
    struct state *state = memory;
    (void)config, (void)now_ps;
    state->line_bps = flow->line_rate_bps;
    state->bdp_bytes = flow->bdp_bytes;
    state->mtu_bytes = flow->mtu_bytes;
    state->alpha = 1.0;
    set_rate(state, flow->line_rate_bps, out);
}

static void on_ack(const void *config, void *memory, const struct wormhole_ack *ack, struct wormhole_out *out) {
    struct state *state = memory;
    int is_over = ack->acked_bytes > state->end_bytes;
    (void)config;
    state->marks += ack->marked;
    if (is_over) {
        if (state->end_bytes == 0) {
            state->batch = ack->snd_nxt_bytes / state->mtu_bytes + 1;
        } else {
            double share = (double)state->marks / (double)state->batch;
            if (share > 1.0) share = 1.0;
            state->alpha = (1.0 - GAIN) * state->alpha + GAIN * share;
            state->marks = 0;
            state->batch = (uint32_t)(ack->snd_nxt_bytes - ack->acked_bytes) / state->mtu_bytes + 1;
        }
        state->end_bytes = ack->snd_nxt_bytes;
    }
    if (state->reduced && ack->acked_bytes > state->recover_bytes) {
        state->reduced = 0;
        state->recover_bytes = 0;
    }
    if (ack->marked && !state->reduced) {
        set_rate(state, most((uint64_t)((double)out->rate_bps * (1.0 - state->alpha / 2.0)), MIN_RATE_BPS), out);
        state->reduced = 1;
        state->recover_bytes = ack->snd_nxt_bytes;
    }
    if (!state->reduced && is_over) set_rate(state, least(out->rate_bps + ADDITIVE_BPS, state->line_bps), out);
}

static void on_timeout(const void *config, void *memory, uint64_t now_ps, struct wormhole_out *out) {
    (void)config, (void)now_ps;
    set_rate(memory, most(out->rate_bps / 2, MIN_RATE_BPS), out);
}

static int32_t relative(const void *config, void *memory, const struct wormhole_origin *origin) {
    struct state *state = memory;
    (void)config;
    state->end_bytes = state->end_bytes == 0 ? UNSET : state->end_bytes - origin->acked_bytes;
    if (state->reduced) state->recover_bytes -= origin->acked_bytes;
    return 1;
}

static void absolute(const void *config, void *memory, const struct wormhole_origin *origin) {
    struct state *state = memory;
    (void)config;
    state->end_bytes = state->end_bytes == UNSET ? 0 : state->end_bytes + origin->acked_bytes;
    if (state->reduced) state->recover_bytes += origin->acked_bytes;
}

static const struct wormhole_cca DESCRIPTOR = {
    .plugin = {
        .magic = WORMHOLE_PLUGIN_MAGIC,
        .abi_version = WORMHOLE_PLUGIN_ABI,
#ifdef WITHOUT_RELATIVE
        /* As an older plugin: it ends before the last two fields. */
        .struct_size = sizeof(struct wormhole_cca) - 2 * sizeof(void *),
#else
        .struct_size = sizeof(struct wormhole_cca),
#endif
        .kind = WORMHOLE_CCA,
        .model_version = 1,
        .name = "dctcp-twin",
        .state_size = sizeof(struct state),
        .state_align = _Alignof(struct state),
    },
    .start = start,
    .on_ack = on_ack,
    .on_timeout = on_timeout,
    .relative = relative,
    .absolute = absolute,
};

const struct wormhole_plugin *wormhole_plugin(void) { return &DESCRIPTOR.plugin; }
