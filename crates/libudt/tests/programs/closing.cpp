// Closes sockets under calls of other threads, and shares an epoll between threads. Prints a line for each answer that no program of
// libudt expects, and "done" at the end. An argument sets the number of rounds.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <udt/udt.h>

#include "loopback.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// No call below needs so long once its socket is closed, on a busy machine either.
const milliseconds LONGEST(8000);
// Codes of libudt.
const int SETUP = 1000, NO_SERVER = 1001, LOST = 2001, NOT_CONNECTED = 2002, NOTHING_WATCHED = 5003, NO_SOCKET = 5004,
          NOT_LISTENING = 5006, TIMED_OUT = 6003;

std::atomic<int> faults{0};

void fault(const std::string& what) {
    ++faults;
    std::printf("%s\n", what.c_str());
}

// A socket with buffers that are soon full, and without linger.
UDTSOCKET small(int type) {
    const UDTSOCKET u = UDT::socket(AF_INET, type, 0);
    const int bytes = 100000;
    const linger none = {0, 0};
    UDT::setsockopt(u, 0, UDT_SNDBUF, &bytes, sizeof bytes);
    UDT::setsockopt(u, 0, UDT_RCVBUF, &bytes, sizeof bytes);
    UDT::setsockopt(u, 0, UDT_LINGER, &none, sizeof none);
    return u;
}

struct Listener {
    explicit Listener(int type) : type(type), socket(small(type)) {
        sockaddr_in address = loopback(0);
        UDT::bind(socket, raw(address), sizeof address);
        UDT::listen(socket, 10);
        int length = sizeof address;
        UDT::getsockname(socket, raw(address), &length);
        port = ntohs(address.sin_port);
    }
    ~Listener() { UDT::close(socket); }

    // A connection: the caller's end, then the other.
    std::pair<UDTSOCKET, UDTSOCKET> pair() const {
        const UDTSOCKET caller = small(type);
        const sockaddr_in there = loopback(port);
        if (UDT::connect(caller, raw(there), sizeof there) == UDT::ERROR) {
            fault(std::string("connect: ") + UDT::getlasterror_desc());
        }
        return {caller, UDT::accept(socket, nullptr, nullptr)};
    }

    int type;
    UDTSOCKET socket;
    int port = 0;
};

// A call that blocks: the last code, zero for none.
using Call = std::function<int(UDTSOCKET)>;

int code_of(int64_t result) { return result == UDT::ERROR ? UDT::getlasterror_code() : 0; }

// Makes `call` on a thread, closes its socket meanwhile, and checks the answer.
void closed_under(const char* name, UDTSOCKET u, int round, const Call& call, std::initializer_list<int> expected) {
    std::atomic<bool> begun{false};
    Clock::time_point closed;
    std::thread blocked([&] {
        begun = true;
        const int code = call(u);
        bool known = false;
        for (const int one : expected) known |= one == code;
        if (!known) fault(std::string(name) + ": " + std::to_string(code));
    });
    while (!begun) std::this_thread::yield();
    // Some rounds close before the call, and some when it waits.
    std::this_thread::sleep_for(std::chrono::microseconds(round % 4 * 1500));
    closed = Clock::now();
    if (UDT::close(u) == UDT::ERROR) fault(std::string(name) + ": close " + std::to_string(UDT::getlasterror_code()));
    blocked.join();
    if (Clock::now() - closed > LONGEST) fault(std::string(name) + ": late");
}

int send_until_error(UDTSOCKET u) {
    const std::vector<char> data(10000, 'x');
    for (;;) {
        const int code = code_of(UDT::send(u, data.data(), static_cast<int>(data.size()), 0));
        if (code != 0) return code;
    }
}

int send_messages_until_error(UDTSOCKET u) {
    const std::vector<char> data(10000, 'x');
    for (;;) {
        const int code = code_of(UDT::sendmsg(u, data.data(), static_cast<int>(data.size()), -1, true));
        if (code != 0) return code;
    }
}

int receive(UDTSOCKET u) {
    char data[100];
    return code_of(UDT::recv(u, data, sizeof data, 0));
}

int receive_message(UDTSOCKET u) {
    char data[100];
    return code_of(UDT::recvmsg(u, data, sizeof data));
}

int send_file(UDTSOCKET u) {
    std::fstream zeroes("/dev/zero", std::ios::in | std::ios::binary);
    int64_t offset = 0;
    return code_of(UDT::sendfile(u, zeroes, offset, 1 << 30, 100000));
}

int receive_file(UDTSOCKET u) {
    std::fstream nowhere("/dev/null", std::ios::out | std::ios::binary);
    int64_t offset = 0;
    return code_of(UDT::recvfile(u, nowhere, offset, 1 << 30, 100000));
}

int accept(UDTSOCKET u) { return code_of(UDT::accept(u, nullptr, nullptr)); }

// The other end of nothing: its datagrams are never read.
int silent_port() {
    static const int fd = [] {
        const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
        sockaddr_in any = loopback(0);
        ::bind(fd, raw(any), sizeof any);
        return fd;
    }();
    sockaddr_in address;
    socklen_t length = sizeof address;
    getsockname(fd, raw(address), &length);
    return ntohs(address.sin_port);
}

int connect_to_nobody(UDTSOCKET u) {
    const sockaddr_in there = loopback(silent_port());
    return code_of(UDT::connect(u, raw(there), sizeof there));
}

// A wait without an end, until the set is empty.
int epoll(UDTSOCKET u) {
    const int eid = UDT::epoll_create();
    const int events = UDT_EPOLL_IN | UDT_EPOLL_ERR;
    UDT::epoll_add_usock(eid, u, &events);
    int code = 0;
    while (code == 0) {
        std::set<UDTSOCKET> read, write;
        code = code_of(UDT::epoll_wait(eid, &read, &write, -1));
    }
    UDT::epoll_release(eid);
    return code;
}

// Ready, and so its next call tells that it is closed.
int select(UDTSOCKET u) {
    UDT::UDSET set;
    set.insert(u);
    timeval time = {60, 0};
    const int ready = UDT::select(0, &set, nullptr, nullptr, &time);
    if (ready == UDT::ERROR) return UDT::getlasterror_code();
    return ready == 1 && set.count(u) == 1 ? 0 : -2;
}

int select_ex(UDTSOCKET u) {
    std::vector<UDTSOCKET> read, broken;
    const int ready = UDT::selectEx({u}, &read, nullptr, &broken, 60000);
    if (ready == UDT::ERROR) return UDT::getlasterror_code();
    return read.empty() && broken.empty() ? -2 : 0;
}

void blocked_calls(int rounds) {
    for (int round = 0; round < rounds; ++round) {
        const Listener streams(SOCK_STREAM), messages(SOCK_DGRAM);
        const auto each = [&](const char* name, const Listener& from, const Call& call, std::initializer_list<int> expected) {
            const auto pair = from.pair();
            closed_under(name, pair.first, round, call, expected);
            UDT::close(pair.second);
        };
        each("recv", streams, receive, {LOST, NOT_CONNECTED, NO_SOCKET});
        each("send", streams, send_until_error, {LOST, NOT_CONNECTED, NO_SOCKET});
        each("recvmsg", messages, receive_message, {LOST, NOT_CONNECTED, NO_SOCKET});
        each("sendmsg", messages, send_messages_until_error, {LOST, NOT_CONNECTED, NO_SOCKET});
        each("sendfile", streams, send_file, {LOST, NOT_CONNECTED, NO_SOCKET});
        each("recvfile", streams, receive_file, {LOST, NOT_CONNECTED, NO_SOCKET});
        each("epoll_wait", streams, epoll, {NOTHING_WATCHED});
        each("select", streams, select, {0, NO_SOCKET});
        each("selectEx", streams, select_ex, {0});
        closed_under("connect", small(SOCK_STREAM), round, connect_to_nobody, {SETUP, NO_SERVER, NO_SOCKET});
        const UDTSOCKET listener = small(SOCK_STREAM);
        const sockaddr_in any = loopback(0);
        UDT::bind(listener, raw(any), sizeof any);
        UDT::listen(listener, 1);
        closed_under("accept", listener, round, accept, {NOT_LISTENING, NO_SOCKET});
    }
}

// A thread waits for readers alone, and another one for writers alone. Then a writer is ready, which must reach the second.
void different_wishes(int rounds) {
    const Listener streams(SOCK_STREAM);
    for (int round = 0; round < rounds; ++round) {
        const auto pair = streams.pair();
        const bool no = false, yes = true;
        UDT::setsockopt(pair.first, 0, UDT_SNDSYN, &no, sizeof no);
        const std::vector<char> data(10000, 'x');
        // Full: the peer does not read.
        for (int full = 0; full < 20; ++full) {
            while (UDT::send(pair.first, data.data(), static_cast<int>(data.size()), 0) > 0) full = 0;
            std::this_thread::sleep_for(milliseconds(1));
        }
        const int eid = UDT::epoll_create();
        UDT::epoll_add_usock(eid, pair.first, nullptr);
        std::vector<std::thread> readers;
        for (int i = 0; i < 2; ++i) {
            readers.emplace_back([eid] {
                std::set<UDTSOCKET> read;
                UDT::epoll_wait(eid, &read, nullptr, -1);
            });
        }
        std::thread writer([eid, &pair] {
            std::set<UDTSOCKET> write;
            const int code = code_of(UDT::epoll_wait(eid, nullptr, &write, LONGEST.count()));
            if (code != 0 || write.count(pair.first) == 0) fault("a writer among readers: " + std::to_string(code));
        });
        std::this_thread::sleep_for(milliseconds(round % 3 * 2));
        std::vector<char> out(200000);
        std::atomic<bool> over{false};
        std::thread drain([&] {
            while (!over && UDT::recv(pair.second, out.data(), static_cast<int>(out.size()), 0) > 0) {}
        });
        writer.join();
        over = true;
        UDT::setsockopt(pair.first, 0, UDT_SNDSYN, &yes, sizeof yes);
        UDT::close(pair.first);
        for (auto& reader : readers) reader.join();
        drain.join();
        UDT::close(pair.second);
        UDT::epoll_release(eid);
    }
}

// Threads wait at one epoll while others add, remove and close its sockets.
void shared_epoll(int rounds) {
    const Listener streams(SOCK_STREAM);
    const int eid = UDT::epoll_create();
    std::atomic<bool> over{false};
    std::vector<std::thread> waiters;
    for (int i = 0; i < 3; ++i) {
        waiters.emplace_back([eid, i, &over] {
            while (!over) {
                std::set<UDTSOCKET> read, write;
                const int code =
                    code_of(UDT::epoll_wait(eid, i == 1 ? nullptr : &read, i == 0 ? nullptr : &write, i == 2 ? 5 : 20));
                if (code != 0 && code != TIMED_OUT) fault("a shared epoll_wait: " + std::to_string(code));
                char data[1000];
                for (const UDTSOCKET u : read) {
                    const bool no = false;
                    UDT::setsockopt(u, 0, UDT_RCVSYN, &no, sizeof no);
                    UDT::recv(u, data, sizeof data, 0);
                }
            }
        });
    }
    std::vector<std::thread> users;
    for (int user = 0; user < 2; ++user) {
        users.emplace_back([&, user] {
            for (int round = 0; round < rounds; ++round) {
                const auto pair = streams.pair();
                const int events = round % 2 == 0 ? UDT_EPOLL_IN | UDT_EPOLL_ERR : UDT_EPOLL_IN | UDT_EPOLL_OUT;
                for (const UDTSOCKET u : {pair.first, pair.second}) {
                    if (code_of(UDT::epoll_add_usock(eid, u, &events)) != 0) fault("epoll_add_usock");
                }
                UDT::send(pair.first, "some data", 9, 0);
                if ((round + user) % 3 == 0) UDT::epoll_remove_usock(eid, pair.first);
                UDT::close(round % 2 == 0 ? pair.first : pair.second);
                if ((round + user) % 3 == 1) UDT::epoll_remove_usock(eid, pair.second);
                UDT::close(round % 2 == 0 ? pair.second : pair.first);
            }
        });
    }
    for (auto& user : users) user.join();
    over = true;
    for (auto& waiter : waiters) waiter.join();
    if (code_of(UDT::epoll_release(eid)) != 0) fault("epoll_release");
}

// A wait without an end for sockets that another thread takes out, or whose epoll it releases.
void emptied_epoll(int rounds) {
    const Listener streams(SOCK_STREAM);
    for (int round = 0; round < rounds; ++round) {
        const auto pair = streams.pair();
        const int eid = UDT::epoll_create(), events = UDT_EPOLL_IN;
        UDT::epoll_add_usock(eid, pair.first, &events);
        std::vector<std::thread> waiters;
        for (int i = 0; i < 2; ++i) {
            waiters.emplace_back([eid] {
                std::set<UDTSOCKET> read;
                const int code = code_of(UDT::epoll_wait(eid, &read, nullptr, -1));
                if (code != NOTHING_WATCHED && code != 5013) fault("an emptied epoll: " + std::to_string(code));
            });
        }
        std::this_thread::sleep_for(milliseconds(round % 3));
        if (round % 2 == 0) {
            UDT::epoll_remove_usock(eid, pair.first);
        } else {
            UDT::epoll_release(eid);
        }
        for (auto& waiter : waiters) waiter.join();
        UDT::epoll_release(eid);
        UDT::close(pair.first);
        UDT::close(pair.second);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 8;
    const std::string only = argc > 2 ? argv[2] : "";
    UDT::startup();
    const auto run = [&](const char* name, void (*part)(int), int rounds) {
        if (!only.empty() && only != name) return;
        std::printf("%s\n", name);
        std::fflush(stdout);
        part(rounds);
    };
    run("blocked calls", blocked_calls, rounds);
    run("emptied epoll", emptied_epoll, rounds);
    run("different wishes", different_wishes, rounds);
    run("shared epoll", shared_epoll, 5 * rounds);
    UDT::cleanup();
    std::printf("%s\n", faults == 0 ? "done" : "faults");
    return 0;
}
