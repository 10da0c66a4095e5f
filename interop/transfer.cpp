#include "transfer.h"

#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include "content.h"
#include "custom.h"
#include "failure.h"
#include "half.h"

namespace {

constexpr auto POLL = std::chrono::microseconds(200);

struct Ending {
    bool acknowledged = false;            // the peer's libudt has everything we sent
    std::optional<double> acknowledged_s;
    std::optional<double> peer_closed_s;
};

// close() would wait just like this, but leaves nobody to ask how it went.
void await_acknowledgement(Connection& connection, const Options& options, Ending& ending) {
    const auto begin = Clock::now();
    UdtSocket& socket = *connection.socket;
    while (socket.unacknowledged_packets().value_or(0) > 0) {
        if (!socket.connected() || seconds_since(begin) >= options.linger_s) {
            break;
        }
        std::this_thread::sleep_for(POLL);
    }
    ending.acknowledged = socket.unacknowledged_packets() == 0;
    if (ending.acknowledged) {
        ending.acknowledged_s = seconds_since(connection.start);
    }
    socket.sample();
}

void await_peer_close(Connection& connection, int delay_ms, Ending& ending) {
    const auto begin = Clock::now();
    while (connection.socket->connected() && seconds_since(begin) * 1000 < delay_ms) {
        connection.socket->sample();
        std::this_thread::sleep_for(POLL);
    }
    if (!connection.socket->connected()) {
        ending.peer_closed_s = seconds_since(connection.start);
    }
}

// A sender that was acknowledged has nothing to wait for; anybody else lets the other side go first for a moment,
// because a peer that closes takes the last acknowledgement with it when that one was lost.
int close_delay(const Options& options) {
    return options.close_delay_ms.value_or(options.action == Action::Send ? 0 : 200);
}

Failure as_failure(const std::exception& error) {
    const auto* failure = dynamic_cast<const Failure*>(&error);
    return failure ? *failure : Failure(LOCAL_FILE, error.what());
}

template <typename Work>
void guarded(Half& half, Work work) {
    try {
        work();
    } catch (const std::exception& error) {
        half.failure = as_failure(error);
    }
}

void add_optional(Json& json, const char* name, const std::optional<double>& value) {
    value ? json.number(name, *value) : json.null(name);
}

void add_digest(Json& json, const char* name, const Half& half) {
    half.digest ? json.text(name, content::hex(*half.digest)) : json.null(name);
}

void add_sent(Json& json, const Options& options, const Half& half, const Ending& ending) {
    json.number("sent_bytes", half.bytes);
    if (options.messages) {
        json.number("sent_messages", half.messages);
    }
    add_digest(json, "sent_digest", half);
    json.boolean("acknowledged", ending.acknowledged);
    add_optional(json, "acknowledged_s", ending.acknowledged_s);
}

void add_received(Json& json, const Options& options, const Half& half, const content::MessageLog& log) {
    json.number("received_bytes", half.bytes);
    add_digest(json, "received_digest", half);
    add_optional(json, "first_byte_s", half.first_s);
    add_optional(json, "last_byte_s", half.last_s);
    std::optional<double> goodput;
    if (half.first_s && *half.last_s > *half.first_s) {
        goodput = static_cast<double>(half.bytes) * 8 / (*half.last_s - *half.first_s);
    }
    add_optional(json, "goodput_bps", goodput);
    if (options.messages) {
        json.number("received_messages", log.received)
            .number("intact", log.intact)
            .number("damaged", log.damaged)
            .number("unchecked", log.unchecked)
            .number("duplicated", log.duplicated)
            .number("out_of_order", log.out_of_order)
            .text("order", log.order());
    }
}

const char* role(Action action) {
    switch (action) {
        case Action::Send: return "send";
        case Action::Recv: return "recv";
        case Action::Both: return "both";
        default: return "echo";
    }
}

std::string address_or_nothing(const UdtSocket& socket, bool peer) {
    try {
        return (peer ? socket.peer_address() : socket.local_address()).str();
    } catch (const Failure&) {
        return "";  // the peer may be gone already
    }
}

}  // namespace

int run_connection(Connection& connection, const Options& options) {
    UdtSocket& socket = *connection.socket;
    const UdpBuffers buffers = udp_buffers();
    Json json;
    json.text("role", role(options.action))
        .text("local", address_or_nothing(socket, false))
        .text("peer", address_or_nothing(socket, true))
        .number("seed", connection.seed)
        .number("connect_s", connection.connect_s);

    Half sent;
    Half received;
    content::MessageLog log;
    std::thread sender;
    if (options.sends()) {
        sender = std::thread([&] { guarded(sent, [&] { send_half(connection, options, sent); }); });
    }
    if (!options.sends() || options.receives()) {
        guarded(received, [&] { recv_half(connection, options, received, log); });
    }
    if (sender.joinable()) {
        sender.join();
    }

    Ending ending;
    if (options.linger_s > 0) {
        await_acknowledgement(connection, options, ending);
    }
    await_peer_close(connection, close_delay(options), ending);
    socket.close();

    if (options.sends()) {
        add_sent(json, options, sent, ending);
    }
    if (!options.sends() || options.receives()) {
        add_received(json, options, received, log);
    }
    add_optional(json, "peer_closed_s", ending.peer_closed_s);
    if (options.echo_custom) {
        json.number("custom_echoed", custom::echoed());
    }
    socket.add_figures(json);
    json.number("udp_recv_buffer_bytes", buffers.recv).number("udp_send_buffer_bytes", buffers.send);
    add_process_figures(json);

    std::optional<Failure> failure = sent.failure ? sent.failure : received.failure;
    if (!failure && options.sends() && options.linger_s > 0 && !ending.acknowledged) {
        failure = Failure(UDT::ERRORINFO::ECONNLOST, "not everything sent was acknowledged");
    }
    if (failure) {
        json.object("error", error_json(failure->code, failure->what()));
    }
    print_line(json.str());
    return failure ? failure->exit_status() : 0;
}
