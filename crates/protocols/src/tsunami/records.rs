//! Requests in a stream of bytes that may be divided anywhere.

use farhaul_wire::tsunami::{Request, UnknownRequest};

/// The beginning of a request whose end has not arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    bytes: [u8; Request::LEN],
    held: usize,
}

impl Records {
    /// The next complete request, whose bytes leave the front of `input`. `None` if more bytes are needed. All of
    /// `input` was taken then.
    ///
    /// # Errors
    /// The type of the request is unknown.
    pub(crate) fn next(&mut self, input: &mut &[u8]) -> Option<Result<Request, UnknownRequest>> {
        let (taken, rest) = input.split_at(input.len().min(Request::LEN - self.held));
        self.bytes[self.held..self.held + taken.len()].copy_from_slice(taken);
        self.held += taken.len();
        *input = rest;
        if self.held < Request::LEN {
            return None;
        }
        self.held = 0;
        Some(Request::decode(&self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_however_they_are_divided() {
        let requests = [Request::Retransmit(5), Request::ErrorRate(7), Request::Stop];
        let bytes: Vec<u8> = requests.iter().flat_map(|request| request.bytes()).collect();
        for size in 1..=bytes.len() {
            let mut records = Records::default();
            let mut read = Vec::new();
            for mut piece in bytes.chunks(size) {
                while let Some(request) = records.next(&mut piece) {
                    read.push(request.unwrap());
                }
                assert!(piece.is_empty());
            }
            assert_eq!(read, requests, "{size}");
        }
    }
}
