// The interface in C++: memory that frees itself, errors as exceptions, outputs as values. Here ten hosts of a leaf-
// spine fabric send to one under DCQCN, while a link of a spine fails and comes back.
//
// Prints the token and the completion time of each flow in picoseconds, then frames lost and flows given up.

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "wormhole.h"

namespace {

void must(WhStatus status)
{
    if (status != WH_STATUS_OK) {
        throw std::runtime_error(wh_status_text(status));
    }
}

// A value-initialised struct that knows its size.
template <typename T>
T sized()
{
    T value{};
    value.struct_size = sizeof(T);
    return value;
}

struct Fabric {
    std::vector<std::uint8_t> nodes;
    std::vector<WhLink> links;

    explicit Fabric(const WhPlan &plan)
    {
        std::size_t node_count = 0, link_count = 0;
        must(wh_plan_size(&plan, &node_count, &link_count));
        nodes.resize(node_count);
        links.resize(link_count);
        must(wh_plan_build(&plan, nodes.data(), node_count, links.data(), link_count));
    }
};

// A kernel and its memory. It may be moved: the memory stays where it is.
class Kernel {
public:
    Kernel(const Fabric &fabric, const std::vector<WhCca> &ccas, WhConfig config)
    {
        config.nodes = fabric.nodes.data();
        config.node_count = fabric.nodes.size();
        config.links = fabric.links.data();
        config.link_count = fabric.links.size();
        config.ccas = ccas.data();
        config.cca_count = ccas.size();
        config.flags |= WH_MEMORY_IS_ZERO;
        std::size_t bytes = 0;
        must(wh_sizeof(&config, &bytes));
        memory.reset(std::calloc(1, bytes));
        if (!memory) {
            throw std::bad_alloc();
        }
        must(wh_init(memory.get(), bytes, &config, &kernel));
    }

    void add_flow(const WhFlow &flow)
    {
        std::uint32_t id = 0;
        must(wh_add_flow(kernel, &flow, &id));
    }

    void set_link(std::uint64_t at_ps, std::uint32_t link, bool up) { must(wh_set_link(kernel, at_ps, link, up)); }

    WhStep run_until(std::uint64_t limit_ps)
    {
        std::uint32_t step = 0;
        must(wh_run_until(kernel, limit_ps, &step));
        return static_cast<WhStep>(step);
    }

    std::optional<WhCompletion> poll_completion()
    {
        auto done = sized<WhCompletion>();
        const WhStatus status = wh_poll_completion(kernel, &done);
        if (status == WH_STATUS_EMPTY) {
            return std::nullopt;
        }
        must(status);
        return done;
    }

    WhTotals totals() const
    {
        auto totals = sized<WhTotals>();
        must(wh_totals(kernel, &totals));
        return totals;
    }

private:
    struct Free {
        void operator()(void *memory) const { std::free(memory); }
    };
    std::unique_ptr<void, Free> memory;
    WhKernel *kernel = nullptr;
};

}  // namespace

int main()
try {
    auto plan = sized<WhPlan>();
    must(wh_plan_defaults(&plan, WH_PLAN_KIND_CLOS));
    plan.leaves = 3;
    plan.hosts_per_leaf = 4;
    plan.spines = 2;
    const Fabric fabric(plan);

    auto cca = sized<WhCca>();
    must(wh_cca_defaults(&cca, WH_CCA_KIND_DCQCN));
    must(wh_cca_set(&cca, "additive_bps", 100e6));
    auto config = sized<WhConfig>();
    must(wh_config_defaults(&config, WH_PROFILE_PS));

    Kernel kernel(fabric, {cca}, config);
    for (std::uint32_t src = 1; src <= 10; src++) {
        auto flow = sized<WhFlow>();
        must(wh_flow_defaults(&flow));
        flow.src = src;
        flow.dst = 0;
        flow.src_port = static_cast<std::uint16_t>(10000 + src);
        flow.bytes = 200000;
        flow.token = src;
        kernel.add_flow(flow);
    }
    // Links of hosts come first, then those of leaf 0: this is the one to spine 0.
    const std::uint32_t link = 12;
    kernel.set_link(20'000'000, link, false);
    kernel.set_link(500'000'000, link, true);

    WhStep step;
    do {
        step = kernel.run_until(WH_NEVER);
        while (const auto done = kernel.poll_completion()) {
            std::printf("%" PRIu64 " %" PRIu64 "\n", done->token, done->fct_ps);
        }
    } while (step == WH_STEP_OUTPUT_FULL);
    const WhTotals totals = kernel.totals();
    std::printf("lost %" PRIu64 " given up %" PRIu64 "\n", totals.drops, totals.flows_given_up);
    return EXIT_SUCCESS;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
}
