// The last error of a thread.

#ifndef FARHAUL_LIBUDT_ERROR_H
#define FARHAUL_LIBUDT_ERROR_H

#include "border.h"

// Notes a failure of this thread.
void note_failure(int code, int error_number);

// The value of an outcome, or UDT::ERROR after noting why.
int64_t value_of(const FhOutcome& outcome);

#endif
