// A peer made of the reference implementation, libudt: whatever our tests and benchmarks need the other side to do.
// README.md tells what each option does and what each figure means.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "content.h"
#include "failure.h"
#include "options.h"
#include "report.h"
#include "transfer.h"
#include "udt_socket.h"

namespace {

// Several connections end on their own threads; the process ends with the first status that is not 0.
class Status {
public:
    void merge(int status) {
        int fine = 0;
        value_.compare_exchange_strong(fine, status);
    }
    int value() const { return value_; }

private:
    std::atomic<int> value_{0};
};

int report_failure(const Failure& failure) {
    Json json;
    json.object("error", error_json(failure.code, failure.what()));
    print_line(json.str());
    return failure.exit_status();
}

template <typename Work>
int reporting(Work work) {
    try {
        return work();
    } catch (const Failure& failure) {
        return report_failure(failure);
    } catch (const std::exception& error) {
        return report_failure(Failure(LOCAL_FILE, error.what()));
    }
}

int run_listen(const Options& options) {
    const Address address = Address::resolve(options.local, options.ipv6);
    UdtSocket listener(address.family(), options);
    listener.bind(address);
    listener.listen(options.sockets);
    print_line("listening " + listener.local_address().str());

    Status status;
    std::vector<std::thread> threads;
    for (int i = 0; i < options.sockets; ++i) {
        const UDTSOCKET accepted = listener.accept();
        const auto start = Clock::now();
        threads.emplace_back([&options, &status, accepted, start, i] {
            status.merge(reporting([&] {
                Connection connection{std::make_unique<UdtSocket>(accepted), start, 0, options.seed + i};
                return run_connection(connection, options);
            }));
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return status.value();
}

int connect_and_run(std::unique_ptr<UdtSocket> socket, const Address& peer, const Options& options, int index) {
    Connection connection{std::move(socket), Clock::now(), 0, options.seed + index};
    connection.socket->connect(peer);
    connection.connect_s = seconds_since(connection.start);
    return run_connection(connection, options);
}

// For clients and for rendezvous: several sockets share the UDP port of the first.
int run_connect(const Options& options) {
    const Address peer = Address::resolve(options.peer, options.ipv6);
    const bool ipv6 = peer.family() == AF_INET6;
    Address local = Address::resolve(!options.local.empty() ? options.local : ipv6 ? "[::]:0" : "0.0.0.0:0", ipv6);
    std::vector<std::unique_ptr<UdtSocket>> sockets;
    for (int i = 0; i < options.sockets; ++i) {
        sockets.push_back(std::make_unique<UdtSocket>(peer.family(), options));
        sockets.back()->bind(local);
        local.set_port(sockets.back()->local_address().port());
    }

    Status status;
    std::vector<std::thread> threads;
    for (int i = 0; i < options.sockets; ++i) {
        threads.emplace_back([&, i] {
            status.merge(reporting([&] { return connect_and_run(std::move(sockets[i]), peer, options, i); }));
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return status.value();
}

// Prints what `send` would announce, without any network: test vectors, and what a receiver should have got.
int run_content(const Options& options) {
    Json json;
    std::uint64_t digest = 0;
    std::vector<char> block;
    if (options.messages) {
        for (std::uint64_t index = 0; index < options.count; ++index) {
            content::Digest one;
            content::make_message(options.seed, index, options.message_size, block);
            one.update(block.data(), block.size());
            digest += one.value();
        }
        json.number("messages", options.count);
    } else {
        content::Digest all;
        block.resize(1 << 16);
        const std::uint64_t bytes = options.bytes.value_or(0);
        for (std::uint64_t offset = 0; offset < bytes; offset += block.size()) {
            block.resize(std::min<std::uint64_t>(block.size(), bytes - offset));
            content::fill(options.seed, offset, block.data(), block.size());
            all.update(block.data(), block.size());
        }
        digest = all.value();
        json.number("bytes", bytes);
    }
    json.number("seed", options.seed).text("digest", content::hex(digest));
    print_line(json.str());
    return 0;
}

int run(const Options& options) {
    if (options.mode == Mode::Content) {
        return run_content(options);
    }
    start_watchdog(options.timeout_s);
    UDT::startup();
    start_process_clock();
    return options.mode == Mode::Listen ? run_listen(options) : run_connect(options);
}

}  // namespace

int main(int argc, char** argv) {
    const int status = reporting([&] { return run(parse_options(argc, argv)); });
    if (status == USAGE) {
        std::fputs(USAGE_TEXT, stderr);
    }
    // Every socket is closed and every SHUTDOWN sent; libudt's own cleanup would only wait for its collector.
    _exit(status);
}
