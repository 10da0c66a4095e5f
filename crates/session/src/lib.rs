//! What two Farhaul ends say to each other over a byte stream, sans-IO.
