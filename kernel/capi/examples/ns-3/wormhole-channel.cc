// See the header. The channel is a host that keeps time: the kernel runs only up to the present of ns-3.

#include "wormhole-channel.h"

#include <cstdlib>

#include "ns3/internet-module.h"

using namespace ns3;

namespace
{

// What ns-3's point-to-point devices put before a packet.
constexpr std::uint32_t PPP_BYTES = 2;
constexpr std::uint64_t PS_PER_NS = 1000;
constexpr std::uint8_t PRIORITY = 3;

void
Must(WhStatus status)
{
    NS_ABORT_MSG_IF(status != WH_STATUS_OK, "wormhole: " << wh_status_text(status));
}

std::uint64_t
NowPs()
{
    return static_cast<std::uint64_t>(Simulator::Now().GetNanoSeconds()) * PS_PER_NS;
}

} // namespace

NS_OBJECT_ENSURE_REGISTERED(WormholeChannel);
NS_OBJECT_ENSURE_REGISTERED(WormholeNetDevice);

TypeId
WormholeChannel::GetTypeId()
{
    static const TypeId tid = TypeId("WormholeChannel").SetParent<Channel>().AddConstructor<WormholeChannel>();
    return tid;
}

void
WormholeChannel::Free::operator()(void* memory) const
{
    std::free(memory);
}

void
WormholeChannel::Build(const std::vector<std::uint8_t>& nodes, const std::vector<WhLink>& links)
{
    // ns-3's flows have their own congestion control; the kernel wants to have one all the same.
    WhCca cca{};
    cca.struct_size = sizeof cca;
    Must(wh_cca_defaults(&cca, WH_CCA_KIND_FIXED));
    WhConfig config{};
    config.struct_size = sizeof config;
    Must(wh_config_defaults(&config, WH_PROFILE_PS));
    config.flags = WH_MEMORY_IS_ZERO;
    config.nodes = nodes.data();
    config.node_count = nodes.size();
    config.links = links.data();
    config.link_count = links.size();
    config.ccas = &cca;
    config.cca_count = 1;
    // Many packets may be sent in one instant.
    config.inputs = 4096;
    std::size_t bytes = 0;
    Must(wh_sizeof(&config, &bytes));
    m_memory.reset(std::calloc(1, bytes));
    NS_ABORT_MSG_IF(!m_memory, "no memory for the kernel");
    Must(wh_init(m_memory.get(), bytes, &config, &m_kernel));
}

void
WormholeChannel::Attach(Ptr<WormholeNetDevice> device, std::uint32_t host, Ipv4Address address)
{
    device->SetChannel(this, host);
    m_devices.push_back(device);
    m_byHost[host] = device;
    m_hosts[address] = host;
}

bool
WormholeChannel::Inject(std::uint32_t src, Ipv4Address dst, Ptr<Packet> packet, std::uint16_t protocol)
{
    const auto host = m_hosts.find(dst);
    if (host == m_hosts.end())
    {
        return false;
    }
    if (m_freeTokens.empty())
    {
        m_freeTokens.push_back(m_inFlight.size());
        m_inFlight.emplace_back();
    }
    const std::uint64_t token = m_freeTokens.back();
    WhFrame frame{};
    frame.struct_size = sizeof frame;
    frame.src = src;
    frame.dst = host->second;
    frame.bytes = packet->GetSize() + PPP_BYTES;
    frame.priority = PRIORITY;
    frame.token = token;
    if (wh_inject(m_kernel, NowPs(), &frame) != WH_STATUS_OK)
    {
        return false;
    }
    m_freeTokens.pop_back();
    m_inFlight[token] = {packet, protocol};
    Arm();
    return true;
}

// Sets the one wake-up to the time of the kernel's next event.
void
WormholeChannel::Arm()
{
    std::uint64_t next = WH_NEVER;
    Must(wh_next_event_time(m_kernel, &next));
    if (next == WH_NEVER)
    {
        m_wake.Cancel();
        return;
    }
    // Rounded up: at a whole nanosecond before it nothing would be due.
    const Time at = NanoSeconds((next + PS_PER_NS - 1) / PS_PER_NS);
    if (m_wake.IsRunning() && TimeStep(m_wake.GetTs()) == at)
    {
        return;
    }
    m_wake.Cancel();
    m_wake = Simulator::Schedule(at - Simulator::Now(), &WormholeChannel::Wake, this);
}

void
WormholeChannel::Wake()
{
    std::uint32_t step = WH_STEP_REACHED;
    do
    {
        Must(wh_run_until(m_kernel, NowPs(), &step));
        Deliver();
    } while (step == WH_STEP_OUTPUT_FULL);
    Arm();
}

void
WormholeChannel::Deliver()
{
    WhFrame frame{};
    frame.struct_size = sizeof frame;
    while (wh_poll_egress(m_kernel, &frame) == WH_STATUS_OK)
    {
        const InFlight arrived = m_inFlight[frame.token];
        m_inFlight[frame.token] = {};
        m_freeTokens.push_back(frame.token);
        const auto from = m_byHost.find(frame.src);
        const auto to = m_byHost.find(frame.dst);
        if (from != m_byHost.end() && to != m_byHost.end())
        {
            // May send in turn: the kernel is not running now.
            to->second->Receive(arrived.packet, arrived.protocol, from->second->GetAddress());
        }
    }
}

std::size_t
WormholeChannel::GetNDevices() const
{
    return m_devices.size();
}

Ptr<NetDevice>
WormholeChannel::GetDevice(std::size_t i) const
{
    return m_devices.at(i);
}

void
WormholeChannel::DoDispose()
{
    m_wake.Cancel();
    m_devices.clear();
    m_byHost.clear();
    m_inFlight.clear();
    Channel::DoDispose();
}

TypeId
WormholeNetDevice::GetTypeId()
{
    static const TypeId tid = TypeId("WormholeNetDevice").SetParent<NetDevice>().AddConstructor<WormholeNetDevice>();
    return tid;
}

void
WormholeNetDevice::SetChannel(Ptr<WormholeChannel> channel, std::uint32_t host)
{
    m_channel = channel;
    m_host = host;
}

void
WormholeNetDevice::Receive(Ptr<Packet> packet, std::uint16_t protocol, Address from)
{
    m_receive(this, packet, protocol, from);
}

bool
WormholeNetDevice::Send(Ptr<Packet> packet, const Address&, std::uint16_t protocol)
{
    if (protocol != Ipv4L3Protocol::PROT_NUMBER)
    {
        return false;
    }
    Ipv4Header header;
    packet->PeekHeader(header);
    return m_channel->Inject(m_host, header.GetDestination(), packet, protocol);
}

bool
WormholeNetDevice::SendFrom(Ptr<Packet>, const Address&, const Address&, std::uint16_t)
{
    return false;
}

void
WormholeNetDevice::DoDispose()
{
    m_channel = nullptr;
    m_node = nullptr;
    m_receive.Nullify();
    NetDevice::DoDispose();
}

// What is left answers ns-3's questions.

void
WormholeNetDevice::SetIfIndex(std::uint32_t index)
{
    m_index = index;
}

std::uint32_t
WormholeNetDevice::GetIfIndex() const
{
    return m_index;
}

Ptr<Channel>
WormholeNetDevice::GetChannel() const
{
    return m_channel;
}

void
WormholeNetDevice::SetAddress(Address address)
{
    m_address = Mac48Address::ConvertFrom(address);
}

Address
WormholeNetDevice::GetAddress() const
{
    return m_address;
}

bool
WormholeNetDevice::SetMtu(std::uint16_t mtu)
{
    m_mtu = mtu;
    return true;
}

std::uint16_t
WormholeNetDevice::GetMtu() const
{
    return m_mtu;
}

bool
WormholeNetDevice::IsLinkUp() const
{
    return true;
}

void
WormholeNetDevice::AddLinkChangeCallback(Callback<void>)
{
    // Links of hosts stay up.
}

bool
WormholeNetDevice::IsBroadcast() const
{
    return true;
}

Address
WormholeNetDevice::GetBroadcast() const
{
    return Mac48Address::GetBroadcast();
}

bool
WormholeNetDevice::IsMulticast() const
{
    return false;
}

Address
WormholeNetDevice::GetMulticast(Ipv4Address group) const
{
    return Mac48Address::GetMulticast(group);
}

Address
WormholeNetDevice::GetMulticast(Ipv6Address group) const
{
    return Mac48Address::GetMulticast(group);
}

bool
WormholeNetDevice::IsBridge() const
{
    return false;
}

bool
WormholeNetDevice::IsPointToPoint() const
{
    return false;
}

Ptr<Node>
WormholeNetDevice::GetNode() const
{
    return m_node;
}

void
WormholeNetDevice::SetNode(Ptr<Node> node)
{
    m_node = node;
}

bool
WormholeNetDevice::NeedsArp() const
{
    return false;
}

void
WormholeNetDevice::SetReceiveCallback(ReceiveCallback callback)
{
    m_receive = callback;
}

void
WormholeNetDevice::SetPromiscReceiveCallback(PromiscReceiveCallback)
{
    // Nothing here is promiscuous.
}

bool
WormholeNetDevice::SupportsSendFrom() const
{
    return false;
}
