// The kernel keeps time: it runs until flows end, and the host only says what follows. Here 16 hosts of a fat-tree
// pass messages around a ring, a step after the other. Acceleration skips what repeats, and a memo keeps what was
// simulated: a second kernel, which gets the memo bytes of the first, looks most of it up.
//
// Prints the end of each step in picoseconds; then, for each kernel, the end of the last one, bytes sent by port 0,
// and whether anything came from records.

#include <inttypes.h>

#include "must.h"

#define STEPS 4
#define BYTES 400000

// Adds the flows of a step: every host sends to the next one.
static void add_step(WhKernel *kernel, uint32_t hosts, uint64_t start_ps)
{
    for (uint32_t host = 0; host < hosts; host++) {
        WhFlow flow = {.struct_size = sizeof flow};
        MUST(wh_flow_defaults(&flow));
        flow.src = host;
        flow.dst = (host + 1) % hosts;
        flow.src_port = (uint16_t)(10000 + host);
        flow.bytes = BYTES;
        flow.start_ps = start_ps;
        uint32_t id = 0;
        MUST(wh_add_flow(kernel, &flow, &id));
    }
}

// Runs all steps; gives the end of the last one.
static uint64_t run(WhKernel *kernel, uint32_t hosts, int tells)
{
    uint64_t now = 0;
    for (int step = 0; step < STEPS; step++) {
        add_step(kernel, hosts, now);
        for (uint32_t finished = 0; finished < hosts;) {
            uint32_t why = 0;
            MUST(wh_run_to_completion(kernel, WH_NEVER, UINT64_MAX, &why));
            WhCompletion done = {.struct_size = sizeof done};
            while (wh_poll_completion(kernel, &done) == WH_STATUS_OK) {
                finished++;
            }
            if (why != WH_STEP_COMPLETED && finished < hosts) {
                fprintf(stderr, "the run returned with step %" PRIu32 "\n", why);
                exit(EXIT_FAILURE);
            }
        }
        MUST(wh_now(kernel, &now));
        if (tells) {
            printf("step %d %" PRIu64 "\n", step, now);
        }
    }
    return now;
}

static void summary(WhKernel *kernel, uint64_t end)
{
    MUST(wh_wake_all(kernel));
    WhPortStats port = {.struct_size = sizeof port};
    MUST(wh_port_stats(kernel, 0, &port));
    WhMemoised memoised = {.struct_size = sizeof memoised};
    MUST(wh_memoised(kernel, &memoised));
    printf("end %" PRIu64 " sent %" PRIu64 " hits %s\n", end, port.bytes, memoised.hits > 0 ? "some" : "none");
}

static void memoise(WhKernel *kernel)
{
    WhAcceleration how = {.struct_size = sizeof how};
    MUST(wh_acceleration_defaults(&how, WH_TIER_EXACT));
    MUST(wh_accelerate(kernel, &how));
    WhMemoisation memoisation = {.struct_size = sizeof memoisation, .precision = WH_PRECISION_EXACT};
    MUST(wh_memoise(kernel, &memoisation));
}

int main(void)
{
    WhPlan plan = {.struct_size = sizeof plan};
    MUST(wh_plan_defaults(&plan, WH_PLAN_KIND_FAT_TREE));
    WhConfig config = {.struct_size = sizeof config};
    MUST(wh_config_defaults(&config, WH_PROFILE_PS));
    MUST(wh_plan_size(&plan, &config.node_count, &config.link_count));
    uint8_t *nodes = calloc(config.node_count, sizeof *nodes);
    WhLink *links = calloc(config.link_count, sizeof *links);
    MUST(wh_plan_build(&plan, nodes, config.node_count, links, config.link_count));
    const uint32_t hosts = plan.k * plan.k * plan.k / 4;

    WhCca cca = {.struct_size = sizeof cca};
    MUST(wh_cca_defaults(&cca, WH_CCA_KIND_FIXED));
    config.nodes = nodes;
    config.links = links;
    config.ccas = &cca;
    config.cca_count = 1;
    config.snapshot_words = 1 << 22;
    config.memo_words = 1 << 20;

    void *memory = NULL;
    WhKernel *kernel = new_kernel(&config, &memory);
    memoise(kernel);
    summary(kernel, run(kernel, hosts, 1));

    // What the first one has learnt, as the bytes of a memo file.
    size_t bytes = 0;
    if (wh_memo_export(kernel, NULL, 0, &bytes) != WH_STATUS_BUFFER_TOO_SHORT) {
        return EXIT_FAILURE;
    }
    uint8_t *memo = malloc(bytes);
    MUST(wh_memo_export(kernel, memo, bytes, &bytes));

    void *second_memory = NULL;
    WhKernel *second = new_kernel(&config, &second_memory);
    memoise(second);
    size_t records = 0;
    MUST(wh_memo_import(second, memo, bytes, &records));
    if (records == 0) {
        fprintf(stderr, "no record in %zu bytes\n", bytes);
        return EXIT_FAILURE;
    }
    summary(second, run(second, hosts, 0));

    free(memo);
    free(second_memory);
    free(memory);
    free(links);
    free(nodes);
    return EXIT_SUCCESS;
}
