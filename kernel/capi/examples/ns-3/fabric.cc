// Four hosts on a switch: UDP from host 0 to host 1, TCP from host 2 to host 3. With `--fabric=own` the links are
// ns-3's point-to-point channels and the switch is a node that routes; with `--fabric=wormhole` all of it is one
// WormholeChannel.
//
// Prints a line for each reception of an application: which one, when (in ns), how many bytes. Then the bytes of
// each.

#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include "wormhole-channel.h"

using namespace ns3;

namespace
{

constexpr std::uint32_t HOSTS = 4;
// A byte takes 8 ns: all times are whole nanoseconds.
constexpr std::uint64_t RATE_BPS = 1'000'000'000;
constexpr std::uint64_t DELAY_NS = 5'000;
constexpr std::uint16_t PORT = 9;

Ipv4Address
AddressOf(std::uint32_t host, std::uint8_t end)
{
    return Ipv4Address((10u << 24) + (host << 8) + end);
}

void
SetAddress(Ptr<NetDevice> device, Ipv4Address address, const char* mask)
{
    const auto ipv4 = device->GetNode()->GetObject<Ipv4>();
    const std::uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, Ipv4InterfaceAddress(address, mask));
    ipv4->SetUp(interface);
}

// A link of ns-3's from each host to a node that routes.
void
BuildOwn(const NodeContainer& hosts)
{
    NodeContainer router(1);
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.Install(router);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(RATE_BPS)));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(DELAY_NS)));
    for (std::uint32_t host = 0; host < HOSTS; host++)
    {
        const NetDeviceContainer ends = link.Install(hosts.Get(host), router.Get(0));
        SetAddress(ends.Get(0), AddressOf(host, 1), "255.255.255.0");
        SetAddress(ends.Get(1), AddressOf(host, 2), "255.255.255.0");
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
}

// The same fabric in the kernel.
Ptr<WormholeChannel>
BuildWormhole(const NodeContainer& hosts)
{
    std::vector<std::uint8_t> nodes(HOSTS, WH_NODE_KIND_HOST);
    nodes.push_back(WH_NODE_KIND_SWITCH);
    std::vector<WhLink> links;
    for (std::uint32_t host = 0; host < HOSTS; host++)
    {
        links.push_back({host, HOSTS, RATE_BPS, DELAY_NS * 1000, 0});
    }
    const auto channel = CreateObject<WormholeChannel>();
    channel->Build(nodes, links);
    for (std::uint32_t host = 0; host < HOSTS; host++)
    {
        const auto device = CreateObject<WormholeNetDevice>();
        hosts.Get(host)->AddDevice(device);
        channel->Attach(device, host, AddressOf(host, 1));
        SetAddress(device, AddressOf(host, 1), "255.255.0.0");
    }
    return channel;
}

void
Received(std::string name, Ptr<const Packet> packet, const Address&)
{
    std::cout << name << " " << Simulator::Now().GetNanoSeconds() << " " << packet->GetSize() << "\n";
}

Ptr<PacketSink>
Sink(const std::string& name, const std::string& factory, Ptr<Node> host)
{
    PacketSinkHelper helper(factory, InetSocketAddress(Ipv4Address::GetAny(), PORT));
    const auto sink = DynamicCast<PacketSink>(helper.Install(host).Get(0));
    sink->TraceConnectWithoutContext("Rx", MakeBoundCallback(&Received, name));
    return sink;
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string fabric = "wormhole";
    CommandLine command;
    command.AddValue("fabric", "own: ns-3's channels; wormhole: the Wormhole kernel", fabric);
    command.Parse(argc, argv);
    NS_ABORT_MSG_IF(fabric != "own" && fabric != "wormhole", "no such fabric: " << fabric);

    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    NodeContainer hosts(HOSTS);
    InternetStackHelper internet;
    // Its solicitations would share the links.
    internet.SetIpv6StackInstall(false);
    internet.Install(hosts);
    Ptr<WormholeChannel> channel;
    if (fabric == "own")
    {
        BuildOwn(hosts);
    }
    else
    {
        channel = BuildWormhole(hosts);
    }

    const auto udp = Sink("udp", "ns3::UdpSocketFactory", hosts.Get(1));
    OnOffHelper onOff("ns3::UdpSocketFactory", InetSocketAddress(AddressOf(1, 1), PORT));
    onOff.SetConstantRate(DataRate("200Mb/s"), 1000);
    onOff.SetAttribute("MaxBytes", UintegerValue(200'000));
    onOff.Install(hosts.Get(0)).Start(MicroSeconds(10));

    const auto tcp = Sink("tcp", "ns3::TcpSocketFactory", hosts.Get(3));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(AddressOf(3, 1), PORT));
    bulk.SetAttribute("MaxBytes", UintegerValue(2'000'000));
    bulk.Install(hosts.Get(2)).Start(MicroSeconds(20));

    Simulator::Stop(Seconds(1));
    Simulator::Run();
    std::cout << "udp total " << udp->GetTotalRx() << "\ntcp total " << tcp->GetTotalRx() << "\n";
    if (channel)
    {
        channel->Dispose();
    }
    Simulator::Destroy();
    return 0;
}
