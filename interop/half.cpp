#include "half.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t BLOCK = 256 * 1024;           // of a stream, for one send() or recv()
constexpr std::size_t LARGEST_MESSAGE = 16u << 20;  // recvmsg() cuts longer ones
constexpr int UDT_HEADERS = 44;                     // IP, UDP and UDT headers inside an MSS

std::uint64_t digest_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    content::Digest digest;
    std::vector<char> block(BLOCK);
    while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
        digest.update(block.data(), static_cast<std::size_t>(file.gcount()));
    }
    return digest.value();
}

void send_all(UdtSocket& socket, const char* bytes, std::size_t length) {
    while (length > 0) {
        const int sent = UDT::send(socket.id(), bytes, static_cast<int>(length), 0);
        if (sent == UDT::ERROR) {
            throw_udt_error("send");
        }
        bytes += sent;
        length -= static_cast<std::size_t>(sent);
    }
}

// A short packet ends every send() call, so blocks are whole numbers of packets.
std::size_t block_of_whole_packets(const UdtSocket& socket) {
    const std::size_t payload = static_cast<std::size_t>(socket.mss() - UDT_HEADERS);
    return std::max<std::size_t>(BLOCK / payload, 1) * payload;
}

// ---- sending ----

void send_stream(Connection& connection, const Options& options, Half& half) {
    std::ifstream file;
    if (!options.file.empty()) {
        file.open(options.file, std::ios::binary);
        if (!file) {
            throw Failure(LOCAL_FILE, "cannot read " + options.file);
        }
    }
    std::vector<char> block(block_of_whole_packets(*connection.socket));
    content::fill(connection.seed, 0, block.data(), block.size());
    content::Digest digest;
    const auto connected = Clock::now();
    const std::uint64_t limit = options.bytes.value_or(UINT64_MAX);
    while (half.bytes < limit && !(options.seconds > 0 && seconds_since(connected) >= options.seconds)) {
        std::size_t length = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), limit - half.bytes));
        if (file.is_open()) {
            file.read(block.data(), static_cast<std::streamsize>(length));
            length = static_cast<std::size_t>(file.gcount());
        } else if (!options.unchecked) {
            content::fill(connection.seed, half.bytes, block.data(), length);
        }
        if (length == 0) {
            break;
        }
        if (!options.unchecked) {
            digest.update(block.data(), length);
        }
        send_all(*connection.socket, block.data(), length);
        half.bytes += length;
        half.mark(connection);
        connection.socket->sample();
    }
    if (!options.unchecked) {
        half.digest = digest.value();
    }
}

void send_with_sendfile(Connection& connection, const Options& options, Half& half) {
    std::fstream file(options.file, std::ios::in | std::ios::binary);
    if (!file) {
        throw Failure(LOCAL_FILE, "cannot read " + options.file);
    }
    file.seekg(0, std::ios::end);
    const std::int64_t size = file.tellg();
    file.seekg(0);
    std::int64_t offset = 0;
    const std::int64_t sent = UDT::sendfile(connection.socket->id(), file, offset, size);
    if (sent == UDT::ERROR) {
        throw_udt_error("sendfile");
    }
    half.bytes = static_cast<std::uint64_t>(sent);
    half.digest = digest_file(options.file);
    half.last_s = seconds_since(connection.start);
}

void send_message(UdtSocket& socket, const std::vector<char>& message, const Options& options) {
    const int length = static_cast<int>(message.size());
    if (UDT::sendmsg(socket.id(), message.data(), length, options.ttl_ms, options.in_order) == UDT::ERROR) {
        throw_udt_error("sendmsg");
    }
}

void send_messages(Connection& connection, const Options& options, Half& half) {
    std::vector<char> message;
    std::uint64_t sum = 0;
    for (std::uint64_t index = 0; index < options.count; ++index) {
        content::make_message(connection.seed, index, options.message_size, message);
        content::Digest digest;
        digest.update(message.data(), message.size());
        sum += digest.value();
        send_message(*connection.socket, message, options);
        half.bytes += message.size();
        ++half.messages;
        half.digest = sum;
        half.mark(connection);
        connection.socket->sample();
    }
}

}  // namespace

void send_half(Connection& connection, const Options& options, Half& half) {
    std::this_thread::sleep_for(std::chrono::milliseconds(options.start_delay_ms));
    if (options.messages) {
        send_messages(connection, options, half);
    } else if (options.use_sendfile) {
        send_with_sendfile(connection, options, half);
    } else {
        send_stream(connection, options, half);
    }
}

// ---- receiving ----

namespace {

// How much this connection awaits: --expect, or as much as it sends when it does both, or until the peer closes.
std::optional<std::uint64_t> awaited(const Options& options) {
    if (options.expect || options.action != Action::Both) {
        return options.expect;
    }
    return options.messages ? std::optional(options.count) : options.bytes;
}

// libudt has no end of stream: the peer's close is error 2001 after everything buffered was read.
bool peer_has_closed() { return UDT::getlasterror_code() == UDT::ERRORINFO::ECONNLOST; }

// How much has arrived, every so often, so that what several connections got at the same time can be compared.
class Intervals {
public:
    Intervals(const Connection& connection, const Options& options)
        : index_(connection.seed - options.seed), every_(options.interval_s) {}

    void mark(std::uint64_t bytes) {
        const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
        if (every_ <= 0 || now < next_) {
            return;
        }
        next_ = now + every_;
        Json json;
        json.text("event", "interval").number("connection", index_).number("clock_s", now).number("bytes_total", bytes);
        print_line(json.str());
    }

private:
    std::uint64_t index_;
    double every_;
    double next_ = 0;
};

void require_complete(const Options& options, std::uint64_t got) {
    if (const auto wanted = awaited(options); wanted && got < *wanted) {
        throw Failure(CONTENT, "the peer closed after " + std::to_string(got) + " of " + std::to_string(*wanted));
    }
}

void recv_stream(Connection& connection, const Options& options, Half& half) {
    std::ofstream out;
    if (!options.out.empty()) {
        out.open(options.out, std::ios::binary | std::ios::trunc);
    }
    const bool echo = options.action == Action::Echo;
    const std::uint64_t wanted = awaited(options).value_or(UINT64_MAX);
    std::vector<char> block(4 * BLOCK);
    content::Digest digest;
    Intervals intervals(connection, options);
    while (half.bytes < wanted) {
        const auto room = static_cast<int>(std::min<std::uint64_t>(block.size(), wanted - half.bytes));
        const int got = UDT::recv(connection.socket->id(), block.data(), room, 0);
        if (got == UDT::ERROR) {
            if (peer_has_closed()) {
                break;
            }
            throw_udt_error("recv");
        }
        half.bytes += static_cast<std::uint64_t>(got);
        half.mark(connection);
        intervals.mark(half.bytes);
        connection.socket->sample();
        if (!options.unchecked) {
            digest.update(block.data(), static_cast<std::size_t>(got));
            half.digest = digest.value();
        }
        if (out.is_open() && !out.write(block.data(), got)) {
            throw Failure(LOCAL_FILE, "cannot write " + options.out);
        }
        if (echo) {
            send_all(*connection.socket, block.data(), static_cast<std::size_t>(got));
        }
    }
    require_complete(options, half.bytes);
}

void recv_with_recvfile(Connection& connection, const Options& options, Half& half) {
    std::fstream file(options.out, std::ios::out | std::ios::binary | std::ios::trunc);
    if (!file) {
        throw Failure(LOCAL_FILE, "cannot write " + options.out);
    }
    std::int64_t offset = 0;
    const std::int64_t got =
        UDT::recvfile(connection.socket->id(), file, offset, static_cast<std::int64_t>(*options.expect));
    if (got == UDT::ERROR) {
        throw_udt_error("recvfile");
    }
    connection.socket->sample();
    half.bytes = static_cast<std::uint64_t>(got);
    half.last_s = seconds_since(connection.start);
    file.close();
    half.digest = digest_file(options.out);
}

void recv_messages(Connection& connection, const Options& options, Half& half, content::MessageLog& log) {
    const bool echo = options.action == Action::Echo;
    const std::uint64_t wanted = awaited(options).value_or(UINT64_MAX);
    std::vector<char> buffer(LARGEST_MESSAGE);
    while (half.messages < wanted) {
        const int got = UDT::recvmsg(connection.socket->id(), buffer.data(), static_cast<int>(buffer.size()));
        if (got == UDT::ERROR) {
            if (peer_has_closed()) {
                break;
            }
            throw_udt_error("recvmsg");
        }
        half.bytes += static_cast<std::uint64_t>(got);
        ++half.messages;
        half.mark(connection);
        connection.socket->sample();
        log.record(buffer.data(), static_cast<std::size_t>(got));
        half.digest = log.digest_sum;
        if (echo) {
            send_message(*connection.socket, {buffer.data(), buffer.data() + got}, options);
        }
    }
    require_complete(options, half.messages);
    if (!log.faultless()) {
        throw Failure(CONTENT, "messages arrived damaged or twice");
    }
}

}  // namespace

void recv_half(Connection& connection, const Options& options, Half& half, content::MessageLog& log) {
    if (options.messages) {
        recv_messages(connection, options, half, log);
    } else if (options.use_recvfile) {
        recv_with_recvfile(connection, options, half);
    } else {
        recv_stream(connection, options, half);
    }
}
