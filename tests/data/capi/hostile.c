// Everything a caller may do wrong that can be told: each call gives the status it should, and nothing crashes. Built
// with the address and undefined-behaviour sanitisers where there are any; the test prints how.

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "must.h"

static int failures = 0;
static int calls = 0;

#define EXPECT(want, call) expect((want), (call), #call, __LINE__)

static void expect(WhStatus want, WhStatus got, const char *call, int line)
{
    calls++;
    if (want != got) {
        printf("line %d: %s: '%s', not '%s'\n", line, call, wh_status_text(got), wh_status_text(want));
        failures++;
    }
}

// The pointer one byte further: misaligned for all that has an alignment.
static void *off(void *pointer)
{
    return (void *)((uintptr_t)pointer + 1);
}

static uint8_t nodes[3] = {WH_NODE_KIND_HOST, WH_NODE_KIND_HOST, WH_NODE_KIND_SWITCH};
static WhLink links[2] = {
    {.a = 0, .b = 2, .rate_bps = 100000000000, .delay_ps = 1000000},
    {.a = 1, .b = 2, .rate_bps = 100000000000, .delay_ps = 1000000},
};
static WhCca cca;

static WhConfig good_config(void)
{
    cca.struct_size = sizeof cca;
    MUST(wh_cca_defaults(&cca, WH_CCA_KIND_HPCC));
    WhConfig config = {.struct_size = sizeof config};
    MUST(wh_config_defaults(&config, WH_PROFILE_PS));
    config.nodes = nodes;
    config.node_count = 3;
    config.links = links;
    config.link_count = 2;
    config.ccas = &cca;
    config.cca_count = 1;
    config.queued_flows = config.active_flows = config.inputs = config.outputs = 4;
    config.packets = 1024;
    return config;
}

static WhFlow good_flow(void)
{
    WhFlow flow = {.struct_size = sizeof flow};
    MUST(wh_flow_defaults(&flow));
    flow.dst = 1;
    flow.bytes = 10000;
    return flow;
}

static WhFrame good_frame(void)
{
    return (WhFrame){.struct_size = sizeof(WhFrame), .dst = 1, .bytes = 1000, .priority = 3};
}

// Every function with a kernel that is none.
static void no_kernels(WhKernel *kernel, WhStatus want)
{
    uint64_t time = 0;
    uint32_t number = 0;
    size_t size = 0;
    uint8_t byte = 0;
    WhFlow flow = good_flow();
    WhFrame frame = good_frame();
    WhAcceleration acceleration = {.struct_size = sizeof acceleration};
    WhMemoisation memoisation = {.struct_size = sizeof memoisation};
    WhCompletion completion = {.struct_size = sizeof completion};
    WhTotals totals = {.struct_size = sizeof totals};
    WhSkipped skipped = {.struct_size = sizeof skipped};
    WhMemoised memoised = {.struct_size = sizeof memoised};
    WhPortStats stats = {.struct_size = sizeof stats};
    EXPECT(want, wh_accelerate(kernel, &acceleration));
    EXPECT(want, wh_memoise(kernel, &memoisation));
    EXPECT(want, wh_memo_export(kernel, &byte, 1, &size));
    EXPECT(want, wh_memo_import(kernel, &byte, 1, &size));
    EXPECT(want, wh_add_flow(kernel, &flow, &number));
    EXPECT(want, wh_set_link(kernel, 0, 0, 1));
    EXPECT(want, wh_inject(kernel, 0, &frame));
    EXPECT(want, wh_poll_completion(kernel, &completion));
    EXPECT(want, wh_poll_egress(kernel, &frame));
    EXPECT(want, wh_next_event_time(kernel, &time));
    EXPECT(want, wh_now(kernel, &time));
    EXPECT(want, wh_run_until(kernel, 0, &number));
    EXPECT(want, wh_run_bounded(kernel, 0, 1, &number));
    EXPECT(want, wh_run_to_completion(kernel, 0, 1, &number));
    EXPECT(want, wh_wake_all(kernel));
    EXPECT(want, wh_totals(kernel, &totals));
    EXPECT(want, wh_skipped(kernel, &skipped));
    EXPECT(want, wh_memoised(kernel, &memoised));
    EXPECT(want, wh_port_count(kernel, &number));
    EXPECT(want, wh_port_stats(kernel, 0, &stats));
}

static void handles(void)
{
    no_kernels(NULL, WH_STATUS_NULL_POINTER);
    WhConfig config = good_config();
    size_t bytes = 0;
    MUST(wh_sizeof(&config, &bytes));
    void *memory = NULL;
    WhKernel *kernel = new_kernel(&config, &memory);
    no_kernels(off(kernel), WH_STATUS_MISALIGNED);
    // A kernel must not be moved; and memory of zeros is none.
    void *copy = malloc(bytes);
    memcpy(copy, memory, bytes);
    no_kernels((WhKernel *)((char *)copy + ((char *)kernel - (char *)memory)), WH_STATUS_BAD_HANDLE);
    memset(copy, 0, bytes);
    no_kernels(copy, WH_STATUS_BAD_HANDLE);
    free(copy);
    // Made again in the same memory, it is as new.
    config.flags = 0;
    WhFlow flow = good_flow();
    uint32_t id = 9;
    EXPECT(WH_STATUS_OK, wh_add_flow(kernel, &flow, &id));
    EXPECT(WH_STATUS_OK, wh_init(memory, bytes, &config, &kernel));
    uint64_t next = 0;
    EXPECT(WH_STATUS_OK, wh_next_event_time(kernel, &next));
    EXPECT(WH_STATUS_OK, next == WH_NEVER ? WH_STATUS_OK : WH_STATUS_INTERNAL);
    free(memory);
}

// One wrong thing at a time.
#define BAD_CONFIG(want, change)                      \
    do {                                              \
        WhConfig config = good_config();              \
        change;                                       \
        EXPECT(want, wh_sizeof(&config, &bytes));     \
        EXPECT(want, wh_init(memory, room, &config, &kernel)); \
    } while (0)

static void configs(void)
{
    WhConfig good = good_config();
    size_t bytes = 0, room = 0;
    MUST(wh_sizeof(&good, &room));
    void *memory = malloc(room + 1);
    WhKernel *kernel = NULL;
    EXPECT(WH_STATUS_NULL_POINTER, wh_sizeof(NULL, &bytes));
    EXPECT(WH_STATUS_NULL_POINTER, wh_sizeof(&good, NULL));
    EXPECT(WH_STATUS_MISALIGNED, wh_sizeof(off(&good), &bytes));
    EXPECT(WH_STATUS_NULL_POINTER, wh_init(NULL, room, &good, &kernel));
    EXPECT(WH_STATUS_MISALIGNED, wh_init(off(memory), room, &good, &kernel));
    EXPECT(WH_STATUS_OUT_OF_MEMORY, wh_init(memory, room - 1, &good, &kernel));
    EXPECT(WH_STATUS_OUT_OF_MEMORY, wh_init(memory, 0, &good, &kernel));
    EXPECT(WH_STATUS_NULL_POINTER, wh_init(memory, room, &good, NULL));

    BAD_CONFIG(WH_STATUS_BAD_STRUCT_SIZE, config.struct_size = 0);
    BAD_CONFIG(WH_STATUS_BAD_STRUCT_SIZE, config.struct_size = sizeof config - 1);
    BAD_CONFIG(WH_STATUS_BAD_STRUCT_SIZE, config.struct_size = UINT32_MAX);
    BAD_CONFIG(WH_STATUS_BAD_CONSTANT, config.flags = 2);
    BAD_CONFIG(WH_STATUS_BAD_CONSTANT, config.profile = 2);
    BAD_CONFIG(WH_STATUS_BAD_CONSTANT, config.routing = 2);
    BAD_CONFIG(WH_STATUS_BAD_CONSTANT, (config.profile = WH_PROFILE_NS3, config.routing = WH_ROUTING_SPRAY));
    BAD_CONFIG(WH_STATUS_NULL_POINTER, config.nodes = NULL);
    BAD_CONFIG(WH_STATUS_BAD_FABRIC, config.node_count = 0);
    BAD_CONFIG(WH_STATUS_NULL_POINTER, config.links = NULL);
    BAD_CONFIG(WH_STATUS_MISALIGNED, config.links = off(links));
    BAD_CONFIG(WH_STATUS_BAD_LIMIT, config.link_count = SIZE_MAX);
    BAD_CONFIG(WH_STATUS_NULL_POINTER, config.ccas = NULL);
    BAD_CONFIG(WH_STATUS_BAD_LIMIT, config.cca_count = 0);
    BAD_CONFIG(WH_STATUS_BAD_LIMIT, config.cca_count = 257);
    BAD_CONFIG(WH_STATUS_BAD_LIMIT, config.packets = 0);
    BAD_CONFIG(WH_STATUS_BAD_LIMIT, config.outputs = 0);
    BAD_CONFIG(WH_STATUS_BAD_LIMIT, config.inputs = SIZE_MAX);
    BAD_CONFIG(WH_STATUS_BAD_LIMIT, config.active_flows = SIZE_MAX / 2);
    BAD_CONFIG(WH_STATUS_BAD_LIMIT, config.snapshot_words = SIZE_MAX);
    BAD_CONFIG(WH_STATUS_BAD_LIMIT, config.memo_words = SIZE_MAX);
    BAD_CONFIG(WH_STATUS_BAD_PARAMETER, config.ecn = 2);
    BAD_CONFIG(WH_STATUS_BAD_PARAMETER, config.ecn_pmax = NAN);
    BAD_CONFIG(WH_STATUS_BAD_PARAMETER, config.ecn_pmax = 1.5);
    BAD_CONFIG(WH_STATUS_BAD_PARAMETER, config.ecn_rate_bps = 0);
    BAD_CONFIG(WH_STATUS_BAD_PARAMETER, config.ecn_kmin_bytes = UINT64_MAX);
    BAD_CONFIG(WH_STATUS_BAD_PARAMETER, config.mtu = 0);
    BAD_CONFIG(WH_STATUS_BAD_PARAMETER, config.mtu = UINT32_MAX);
    BAD_CONFIG(WH_STATUS_BAD_PARAMETER, config.timeout_ps = UINT64_MAX);
    BAD_CONFIG(WH_STATUS_BAD_PARAMETER, config.reserved = 1);
    BAD_CONFIG(WH_STATUS_BAD_STRUCT_SIZE, cca.struct_size = 8);
    BAD_CONFIG(WH_STATUS_BAD_CONSTANT, cca.kind = 77);
    BAD_CONFIG(WH_STATUS_BAD_PARAMETER, cca.values[0] = NAN);
    BAD_CONFIG(WH_STATUS_BAD_PARAMETER, cca.values[15] = 1);
    nodes[2] = 3;
    BAD_CONFIG(WH_STATUS_BAD_CONSTANT, (void)config);
    nodes[2] = WH_NODE_KIND_SWITCH;

    // What is wrong with a link is told when the kernel is made.
    const WhLink kept = links[1];
    const struct {
        WhLink link;
        WhStatus status;
    } bad[] = {
        {{.a = 1, .b = 3, .rate_bps = 1}, WH_STATUS_BAD_LINK},
        {{.a = UINT32_MAX, .b = 1, .rate_bps = 1}, WH_STATUS_BAD_LINK},
        {{.a = 1, .b = 1, .rate_bps = 1}, WH_STATUS_BAD_LINK},
        {{.a = 1, .b = 2, .rate_bps = 0}, WH_STATUS_BAD_RATE},
        {{.a = 1, .b = 2, .rate_bps = UINT64_MAX}, WH_STATUS_BAD_RATE},
        {{.a = 1, .b = 2, .rate_bps = 1, .delay_ps = UINT64_MAX}, WH_STATUS_BAD_RATE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        links[1] = bad[i].link;
        EXPECT(bad[i].status, wh_init(memory, room, &good, &kernel));
    }
    links[1] = kept;

    // A newer program: what this library does not know must be 0.
    struct {
        WhConfig config;
        uint64_t newer;
    } larger = {.config = good_config()};
    larger.config.struct_size = sizeof larger;
    EXPECT(WH_STATUS_OK, wh_sizeof(&larger.config, &bytes));
    larger.newer = 1;
    EXPECT(WH_STATUS_BAD_STRUCT_SIZE, wh_sizeof(&larger.config, &bytes));

    // Fabrics that nothing can happen in are none the less fabrics.
    good.link_count = 0;
    EXPECT(WH_STATUS_OK, wh_init(memory, room, &good, &kernel));
    WhFlow flow = good_flow();
    uint32_t id = 0;
    EXPECT(WH_STATUS_NO_PATH, wh_add_flow(kernel, &flow, &id));
    WhFrame frame = good_frame();
    EXPECT(WH_STATUS_NO_PATH, wh_inject(kernel, 0, &frame));
    good.node_count = 1;
    EXPECT(WH_STATUS_OK, wh_init(memory, room, &good, &kernel));
    EXPECT(WH_STATUS_NOT_A_HOST, wh_add_flow(kernel, &flow, &id));
    free(memory);
}

#define BAD_FLOW(want, change)                        \
    do {                                              \
        WhFlow flow = good_flow();                    \
        change;                                       \
        EXPECT(want, wh_add_flow(kernel, &flow, &id)); \
    } while (0)

#define BAD_FRAME(want, change)                       \
    do {                                              \
        WhFrame frame = good_frame();                 \
        change;                                       \
        EXPECT(want, wh_inject(kernel, 0, &frame));   \
    } while (0)

static void commands(void)
{
    WhConfig config = good_config();
    void *memory = NULL;
    WhKernel *kernel = new_kernel(&config, &memory);
    uint32_t id = 0, step = 0;
    uint64_t time = 0;
    BAD_FLOW(WH_STATUS_BAD_STRUCT_SIZE, flow.struct_size = 4);
    BAD_FLOW(WH_STATUS_NOT_A_HOST, flow.src = 2);
    BAD_FLOW(WH_STATUS_NOT_A_HOST, flow.dst = UINT32_MAX);
    BAD_FLOW(WH_STATUS_SAME_HOST, flow.dst = 0);
    BAD_FLOW(WH_STATUS_NO_BYTES, flow.bytes = 0);
    BAD_FLOW(WH_STATUS_BAD_CLASS, flow.priority = 8);
    BAD_FLOW(WH_STATUS_BAD_CLASS, flow.priority = 256);
    BAD_FLOW(WH_STATUS_BAD_CLASS, flow.cca = 1);
    BAD_FLOW(WH_STATUS_BAD_CLASS, flow.cca = 256);
    EXPECT(WH_STATUS_NULL_POINTER, wh_add_flow(kernel, NULL, &id));
    WhFlow flow = good_flow();
    EXPECT(WH_STATUS_NULL_POINTER, wh_add_flow(kernel, &flow, NULL));
    EXPECT(WH_STATUS_MISALIGNED, wh_add_flow(kernel, &flow, off(&id)));
    EXPECT(WH_STATUS_MISALIGNED, wh_add_flow(kernel, off(&flow), &id));
    BAD_FRAME(WH_STATUS_BAD_STRUCT_SIZE, frame.struct_size = UINT32_MAX);
    BAD_FRAME(WH_STATUS_NOT_A_HOST, frame.src = 2);
    BAD_FRAME(WH_STATUS_SAME_HOST, frame.dst = 0);
    BAD_FRAME(WH_STATUS_NO_BYTES, frame.bytes = 0);
    BAD_FRAME(WH_STATUS_BAD_PARAMETER, frame.bytes = UINT32_MAX);
    BAD_FRAME(WH_STATUS_BAD_PARAMETER, frame.marked = 2);
    BAD_FRAME(WH_STATUS_BAD_PARAMETER, frame.reserved = 1);
    BAD_FRAME(WH_STATUS_BAD_CLASS, frame.priority = 8);
    EXPECT(WH_STATUS_NULL_POINTER, wh_inject(kernel, 0, NULL));
    EXPECT(WH_STATUS_BAD_LINK, wh_set_link(kernel, 0, 2, 1));
    EXPECT(WH_STATUS_BAD_LINK, wh_set_link(kernel, 0, UINT32_MAX, 1));
    EXPECT(WH_STATUS_BAD_PARAMETER, wh_set_link(kernel, 0, 0, 2));
    WhAcceleration how = {.struct_size = sizeof how};
    EXPECT(WH_STATUS_BAD_CONSTANT, wh_acceleration_defaults(&how, 3));
    MUST(wh_acceleration_defaults(&how, WH_TIER_BOUNDED));
    EXPECT(WH_STATUS_OUT_OF_SNAPSHOT_WORDS, wh_accelerate(kernel, &how));
    how.tier = 3;
    EXPECT(WH_STATUS_BAD_CONSTANT, wh_accelerate(kernel, &how));
    WhMemoisation memoisation = {.struct_size = sizeof memoisation};
    EXPECT(WH_STATUS_NO_MEMO, wh_memoise(kernel, &memoisation));

    // Limits that are used up.
    for (size_t i = 0; i < config.queued_flows; i++) {
        EXPECT(WH_STATUS_OK, wh_add_flow(kernel, &flow, &id));
        WhFrame frame = good_frame();
        EXPECT(WH_STATUS_OK, wh_inject(kernel, 0, &frame));
    }
    EXPECT(WH_STATUS_OUT_OF_QUEUED_FLOWS, wh_add_flow(kernel, &flow, &id));
    BAD_FRAME(WH_STATUS_OUT_OF_INPUTS, (void)frame);
    EXPECT(WH_STATUS_NULL_POINTER, wh_run_until(kernel, WH_NEVER, NULL));
    EXPECT(WH_STATUS_OK, wh_run_until(kernel, WH_NEVER, &step));
    EXPECT(WH_STATUS_OK, step == WH_STEP_OUTPUT_FULL ? WH_STATUS_OK : WH_STATUS_INTERNAL);

    // A bad place for a result loses nothing.
    EXPECT(WH_STATUS_NULL_POINTER, wh_poll_egress(kernel, NULL));
    WhFrame frame = good_frame();
    frame.struct_size = 3;
    EXPECT(WH_STATUS_BAD_STRUCT_SIZE, wh_poll_egress(kernel, &frame));
    frame.struct_size = sizeof frame;
    for (size_t i = 0; i < config.queued_flows; i++) {
        EXPECT(WH_STATUS_OK, wh_poll_egress(kernel, &frame));
    }
    EXPECT(WH_STATUS_EMPTY, wh_poll_egress(kernel, &frame));
    EXPECT(WH_STATUS_OK, wh_run_until(kernel, WH_NEVER, &step));
    WhCompletion done = {.struct_size = 0};
    EXPECT(WH_STATUS_BAD_STRUCT_SIZE, wh_poll_completion(kernel, &done));
    EXPECT(WH_STATUS_NULL_POINTER, wh_poll_completion(kernel, NULL));
    done.struct_size = sizeof done;
    for (size_t i = 0; i < config.queued_flows; i++) {
        EXPECT(WH_STATUS_OK, wh_poll_completion(kernel, &done));
    }
    EXPECT(WH_STATUS_EMPTY, wh_poll_completion(kernel, &done));
    EXPECT(WH_STATUS_OK, wh_run_until(kernel, WH_NEVER, &step));

    // The past is past.
    EXPECT(WH_STATUS_IN_PAST, wh_add_flow(kernel, &flow, &id));
    BAD_FRAME(WH_STATUS_IN_PAST, (void)frame);
    EXPECT(WH_STATUS_IN_PAST, wh_set_link(kernel, 0, 0, 0));
    EXPECT(WH_STATUS_NULL_POINTER, wh_now(kernel, NULL));
    EXPECT(WH_STATUS_MISALIGNED, wh_next_event_time(kernel, off(&time)));
    uint32_t ports = 0;
    EXPECT(WH_STATUS_OK, wh_port_count(kernel, &ports));
    WhPortStats stats = {.struct_size = sizeof stats};
    EXPECT(WH_STATUS_BAD_PORT, wh_port_stats(kernel, ports, &stats));
    EXPECT(WH_STATUS_BAD_PORT, wh_port_stats(kernel, UINT32_MAX, &stats));
    EXPECT(WH_STATUS_OK, wh_port_stats(kernel, ports - 1, &stats));
    WhTotals totals = {.struct_size = 1};
    EXPECT(WH_STATUS_BAD_STRUCT_SIZE, wh_totals(kernel, &totals));

    // Times at the end of time.
    flow.start_ps = UINT64_MAX;
    EXPECT(WH_STATUS_OK, wh_add_flow(kernel, &flow, &id));
    frame = good_frame();
    EXPECT(WH_STATUS_OK, wh_inject(kernel, UINT64_MAX - 1, &frame));
    EXPECT(WH_STATUS_OK, wh_run_until(kernel, WH_NEVER, &step));
    free(memory);

    // Too few frames: told, and the kernel can still be asked.
    config.packets = 8;
    kernel = new_kernel(&config, &memory);
    flow = good_flow();
    EXPECT(WH_STATUS_OK, wh_add_flow(kernel, &flow, &id));
    EXPECT(WH_STATUS_OUT_OF_PACKETS, wh_run_until(kernel, WH_NEVER, &step));
    EXPECT(WH_STATUS_OUT_OF_PACKETS, wh_run_until(kernel, WH_NEVER, &step));
    EXPECT(WH_STATUS_OK, wh_now(kernel, &time));
    free(memory);
}

static void parameters(void)
{
    WhCca one = {.struct_size = sizeof one};
    EXPECT(WH_STATUS_NULL_POINTER, wh_cca_defaults(NULL, WH_CCA_KIND_HPCC));
    EXPECT(WH_STATUS_BAD_CONSTANT, wh_cca_defaults(&one, 6));
    for (uint32_t kind = 0; kind < 6; kind++) {
        EXPECT(WH_STATUS_OK, wh_cca_defaults(&one, kind));
        EXPECT(WH_STATUS_UNKNOWN_NAME, wh_cca_set(&one, "colour", 1));
        EXPECT(WH_STATUS_NULL_POINTER, wh_cca_set(&one, NULL, 1));
        EXPECT(WH_STATUS_NULL_POINTER, wh_cca_set(NULL, "window", 1));
        for (size_t i = 0; wh_cca_parameter(kind, i) != NULL; i++) {
            const WhCca before = one;
            EXPECT(WH_STATUS_BAD_PARAMETER, wh_cca_set(&one, wh_cca_parameter(kind, i), NAN));
            EXPECT(WH_STATUS_BAD_PARAMETER, wh_cca_set(&one, wh_cca_parameter(kind, i), -INFINITY));
            EXPECT(WH_STATUS_OK, wh_cca_set(&one, wh_cca_parameter(kind, i), one.values[i]));
            EXPECT(WH_STATUS_OK, memcmp(&before, &one, sizeof one) == 0 ? WH_STATUS_OK : WH_STATUS_INTERNAL);
        }
    }
    EXPECT(WH_STATUS_OK, wh_cca_parameter(6, 0) == NULL ? WH_STATUS_OK : WH_STATUS_INTERNAL);
    WhPlan plan = {.struct_size = sizeof plan};
    size_t node_count = 0, link_count = 0;
    EXPECT(WH_STATUS_BAD_CONSTANT, wh_plan_defaults(&plan, 4));
    MUST(wh_plan_defaults(&plan, WH_PLAN_KIND_FAT_TREE));
    plan.k = 3;
    EXPECT(WH_STATUS_IMPOSSIBLE_PLAN, wh_plan_size(&plan, &node_count, &link_count));
    plan.k = UINT32_MAX - 1;
    EXPECT(WH_STATUS_IMPOSSIBLE_PLAN, wh_plan_size(&plan, &node_count, &link_count));
    plan.k = 4;
    EXPECT(WH_STATUS_NULL_POINTER, wh_plan_size(&plan, NULL, &link_count));
    EXPECT(WH_STATUS_BUFFER_TOO_SHORT, wh_plan_build(&plan, nodes, 3, links, 2));
    EXPECT(WH_STATUS_NULL_POINTER, wh_plan_build(&plan, NULL, 3, links, 2));
}

// A flow to its end with records; gives the kernel, whose memory the caller frees.
static WhKernel *memoised(WhConfig *config, void **memory)
{
    config->snapshot_words = 1 << 18;
    config->memo_words = 1 << 14;
    WhKernel *kernel = new_kernel(config, memory);
    WhAcceleration how = {.struct_size = sizeof how};
    MUST(wh_acceleration_defaults(&how, WH_TIER_EXACT));
    MUST(wh_accelerate(kernel, &how));
    WhMemoisation memoisation = {.struct_size = sizeof memoisation, .precision = WH_PRECISION_QUANTISED};
    EXPECT(WH_STATUS_BAD_CONSTANT, wh_memoise(kernel, &memoisation));
    memoisation.precision = WH_PRECISION_EXACT;
    MUST(wh_memoise(kernel, &memoisation));
    return kernel;
}

static void run_flow(WhKernel *kernel)
{
    WhFlow flow = good_flow();
    uint32_t id = 0, step = 0;
    uint64_t now = 0;
    MUST(wh_now(kernel, &now));
    flow.start_ps = now;
    flow.bytes = 1000000;
    MUST(wh_add_flow(kernel, &flow, &id));
    MUST(wh_run_until(kernel, WH_NEVER, &step));
    WhCompletion done = {.struct_size = sizeof done};
    MUST(wh_poll_completion(kernel, &done));
}

static void memos(void)
{
    WhConfig config = good_config();
    void *memory = NULL, *other_memory = NULL;
    MUST(wh_cca_defaults(&cca, WH_CCA_KIND_FIXED));
    WhKernel *kernel = memoised(&config, &memory);
    run_flow(kernel);
    size_t bytes = 0, records = 0;
    EXPECT(WH_STATUS_BUFFER_TOO_SHORT, wh_memo_export(kernel, NULL, 0, &bytes));
    uint8_t *memo = malloc(bytes);
    EXPECT(WH_STATUS_NULL_POINTER, wh_memo_export(kernel, memo, bytes, NULL));
    EXPECT(WH_STATUS_NULL_POINTER, wh_memo_export(kernel, NULL, bytes, &bytes));
    EXPECT(WH_STATUS_BUFFER_TOO_SHORT, wh_memo_export(kernel, memo, bytes - 1, &bytes));
    EXPECT(WH_STATUS_OK, wh_memo_export(kernel, memo, bytes, &bytes));
    EXPECT(WH_STATUS_OK, wh_memo_import(kernel, memo, bytes, &records));
    EXPECT(WH_STATUS_OK, records > 0 ? WH_STATUS_OK : WH_STATUS_INTERNAL);
    EXPECT(WH_STATUS_NOT_A_MEMO, wh_memo_import(kernel, (const uint8_t *)"no memo", 7, &records));
    EXPECT(WH_STATUS_NULL_POINTER, wh_memo_import(kernel, NULL, 7, &records));
    EXPECT(WH_STATUS_MEMO_DAMAGED, wh_memo_import(kernel, memo, 0, &records));
    // Every damaged byte and every length is found out, or does not matter; nothing is taken for what it is not.
    for (size_t at = 0; at < bytes; at++) {
        memo[at] ^= 0x40;
        WhStatus status = wh_memo_import(kernel, memo, bytes, &records);
        EXPECT(at < 8 ? WH_STATUS_NOT_A_MEMO : WH_STATUS_MEMO_DAMAGED, status);
        memo[at] ^= 0x40;
    }
    for (size_t length = 1; length < bytes; length++) {
        WhStatus status = wh_memo_import(kernel, memo, length, &records);
        // At the end of a record it is a whole file.
        EXPECT(WH_STATUS_OK, status == WH_STATUS_OK || status == WH_STATUS_MEMO_DAMAGED ? WH_STATUS_OK : status);
    }
    run_flow(kernel);
    WhMemoised told = {.struct_size = sizeof told};
    EXPECT(WH_STATUS_OK, wh_memoised(kernel, &told));
    EXPECT(WH_STATUS_OK, told.hits > 0 ? WH_STATUS_OK : WH_STATUS_INTERNAL);
    MUST(wh_cca_defaults(&cca, WH_CCA_KIND_SWIFT));
    WhKernel *other = memoised(&config, &other_memory);
    EXPECT(WH_STATUS_MEMO_OF_OTHERS, wh_memo_import(other, memo, bytes, &records));
    free(memo);
    free(other_memory);
    free(memory);
}

static uint64_t state = 1;

static uint64_t random_below(uint64_t end)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % end;
}

// A number that is likely to be at some edge.
static uint64_t odd_number(void)
{
    static const uint64_t numbers[] = {0, 1, 2, 3, 7, 8, 255, 256, 1000, 65535, 65536, 1000000, 1000000000000,
                                       UINT32_MAX, INT64_MAX, UINT64_MAX - 1, UINT64_MAX};
    return numbers[random_below(sizeof numbers / sizeof *numbers)];
}

// Random values in all that is not a pointer; sound enough now and then for something to run.
static void random_use(void)
{
    WhConfig config = good_config();
    uint8_t *fields = (uint8_t *)&config;
    for (int i = 0; i < 3; i++) {
        const size_t at = offsetof(WhConfig, queued_flows) + 8 * random_below(12);
        const uint64_t value = odd_number();
        if (at + 8 <= sizeof config && random_below(2)) {
            memcpy(fields + at, &value, 8);
        }
    }
    MUST(wh_cca_defaults(&cca, (uint32_t)random_below(6)));
    for (int i = 0; i < 2; i++) {
        cca.values[random_below(8)] *= (double)(1 + random_below(3));
    }
    for (int i = 0; i < 2; i++) {
        links[i].rate_bps = random_below(4) ? 100000000000 : 1 + odd_number() % 1000000000000000;
        links[i].delay_ps = random_below(4) ? 1000000 : odd_number() % 1000000000000000;
        links[i].loss = random_below(4) ? 0 : odd_number();
    }
    config.profile = (uint32_t)random_below(2);
    config.routing = (uint32_t)random_below(2);
    size_t bytes = 0;
    if (wh_sizeof(&config, &bytes) != WH_STATUS_OK || bytes > 100000000) {
        return;
    }
    void *memory = malloc(bytes);
    WhKernel *kernel = NULL;
    WhStatus status = wh_init(memory, bytes, &config, &kernel);
    EXPECT(WH_STATUS_OK, status);
    WhAcceleration how = {.struct_size = sizeof how};
    MUST(wh_acceleration_defaults(&how, (uint32_t)random_below(3)));
    for (int i = 0; i < 60 && status == WH_STATUS_OK; i++) {
        uint32_t id = 0, step = 0;
        uint64_t now = 0;
        MUST(wh_now(kernel, &now));
        const uint64_t at = random_below(2) ? now + random_below(10000000) : odd_number();
        WhFlow flow = good_flow();
        flow.src = (uint32_t)random_below(4);
        flow.dst = (uint32_t)random_below(4);
        flow.bytes = random_below(2) ? random_below(100000) : odd_number();
        flow.start_ps = at;
        flow.base_rtt_ps = random_below(2) ? 0 : odd_number();
        flow.bdp_bytes = random_below(2) ? 0 : odd_number();
        WhFrame frame = good_frame();
        frame.src = (uint32_t)random_below(3);
        frame.dst = (uint32_t)random_below(3);
        frame.bytes = (uint32_t)odd_number();
        frame.priority = (uint8_t)random_below(10);
        WhCompletion done = {.struct_size = sizeof done};
        WhStatus results[] = {
            wh_accelerate(kernel, &how),
            wh_add_flow(kernel, &flow, &id),
            wh_inject(kernel, at, &frame),
            wh_set_link(kernel, at, (uint32_t)random_below(3), (uint32_t)random_below(3)),
            wh_run_bounded(kernel, random_below(2) ? now + 10000000 : odd_number(), 1 + random_below(5000), &step),
            wh_poll_completion(kernel, &done),
            wh_poll_egress(kernel, &frame),
        };
        for (size_t r = 0; r < sizeof results / sizeof *results; r++) {
            calls++;
            if (results[r] == WH_STATUS_INTERNAL) {
                printf("seed state %" PRIu64 ": call %zu has a defect\n", state, r);
                failures++;
                status = WH_STATUS_INTERNAL;
            }
        }
    }
    free(memory);
}

int main(void)
{
    handles();
    configs();
    commands();
    parameters();
    memos();
    for (int round = 0; round < 300; round++) {
        random_use();
    }
    if (wh_status_text(-1) == NULL || wh_status_text(INT32_MAX) == NULL) {
        failures++;
    }
    printf("%d calls, %d wrong\n", calls, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
