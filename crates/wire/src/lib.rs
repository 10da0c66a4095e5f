//! Packet formats of UDT4: bytes to values and back, no state.
