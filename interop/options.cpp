#include "options.h"

#include <functional>
#include <map>
#include <stdexcept>

#include "failure.h"

const char* const USAGE_TEXT =
    "usage: libudt-peer listen ADDR:PORT ACTION [OPTION...]\n"
    "       libudt-peer connect HOST:PORT ACTION [--local ADDR:PORT] [OPTION...]\n"
    "       libudt-peer rendezvous --local ADDR:PORT --peer HOST:PORT ACTION [OPTION...]\n"
    "       libudt-peer content [--bytes N | --messages ...] [--seed S]\n"
    "actions: send recv both echo\n"
    "options: --bytes N --expect N --seed S --file F --sendfile --out F --recvfile --error-signal\n"
    "         --seconds S --unchecked --messages --message-size N --count N --ttl MS --in-order 0|1\n"
    "         --sockets N --ipv6 --mss N --fc N --sndbuf BYTES --rcvbuf BYTES --udp-sndbuf BYTES\n"
    "         --udp-rcvbuf BYTES --linger S --maxbw BYTES_PER_S --start-delay MS --close-delay MS\n"
    "         --echo-custom --interval S --timeout S\n";

namespace {

using Value = const std::string&;

std::uint64_t unsigned_number(Value text) {
    std::size_t used = 0;
    const std::uint64_t number = std::stoull(text, &used, 0);
    if (used != text.size() || text.front() == '-') {
        throw std::invalid_argument("not a whole number");
    }
    return number;
}

int small_number(Value text) {
    std::size_t used = 0;
    const int number = std::stoi(text, &used);
    if (used != text.size()) {
        throw std::invalid_argument("not a whole number");
    }
    return number;
}

double positive_seconds(Value text) {
    std::size_t used = 0;
    const double number = std::stod(text, &used);
    if (used != text.size() || !(number > 0)) {
        throw std::invalid_argument("not a positive number");
    }
    return number;
}

std::map<std::string, std::function<void()>> switches(Options& o) {
    return {
        {"--ipv6", [&] { o.ipv6 = true; }},
        {"--sendfile", [&] { o.use_sendfile = true; }},
        {"--recvfile", [&] { o.use_recvfile = true; }},
        {"--error-signal",
         [&] {
             o.use_recvfile = true;
             o.out = "/dev/full";
         }},
        {"--unchecked", [&] { o.unchecked = true; }},
        {"--messages", [&] { o.messages = true; }},
        {"--echo-custom", [&] { o.echo_custom = true; }},
    };
}

std::map<std::string, std::function<void(Value)>> settings(Options& o) {
    return {
        {"--local", [&](Value v) { o.local = v; }},
        {"--peer", [&](Value v) { o.peer = v; }},
        {"--sockets", [&](Value v) { o.sockets = small_number(v); }},
        {"--bytes", [&](Value v) { o.bytes = unsigned_number(v); }},
        {"--expect", [&](Value v) { o.expect = unsigned_number(v); }},
        {"--seed", [&](Value v) { o.seed = unsigned_number(v); }},
        {"--file", [&](Value v) { o.file = v; }},
        {"--out", [&](Value v) { o.out = v; }},
        {"--seconds", [&](Value v) { o.seconds = positive_seconds(v); }},
        {"--message-size", [&](Value v) { o.message_size = unsigned_number(v); }},
        {"--count", [&](Value v) { o.count = unsigned_number(v); }},
        {"--ttl", [&](Value v) { o.ttl_ms = small_number(v); }},
        {"--in-order", [&](Value v) { o.in_order = small_number(v) != 0; }},
        {"--mss", [&](Value v) { o.mss = small_number(v); }},
        {"--fc", [&](Value v) { o.fc = small_number(v); }},
        {"--sndbuf", [&](Value v) { o.sndbuf = small_number(v); }},
        {"--rcvbuf", [&](Value v) { o.rcvbuf = small_number(v); }},
        {"--udp-sndbuf", [&](Value v) { o.udp_sndbuf = small_number(v); }},
        {"--udp-rcvbuf", [&](Value v) { o.udp_rcvbuf = small_number(v); }},
        {"--linger", [&](Value v) { o.linger_s = small_number(v); }},
        {"--maxbw", [&](Value v) { o.maxbw = static_cast<std::int64_t>(unsigned_number(v)); }},
        {"--start-delay", [&](Value v) { o.start_delay_ms = small_number(v); }},
        {"--close-delay", [&](Value v) { o.close_delay_ms = small_number(v); }},
        {"--interval", [&](Value v) { o.interval_s = positive_seconds(v); }},
        {"--timeout", [&](Value v) { o.timeout_s = positive_seconds(v); }},
    };
}

void take_positional(Options& o, const std::string& word, int position) {
    static const std::map<std::string, Mode> modes = {{"listen", Mode::Listen},
                                                      {"connect", Mode::Connect},
                                                      {"rendezvous", Mode::Rendezvous},
                                                      {"content", Mode::Content}};
    static const std::map<std::string, Action> actions = {
        {"send", Action::Send}, {"recv", Action::Recv}, {"both", Action::Both}, {"echo", Action::Echo}};
    if (position == 0) {
        const auto mode = modes.find(word);
        if (mode == modes.end()) {
            throw Failure(USAGE, "unknown mode: " + word);
        }
        o.mode = mode->second;
    } else if (const auto action = actions.find(word); action != actions.end()) {
        o.action = action->second;
    } else if (o.mode == Mode::Listen && o.local.empty()) {
        o.local = word;
    } else if (o.mode == Mode::Connect && o.peer.empty()) {
        o.peer = word;
    } else {
        throw Failure(USAGE, "unexpected word: " + word);
    }
}

void require(bool holds, const char* message) {
    if (!holds) {
        throw Failure(USAGE, message);
    }
}

void check(Options& o) {
    if (o.mode == Mode::Content) {
        return;
    }
    require(o.action != Action::None, "an action is missing: send, recv, both or echo");
    require(o.mode != Mode::Listen || !o.local.empty(), "listen needs ADDR:PORT");
    require(o.mode != Mode::Connect || !o.peer.empty(), "connect needs HOST:PORT");
    require(o.mode != Mode::Rendezvous || (!o.local.empty() && !o.peer.empty()), "rendezvous needs --local and --peer");
    require(o.sockets >= 1 && o.sockets <= 4096, "--sockets must be 1..4096");
    require(o.mode != Mode::Rendezvous || o.sockets == 1, "rendezvous is for one socket: a port tells peers apart by address");
    require(o.messages || !o.sends() || o.bytes || !o.file.empty() || o.seconds > 0,
            "what to send? --bytes, --file, --seconds or --messages");
    require(o.messages || o.action != Action::Both || o.bytes || o.expect, "both needs --bytes or --expect: somebody has to close first");
    require(o.message_size >= 1 && o.message_size <= (16u << 20), "--message-size must be 1..16777216");
    require(!o.messages || (!o.use_sendfile && !o.use_recvfile && o.file.empty() && o.out.empty()),
            "files are for streams, not for --messages");
    require(!o.use_sendfile || !o.file.empty(), "--sendfile needs --file");
    require(!o.use_recvfile || !o.out.empty(), "--recvfile needs --out");
    require(!o.use_recvfile || o.expect, "--recvfile needs --expect: libudt reads until a given size");
    require(o.interval_s == 0 || (o.receives() && !o.messages), "--interval is for streams that are received");
    require(o.out.empty() || o.sockets == 1, "--out is for one socket");
    o.unchecked = o.unchecked || o.seconds > 0;
}

}  // namespace

Options parse_options(int argc, char** argv) {
    Options options;
    const auto flags = switches(options);
    const auto values = settings(options);
    int position = 0;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (const auto flag = flags.find(word); flag != flags.end()) {
            flag->second();
        } else if (const auto setting = values.find(word); setting != values.end()) {
            require(i + 1 < argc, (word + " needs a value").c_str());
            try {
                setting->second(argv[++i]);
            } catch (const std::logic_error&) {
                throw Failure(USAGE, word + ": cannot use the value " + argv[i]);
            }
        } else if (word.rfind("--", 0) == 0) {
            throw Failure(USAGE, "unknown option: " + word);
        } else {
            take_positional(options, word, position++);
        }
    }
    require(position > 0, "a mode is missing: listen, connect, rendezvous or content");
    check(options);
    return options;
}
