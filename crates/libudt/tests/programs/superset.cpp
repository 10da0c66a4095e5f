// What Farhaul's libudt has beyond Debian's: CUDTCC to derive from, the methods of CPacket, lengths as socklen_t, and bind with a
// descriptor.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include <ccc.h>
#include <packet.h>
#include <udt.h>

#include "loopback.h"

namespace {

const int BYTES = 4000000;
std::atomic<int> acks{0}, heard{0};

// UDT's own control, which also counts and talks.
class Derived : public CUDTCC {
public:
    void init() override {
        CUDTCC::init();
        int32_t type = 7;
        uint32_t words[] = {0xABCD1234, 5};
        CPacket packet;
        packet.pack(0x7FFF, &type, words, sizeof words);
        sendCustomMsg(packet);
    }

    void onACK(int32_t ack) override {
        CUDTCC::onACK(ack);
        ++acks;
    }

    void processCustomMsg(const CPacket* packet) override {
        const std::unique_ptr<CPacket> copy(packet->clone());
        const std::unique_ptr<char[]> body(copy->m_pcData);
        const bool same = memcmp(body.get(), packet->m_pcData, static_cast<size_t>(packet->getLength())) == 0;
        const uint32_t* const words = reinterpret_cast<const uint32_t*>(copy->m_pcData);
        heard += same && copy->getFlag() == 1 && copy->getType() == 0x7FFF && copy->getExtendedType() == 7 &&
                 copy->getLength() == 8 && words[0] == 0xABCD1234 && words[1] == 5;
    }
};

}  // namespace

int main() {
    UDT::startup();
    const int descriptor = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in address = loopback(0);
    ::bind(descriptor, raw(address), sizeof address);
    const UDTSOCKET listener = UDT::socket(AF_INET, SOCK_STREAM, 0);
    CCCFactory<Derived> factory;
    UDT::setsockopt(listener, 0, UDT_CC, &factory, sizeof factory);
    const int bound = UDT::bind(listener, descriptor);
    std::printf("bind %d, listen %d\n", bound, UDT::listen(listener, 3));
    socklen_t length = sizeof address;
    UDT::getsockname(listener, raw(address), &length);
    const UDTSOCKET caller = UDT::socket(AF_INET, SOCK_STREAM, 0);
    UDT::setsockopt(caller, 0, UDT_CC, &factory, sizeof factory);
    std::printf("connect %d\n", UDT::connect(caller, raw(address), sizeof address));
    const UDTSOCKET accepted = UDT::accept(listener, raw(address), &length);
    std::thread sending([caller] {
        const std::vector<char> data(BYTES, 'y');
        for (int sent = 0, taken; sent < BYTES; sent += taken) {
            taken = UDT::send(caller, data.data() + sent, BYTES - sent, 0);
            if (taken == UDT::ERROR) {
                std::printf("send: %s\n", UDT::getlasterror_desc());
                break;
            }
        }
        UDT::close(caller);
    });
    std::vector<char> data(100000);
    long long total = 0;
    for (int got; (got = UDT::recv(accepted, data.data(), static_cast<int>(data.size()), 0)) > 0;) {
        total += got;
    }
    sending.join();
    std::printf("received %lld bytes, acknowledgements %s, messages %d\n", total, acks > 3 ? "yes" : "no", heard.load());
    UDT::close(accepted);
    UDT::close(listener);
    UDT::cleanup();
    return 0;
}
