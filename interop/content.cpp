#include "content.h"

#include <endian.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace content {
namespace {

constexpr std::size_t WORD = sizeof(std::uint64_t);
constexpr std::size_t MESSAGE_HEADER = 2 * WORD;

std::uint64_t stream_word(std::uint64_t seed, std::uint64_t index) {
    std::uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return htole64(z ^ (z >> 31));
}

std::uint64_t read_word(const char* bytes) {
    std::uint64_t word;
    std::memcpy(&word, bytes, WORD);
    return le64toh(word);
}

}  // namespace

void fill(std::uint64_t seed, std::uint64_t offset, char* out, std::size_t length) {
    while (length > 0) {
        const std::uint64_t word = stream_word(seed, offset / WORD);
        const std::size_t skip = offset % WORD;
        const std::size_t take = std::min(WORD - skip, length);
        std::memcpy(out, reinterpret_cast<const char*>(&word) + skip, take);
        out += take;
        offset += take;
        length -= take;
    }
}

void Digest::update(const char* bytes, std::size_t length) {
    std::uint64_t state = state_;
    for (std::size_t i = 0; i < length; ++i) {
        state = (state ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3;
    }
    state_ = state;
}

std::string hex(std::uint64_t value) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
    return text;
}

void make_message(std::uint64_t seed, std::uint64_t index, std::size_t size, std::vector<char>& out) {
    out.resize(std::max(size, MESSAGE_HEADER));
    const std::uint64_t header[2] = {htole64(seed), htole64(index)};
    std::memcpy(out.data(), header, MESSAGE_HEADER);
    fill(seed + index, 0, out.data() + MESSAGE_HEADER, out.size() - MESSAGE_HEADER);
    out.resize(size);
}

void MessageLog::record(const char* bytes, std::size_t length) {
    ++received;
    Digest digest;
    digest.update(bytes, length);
    digest_sum += digest.value();
    if (length < MESSAGE_HEADER) {
        ++unchecked;
        return;
    }
    const std::uint64_t index = read_word(bytes + WORD);
    make_message(read_word(bytes), index, length, expected_);
    if (std::memcmp(bytes, expected_.data(), length) != 0) {
        ++damaged;
    } else if (!seen_.insert(index).second) {
        ++duplicated;
    } else {
        ++intact;
        record_index(index);
    }
}

void MessageLog::record_index(std::uint64_t index) {
    if (index < highest_) {
        ++out_of_order;
    }
    highest_ = std::max(highest_, index);
    if (!runs_.empty() && runs_.back().last + 1 == index) {
        runs_.back().last = index;
    } else {
        runs_.push_back({index, index});
    }
}

std::string MessageLog::order() const {
    std::string text;
    for (const Run& run : runs_) {
        text += text.empty() ? "" : ",";
        text += std::to_string(run.first);
        text += run.last == run.first ? "" : "-" + std::to_string(run.last);
    }
    return text;
}

}  // namespace content
