//! Reliable bulk data transfer over UDP for long fat networks.
