// What travels in a test: byte streams and messages made from a seed, and the digest that names them.
// Everything here is reproducible in a few lines of any language; README.md has the test vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace content {

// Writes bytes [offset, offset + length) of the stream of `seed`.
// Word i is splitmix64(seed + (i + 1) * 0x9E3779B97F4A7C15), stored little-endian; byte k is part of word k / 8.
void fill(std::uint64_t seed, std::uint64_t offset, char* out, std::size_t length);

// FNV-1a, 64 bit. Not a cryptographic digest: it has to notice damage, not an adversary.
class Digest {
public:
    void update(const char* bytes, std::size_t length);
    std::uint64_t value() const { return state_; }

private:
    std::uint64_t state_ = 0xcbf29ce484222325;
};

// Sixteen lower-case hexadecimal digits.
std::string hex(std::uint64_t value);

// Message `index` of `seed`: both as little-endian 64-bit words, then the stream of seed + index, cut to `size` bytes.
void make_message(std::uint64_t seed, std::uint64_t index, std::size_t size, std::vector<char>& out);

// Checks and records messages as they arrive. Needs no seed: a message of at least 16 bytes says what it should be.
class MessageLog {
public:
    void record(const char* bytes, std::size_t length);

    std::uint64_t received = 0;      // all messages
    std::uint64_t intact = 0;        // content as its first 16 bytes promise, not seen before
    std::uint64_t damaged = 0;       // anything else than promised
    std::uint64_t unchecked = 0;     // shorter than 16 bytes
    std::uint64_t duplicated = 0;    // intact, but seen before
    std::uint64_t out_of_order = 0;  // intact, with an index below one already seen
    std::uint64_t digest_sum = 0;    // wrapping sum of the digests of all messages: the order does not matter

    // The order of arrival as runs of ascending indices, "0-41,43,42".
    std::string order() const;
    bool faultless() const { return damaged == 0 && duplicated == 0; }

private:
    struct Run {
        std::uint64_t first;
        std::uint64_t last;
    };

    void record_index(std::uint64_t index);

    std::unordered_set<std::uint64_t> seen_;
    std::vector<Run> runs_;
    std::uint64_t highest_ = 0;
    std::vector<char> expected_;
};

}  // namespace content
