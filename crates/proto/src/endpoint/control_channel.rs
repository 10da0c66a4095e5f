//! A connection's end of its control channel: its state, and the bytes in the host's hands.

/// A request to the host. See [`ChannelOutput`](crate::ChannelOutput).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Open the channel.
    Open,
    /// Send the bytes that the connection names.
    Send,
    /// End the channel in order after everything sent.
    Finish,
    /// End it at once.
    Reset,
}

/// The state of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChannelState {
    /// The host has not been asked to open it.
    Wanted,
    Opening,
    /// Open. `busy` is whether the host still has bytes.
    Open {
        busy: bool,
    },
    /// The host is to end it, in order or at once.
    Ending {
        in_order: bool,
    },
    /// Nothing can be sent or received.
    Gone,
}

/// One end of a channel.
#[derive(Debug)]
pub struct ControlChannel {
    state: ChannelState,
    bytes: Vec<u8>,
}

impl ControlChannel {
    /// A channel that the host must open.
    pub const fn wanted() -> Self {
        Self { state: ChannelState::Wanted, bytes: Vec::new() }
    }

    /// A channel that a peer opened.
    pub const fn accepted() -> Self {
        Self { state: ChannelState::Open { busy: false }, bytes: Vec::new() }
    }

    /// The host has opened it.
    pub fn on_opened(&mut self) {
        if self.state == ChannelState::Opening {
            self.state = ChannelState::Open { busy: false };
        }
    }

    /// The host has handed over all bytes.
    pub fn on_drained(&mut self) {
        if let ChannelState::Open { busy } = &mut self.state {
            *busy = false;
        }
    }

    /// The peer ended it in order, or it failed. This side then ends it in order too.
    pub fn on_ended(&mut self, in_order: bool) {
        self.state = if in_order { ChannelState::Ending { in_order } } else { ChannelState::Gone };
    }

    /// Ends it in order, after everything sent.
    pub fn finish(&mut self) {
        self.end(true);
    }

    /// Ends it at once.
    pub fn reset(&mut self) {
        self.end(false);
    }

    fn end(&mut self, in_order: bool) {
        self.state = match self.state {
            ChannelState::Wanted | ChannelState::Gone => ChannelState::Gone,
            ChannelState::Ending { in_order: false } => ChannelState::Ending { in_order: false },
            _ => ChannelState::Ending { in_order },
        };
    }

    /// Whether the host has it open.
    pub const fn is_open(&self) -> bool {
        matches!(self.state, ChannelState::Open { .. })
    }

    /// Whether it takes bytes now.
    pub const fn is_ready(&self) -> bool {
        matches!(self.state, ChannelState::Open { busy: false })
    }

    /// Whether the host has forgotten it.
    pub const fn is_gone(&self) -> bool {
        matches!(self.state, ChannelState::Gone)
    }

    /// The request to the host. `fill` appends the bytes to send if the channel takes some.
    pub fn poll(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Option<Request> {
        match self.state {
            ChannelState::Wanted => {
                self.state = ChannelState::Opening;
                Some(Request::Open)
            }
            ChannelState::Open { busy: false } => {
                self.bytes.clear();
                fill(&mut self.bytes);
                if self.bytes.is_empty() {
                    return None;
                }
                self.state = ChannelState::Open { busy: true };
                Some(Request::Send)
            }
            ChannelState::Ending { in_order } => {
                self.state = ChannelState::Gone;
                Some(if in_order { Request::Finish } else { Request::Reset })
            }
            ChannelState::Opening | ChannelState::Open { busy: true } | ChannelState::Gone => None,
        }
    }

    /// The bytes of the last [`Request::Send`].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_one_block_of_bytes_at_a_time() {
        let mut line = ControlChannel::wanted();
        assert_eq!(line.poll(|_| ()), Some(Request::Open));
        assert_eq!(line.poll(|_| ()), None);
        line.on_opened();
        assert_eq!(line.poll(|_| ()), None, "nothing to send");
        assert_eq!(line.poll(|out| out.push(1)), Some(Request::Send));
        assert_eq!(line.bytes(), [1]);
        assert_eq!(line.poll(|out| out.push(2)), None);
        line.on_drained();
        assert_eq!(line.poll(|out| out.push(2)), Some(Request::Send));
        assert_eq!(line.bytes(), [2]);
        line.finish();
        assert_eq!((line.poll(|_| ()), line.poll(|_| ())), (Some(Request::Finish), None));
    }

    #[test]
    fn a_channel_that_nobody_opened_needs_no_end() {
        let mut line = ControlChannel::wanted();
        line.reset();
        assert_eq!(line.poll(|_| ()), None);
        let mut line = ControlChannel::accepted();
        line.on_ended(false);
        line.finish();
        assert_eq!(line.poll(|_| ()), None);
    }
}
