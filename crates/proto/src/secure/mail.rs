//! Datagrams of another protocol that arrived inside envelopes in one receive call.

/// Datagrams back to back.
#[derive(Debug, Default)]
pub(super) struct Mail {
    bytes: Vec<u8>,
    runs: Vec<Run>,
}

/// Datagrams of one length. The last may be shorter.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Where it ends.
    end: usize,
    stride: usize,
    /// A shorter datagram was the last one.
    closed: bool,
}

impl Mail {
    /// Adds a datagram. An empty one says nothing.
    #[inline]
    pub(super) fn put(&mut self, datagram: &[u8]) {
        let len = datagram.len();
        if len == 0 {
            return;
        }
        self.bytes.extend_from_slice(datagram);
        match self.runs.last_mut() {
            Some(run) if !run.closed && len <= run.stride => {
                run.end += len;
                run.closed = len < run.stride;
            }
            _ => self.runs.push(Run { end: self.bytes.len(), stride: len, closed: false }),
        }
    }

    /// Passes on all datagrams, with the length of each, and forgets them.
    pub(super) fn deliver(&mut self, mut to: impl FnMut(&mut [u8], usize)) {
        let mut begin = 0;
        for run in self.runs.drain(..) {
            to(&mut self.bytes[begin..run.end], run.stride);
            begin = run.end;
        }
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_one_length_are_one_run_that_a_shorter_one_ends() {
        let mut mail = Mail::default();
        for datagram in [&b"abc"[..], b"def", b"g", b"hi", b"", b"jkl"] {
            mail.put(datagram);
        }
        let mut seen = Vec::new();
        mail.deliver(|bytes, stride| seen.push((bytes.to_vec(), stride)));
        assert_eq!(seen, [(b"abcdefg".to_vec(), 3), (b"hi".to_vec(), 2), (b"jkl".to_vec(), 3)]);
        mail.deliver(|_, _| panic!("they were passed on"));
    }
}
