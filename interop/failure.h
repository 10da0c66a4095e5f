// The one exception type of the program: a code for machines, a sentence for people.
#pragma once

#include <stdexcept>
#include <string>

// Codes below 1000 are our own and double as the exit status; from 1000 on they are libudt's (exit status 1).
enum FailureCode : int {
    USAGE = 2,       // the command line makes no sense
    CONTENT = 3,     // less than expected arrived, or something else than was sent
    LOCAL_FILE = 4,  // a file could not be opened, read or written by us
    TIMEOUT = 8,     // --timeout passed
};

struct Failure : std::runtime_error {
    Failure(int code, const std::string& message) : std::runtime_error(message), code(code) {}
    int exit_status() const { return code >= 1000 || code < 0 ? 1 : code; }
    int code;
};
