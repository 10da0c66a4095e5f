// Files as streams of the C++ library, sent and received.

#include <algorithm>
#include <fstream>
#include <vector>

#include "../include/udt/udt.h"
#include "error.h"

namespace {

// The code in the signal to a sender whose data cannot be stored.
const uint32_t FILE_ERROR = 4000;
// Largest block in memory, bytes. A program may ask for any.
const int64_t LARGEST_BLOCK = 8 << 20;

int64_t block_size(int64_t size, int block) {
    return std::min(std::max<int64_t>(std::min<int64_t>(size, block), 1), LARGEST_BLOCK);
}

int64_t fail(int code) {
    note_failure(code, 0);
    return UDT::ERROR;
}

// Whether the socket can carry a file. Notes why not.
bool can_send(UDTSOCKET u) { return value_of(fh_udt_send(u, nullptr, 0, true)) != UDT::ERROR; }
bool can_receive(UDTSOCKET u) { return value_of(fh_udt_recv(u, nullptr, 0, true)) != UDT::ERROR; }

bool send_all(UDTSOCKET u, const char* data, int64_t size) {
    while (size > 0) {
        const int64_t sent = value_of(fh_udt_send(u, reinterpret_cast<const uint8_t*>(data), size, true));
        if (sent == UDT::ERROR) {
            return false;
        }
        data += sent;
        size -= sent;
    }
    return true;
}

// The file cannot be written. The sender is told, so that it does not wait for ever.
int64_t refuse(UDTSOCKET u) {
    fh_udt_signal_error(u, FILE_ERROR);
    return fail(CUDTException::EWRPERM);
}

}  // namespace

namespace UDT {

int64_t sendfile(UDTSOCKET u, std::fstream& ifs, int64_t& offset, int64_t size, int block) {
    if (!can_send(u)) {
        return ERROR;
    }
    if (size <= 0) {
        return 0;
    }
    ifs.seekg(static_cast<std::streamoff>(offset));
    std::vector<char> data(static_cast<size_t>(block_size(size, block)));
    int64_t sent = 0;
    while (sent < size) {
        // A file that ended early counts as one that cannot be read, after its last byte was sent.
        if (ifs.fail()) {
            return fail(CUDTException::EWRPERM);
        }
        ifs.read(data.data(), std::min<std::streamsize>(static_cast<std::streamsize>(data.size()), size - sent));
        const int64_t got = ifs.gcount();
        if (!send_all(u, data.data(), got)) {
            return ERROR;
        }
        sent += got;
        offset += got;
    }
    return sent;
}

int64_t recvfile(UDTSOCKET u, std::fstream& ofs, int64_t& offset, int64_t size, int block) {
    if (!can_receive(u)) {
        return ERROR;
    }
    if (size <= 0) {
        return 0;
    }
    ofs.seekp(static_cast<std::streamoff>(offset));
    std::vector<char> data(static_cast<size_t>(block_size(size, block)));
    int64_t received = 0;
    while (received < size) {
        if (ofs.fail()) {
            return refuse(u);
        }
        const int64_t wanted = std::min<int64_t>(static_cast<int64_t>(data.size()), size - received);
        const int64_t got = value_of(fh_udt_recv(u, reinterpret_cast<uint8_t*>(data.data()), wanted, true));
        if (got == ERROR) {
            return ERROR;
        }
        if (!ofs.write(data.data(), got)) {
            return refuse(u);
        }
        received += got;
        offset += got;
    }
    // The sender cannot be told any more, but this program can.
    return ofs.flush() ? received : refuse(u);
}

int64_t sendfile2(UDTSOCKET u, const char* path, int64_t* offset, int64_t size, int block) {
    std::fstream ifs(path, std::ios::binary | std::ios::in);
    return sendfile(u, ifs, *offset, size, block);
}

int64_t recvfile2(UDTSOCKET u, const char* path, int64_t* offset, int64_t size, int block) {
    std::fstream ofs(path, std::ios::binary | std::ios::out);
    return recvfile(u, ofs, *offset, size, block);
}

}  // namespace UDT
