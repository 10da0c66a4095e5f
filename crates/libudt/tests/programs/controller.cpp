// A congestion controller of the program on both ends of a lossy path. Prints which callbacks it got, and what they saw. Run with
// two libraries, it compares them. With the argument "nested", the callbacks call the library, which must refuse.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include <udt/ccc.h>
#include <udt/udt.h>

#include "loopback.h"

namespace {

const int BYTES = 6000000;
const int LARGE = 200;
const int USER_TYPE = 42;
const uint32_t RANGE = 0x80000000;

bool nested = false;

// What the objects of one side saw.
struct Seen {
    std::atomic<int> init{0}, close{0}, ack{0}, loss{0}, timeout{0}, sent{0}, received{0}, custom{0}, refused{0};
    std::atomic<int> bad_lists{0}, bad_bodies{0}, repeated_acks{0}, bad_packets{0};
    std::atomic<int> rtt{0}, mss{0}, syn{0}, bandwidth{0}, received_rate{0}, bad_numbers{0}, perf_sent{0}, perf_acks{0}, param{0};
    std::atomic<double> max_window{0};
} caller, callee;

// Additive increase, multiplicative decrease.
class Aimd : public CCC {
public:
    explicit Aimd(Seen& seen) : seen_(seen) {}

    void init() override {
        ++seen_.init;
        m_dCWndSize = 64;
        m_dPktSndPeriod = 20;
        setACKTimer(5000);
        setACKInterval(4);
        setRTO(300000);
        setUserParam("param", 6);
        seen_.param = m_iPSize == 6 && strcmp(m_pcParam, "param") == 0;
        seen_.mss = m_iMSS;
        seen_.syn = m_iSYNInterval;
        seen_.max_window = m_dMaxCWndSize;
        say(1);
    }

    void close() override { ++seen_.close; }

    void onACK(int32_t ack) override {
        ++seen_.ack;
        seen_.repeated_acks += ack == last_ack_;
        last_ack_ = ack;
        m_dCWndSize += 4 / m_dCWndSize;
        seen_.rtt = m_iRTT;
        seen_.bandwidth = m_iBandwidth;
        seen_.received_rate = m_iRcvRate;
        // What was acknowledged has been sent: the difference has 31 bits.
        seen_.bad_numbers += ((m_iSndCurrSeqNo - (ack - 1)) & 0x7FFFFFFF) >= 0x40000000;
        if (seen_.ack % 16 == 0) {
            const CPerfMon* const perf = getPerfInfo();
            seen_.perf_sent = static_cast<int>(perf->pktSentTotal);
            seen_.perf_acks = perf->pktRecvACKTotal;
        }
        if (seen_.ack == 10) {
            say(2);
        }
        if (nested) {
            // Any call of a socket.
            seen_.refused += UDT::send(12345, "", 1, 0) == UDT::ERROR && UDT::getlasterror_code() == CUDTException::EINVOP;
        }
    }

    void onLoss(const int32_t* list, int words) override {
        ++seen_.loss;
        for (int i = 0; i < words; ++i) {
            const uint32_t word = static_cast<uint32_t>(list[i]);
            if (word & RANGE) {
                seen_.bad_lists += i + 1 >= words || static_cast<uint32_t>(list[i + 1]) <= (word & ~RANGE);
                ++i;
            }
        }
        m_dCWndSize = m_dCWndSize * 0.875 < 16 ? 16 : m_dCWndSize * 0.875;
    }

    void onTimeout() override { ++seen_.timeout; }

    void onPktSent(const CPacket* packet) override {
        ++seen_.sent;
        seen_.bad_packets += packet->m_iSeqNo < 0 || packet->m_pcData == NULL;
    }

    void onPktReceived(const CPacket* packet) override {
        ++seen_.received;
        seen_.bad_packets += packet->m_iSeqNo < 0 || packet->m_pcData == NULL;
    }

    void processCustomMsg(const CPacket* packet) override {
        ++seen_.custom;
        const uint32_t* const words = reinterpret_cast<const uint32_t*>(packet->m_pcData);
        seen_.bad_bodies += words[0] != 0xFEEDC0DE || (words[1] != 1 && words[1] != 2);
    }

private:
    // Sends a message to the controller at the other end. Debian's library exports no method of CPacket, so a program of it
    // writes the header by the public references. The body is that of a packet that came in, or one of the program.
    void say(uint32_t number) {
        static uint32_t words[2];
        words[0] = 0xFEEDC0DE;
        words[1] = number;
        struct Raw {
            int32_t* references[4];
            char** data;
            uint32_t header[4];
            iovec vector[2];
            int32_t pad;
        } raw;
        memset(&raw, 0, sizeof raw);
        for (int i = 0; i < 4; ++i) {
            raw.references[i] = reinterpret_cast<int32_t*>(&raw.header[i]);
        }
        raw.data = reinterpret_cast<char**>(&raw.vector[1].iov_base);
        raw.header[0] = 0xFFFF0000 | USER_TYPE;
        raw.vector[0].iov_base = raw.header;
        raw.vector[0].iov_len = sizeof raw.header;
        raw.vector[1].iov_base = words;
        raw.vector[1].iov_len = sizeof words;
        static_assert(sizeof(Raw) == sizeof(CPacket), "the layout of CPacket");
        sendCustomMsg(reinterpret_cast<CPacket&>(raw));
    }

    Seen& seen_;
    int32_t last_ack_ = -1;
};

class CallerAimd : public Aimd {
public:
    CallerAimd() : Aimd(caller) {}
};

class CalleeAimd : public Aimd {
public:
    CalleeAimd() : Aimd(callee) {}
};

// Carries datagrams between a caller and a server. Every 40th large one is lost, and all while it is dark.
class Path {
public:
    explicit Path(int server) : server_(loopback(server)), front_(open()), back_(open()) {
        sockaddr_in address;
        socklen_t length = sizeof address;
        getsockname(front_, raw(address), &length);
        port = ntohs(address.sin_port);
        std::thread([this] { run(); }).detach();
    }

    int port;
    std::atomic<bool> dark{false};

private:
    static int open() {
        const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
        sockaddr_in any = loopback(0);
        ::bind(fd, raw(any), sizeof any);
        return fd;
    }

    void run() {
        sockaddr_in caller = {};
        char data[65536];
        int large = 0;
        for (;;) {
            pollfd fds[2] = {{front_, POLLIN, 0}, {back_, POLLIN, 0}};
            ::poll(fds, 2, -1);
            for (int side = 0; side < 2; ++side) {
                sockaddr_in from;
                socklen_t length = sizeof from;
                const ssize_t got = recvfrom(fds[side].fd, data, sizeof data, MSG_DONTWAIT, raw(from), &length);
                if (got < 0) continue;
                if (side == 0) caller = from;
                if (dark || (got > LARGE && ++large % 40 == 0)) continue;
                sockaddr_in& to = side == 0 ? server_ : caller;
                sendto(fds[1 - side].fd, data, static_cast<size_t>(got), 0, raw(to), sizeof to);
            }
        }
    }

    sockaddr_in server_;
    int front_, back_;
};

void print(const char* who, const Seen& seen, bool sends) {
    const auto yes = [](bool holds) { return holds ? "yes" : "no"; };
    std::printf("%s: init %d, close %d\n", who, seen.init.load(), seen.close.load());
    // libudt loses the first packets behind a handshake, so the caller may miss that of the callee.
    std::printf("%s: custom messages %d, bad %d\n", who, sends ? -1 : seen.custom.load(), seen.bad_bodies.load());
    std::printf("%s: user parameter %d, mss %d\n", who, seen.param.load(), seen.mss.load());
    std::printf("%s: bad lists %d, bad packets %d, repeated acknowledgements %d\n", who, seen.bad_lists.load(),
                seen.bad_packets.load(), seen.repeated_acks.load());
    std::printf("%s: maximum window %s, SYN interval %d\n", who, yes(seen.max_window > 1000), seen.syn.load());
    if (sends) {
        std::printf("%s: acknowledgements %s, losses %s, time-outs %s\n", who, yes(seen.ack > 30), yes(seen.loss > 10),
                    yes(seen.timeout > 0));
        std::printf("%s: sent %s, rtt %s\n", who, yes(seen.sent > BYTES / 1456), yes(seen.rtt > 0));
        std::printf("%s: bandwidth %s, rate at the receiver %s, bad numbers %d\n", who, yes(seen.bandwidth > 0),
                    yes(seen.received_rate > 0), seen.bad_numbers.load());
        std::printf("%s: perf info sent %s, acknowledgements %s\n", who, yes(seen.perf_sent > 100), yes(seen.perf_acks > 8));
    } else {
        std::printf("%s: received %s\n", who, yes(seen.received >= BYTES / 1456));
    }
}

template <typename Factory>
UDTSOCKET controlled() {
    const UDTSOCKET u = UDT::socket(AF_INET, SOCK_STREAM, 0);
    Factory factory;
    if (UDT::setsockopt(u, 0, UDT_CC, &factory, sizeof factory) == UDT::ERROR) {
        std::printf("UDT_CC: %s\n", UDT::getlasterror_desc());
    }
    return u;
}

}  // namespace

int main(int argc, char** argv) {
    nested = argc > 1 && strcmp(argv[1], "nested") == 0;
    UDT::startup();
    const UDTSOCKET listener = controlled<CCCFactory<CalleeAimd>>();
    sockaddr_in address = loopback(0);
    UDT::bind(listener, raw(address), sizeof address);
    UDT::listen(listener, 1);
    int length = sizeof address;
    UDT::getsockname(listener, raw(address), &length);
    Path path(ntohs(address.sin_port));

    const UDTSOCKET sender = controlled<CCCFactory<CallerAimd>>();
    sockaddr_in there = loopback(path.port);
    if (UDT::connect(sender, raw(there), sizeof there) == UDT::ERROR) {
        std::printf("connect: %s\n", UDT::getlasterror_desc());
        _exit(1);
    }
    const UDTSOCKET receiver = UDT::accept(listener, NULL, NULL);
    Aimd* object = NULL;
    length = sizeof object;
    const int told = UDT::getsockopt(sender, 0, UDT_CC, &object, &length);
    std::printf("getsockopt UDT_CC %d, object %s\n", told, object ? "yes" : "no");

    std::thread reading([receiver] {
        std::vector<char> data(1 << 16);
        long long total = 0;
        for (int got; total < BYTES && (got = UDT::recv(receiver, data.data(), static_cast<int>(data.size()), 0)) > 0;) {
            total += got;
        }
        std::printf("received %lld bytes\n", total);
    });
    std::vector<char> data(BYTES, 'x');
    for (int sent = 0; sent < BYTES;) {
        const int taken = UDT::send(sender, data.data() + sent, BYTES - sent < 300000 ? BYTES - sent : 300000, 0);
        if (taken == UDT::ERROR) {
            std::printf("send: %s\n", UDT::getlasterror_desc());
            _exit(1);
        }
        sent += taken;
        if (sent > BYTES / 2 && caller.timeout == 0 && !path.dark) {
            path.dark = true;
            for (int i = 0; i < 100 && caller.timeout == 0; ++i) {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
            }
            path.dark = false;
        }
    }
    reading.join();
    UDT::close(sender);
    UDT::close(receiver);
    UDT::close(listener);
    for (int i = 0; i < 100 && (caller.close == 0 || callee.close == 0); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    print("caller", caller, true);
    print("callee", callee, false);
    if (nested) {
        std::printf("calls from callbacks: %s\n", caller.refused == caller.ack ? "refused" : "not refused");
    }
    std::fflush(stdout);
    _exit(0);
}
