//! The bytes that a file sender has ready, read from files straight behind the headers of their frames.

/// Room that is kept for the frames between two chunks; the longest of them has a path and a message. Fewer pending
/// bytes than this are worth adding to.
pub(super) const MARGIN: usize = 8 << 10;

/// The pending bytes: memory of one size, allocated once.
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// Where small frames are made before they are moved behind the pending bytes.
    frame: Vec<u8>,
}

impl Buffer {
    /// For one frame of `longest` bytes and the small ones around it.
    pub(super) fn new(longest: usize) -> Self {
        Self { bytes: vec![0; longest + 4 * MARGIN].into_boxed_slice(), start: 0, end: 0, frame: Vec::new() }
    }

    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// How much may be appended; one small frame more always fits, for the last word.
    pub(super) fn room(&self) -> usize {
        self.bytes.len() - self.end - MARGIN
    }

    /// The memory behind the pending bytes.
    pub(super) fn free(&mut self) -> &mut [u8] {
        &mut self.bytes[self.end..]
    }

    /// The first `count` bytes of [`free`](Self::free) are now pending.
    pub(super) fn advance(&mut self, count: usize) {
        self.end += count;
    }

    /// Appends the small frame that `fill` makes.
    pub(super) fn put(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        self.frame.clear();
        fill(&mut self.frame);
        let end = self.end + self.frame.len();
        self.bytes[self.end..end].copy_from_slice(&self.frame);
        self.end = end;
    }

    pub(super) fn handle_written(&mut self, count: usize) {
        assert!(count <= self.pending().len(), "the host wrote more than was pending");
        self.start += count;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} pending)", self.end - self.start)
    }
}
