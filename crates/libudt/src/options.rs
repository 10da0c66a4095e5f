//! The options of a socket: types, ranges, and when they may be set. Source: libudt 4.11, observed.

use std::time::Duration;

use farhaul::{Builder, Endpoint, Rate, UDP_RECV_BUFFER};

use crate::controller::Factory;
use crate::failure::{Code, Result};

/// Bytes of a packet that are headers of IP and UDP. libudt counts its buffers in packets without these.
const IP_UDP_HEADER: i32 = 28;
/// Smallest permitted packet: headers and a handshake.
const LEAST_MSS: i32 = IP_UDP_HEADER + 48;
/// Smallest packet of Farhaul. Smaller ones are announced as this.
const LEAST_FARHAUL_MSS: i32 = 576;
/// Fewest packets of a flow window and of a receive buffer.
const LEAST_WINDOW: i32 = 32;
/// Silence of a peer after which libudt takes it for dead.
const PEER_TIMEOUT: Duration = Duration::from_secs(53);
/// Time after which libudt gives an attempt to connect up, and a rendezvous.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const RENDEZVOUS_TIMEOUT: Duration = Duration::from_secs(30);
/// The variable of the environment that names another default controller than Farhaul's.
const CONTROLLER_VARIABLE: &str = "FARHAUL_LIBUDT_CONTROLLER";

/// The options of libudt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Mss,
    SendBlocks,
    RecvBlocks,
    Controller,
    FlowWindow,
    SendBuffer,
    RecvBuffer,
    Linger,
    UdpSendBuffer,
    UdpRecvBuffer,
    Rendezvous,
    SendTimeout,
    RecvTimeout,
    ReuseAddress,
    MaxBandwidth,
    State,
    Events,
    SendData,
    RecvData,
}

impl Name {
    /// The option of this number, with the form of its value in memory.
    ///
    /// # Errors
    /// There is no such option, or it is declared only.
    pub(crate) fn from_number(number: i32) -> Result<(Self, Form)> {
        Ok(match number {
            0 => (Self::Mss, Form::Int),
            1 => (Self::SendBlocks, Form::Bool),
            2 => (Self::RecvBlocks, Form::Bool),
            3 => (Self::Controller, Form::Pointer),
            4 => (Self::FlowWindow, Form::Int),
            5 => (Self::SendBuffer, Form::Int),
            6 => (Self::RecvBuffer, Form::Int),
            7 => (Self::Linger, Form::Linger),
            8 => (Self::UdpSendBuffer, Form::Int),
            9 => (Self::UdpRecvBuffer, Form::Int),
            12 => (Self::Rendezvous, Form::Bool),
            13 => (Self::SendTimeout, Form::Int),
            14 => (Self::RecvTimeout, Form::Int),
            15 => (Self::ReuseAddress, Form::Bool),
            16 => (Self::MaxBandwidth, Form::Long),
            17 => (Self::State, Form::Int),
            18 => (Self::Events, Form::Int),
            19 => (Self::SendData, Form::Int),
            20 => (Self::RecvData, Form::Int),
            _ => return Err(Code::InvalidOperation.into()),
        })
    }
}

/// The form of a value in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Bool,
    Int,
    Long,
    /// `struct linger`
    Linger,
    /// Of a factory or a controller.
    Pointer,
}

/// A value, without the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Bool(bool),
    Int(i32),
    Long(i64),
    Linger { on: bool, seconds: i32 },
}

/// How far a socket is, as far as options ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Unbound,
    Bound,
    /// It connects or is connected.
    Connected,
}

/// The options that can be set. A new socket has the defaults, and an accepted one those of its listener.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) mss: i32,
    pub(crate) send_blocks: bool,
    pub(crate) recv_blocks: bool,
    pub(crate) flow_window: i32,
    /// Packets, as are the next.
    send_buffer: i32,
    recv_buffer: i32,
    pub(crate) linger: Option<Duration>,
    linger_seconds: i32,
    udp_send_buffer: i32,
    udp_recv_buffer: i32,
    pub(crate) rendezvous: bool,
    /// Milliseconds, negative for no limit, as is the next.
    pub(crate) send_timeout: i32,
    pub(crate) recv_timeout: i32,
    pub(crate) reuse_address: bool,
    /// Bytes a second, negative for no cap.
    pub(crate) max_bandwidth: i64,
    pub(crate) factory: Option<Factory>,
    /// Whether the program chose the flow window and the buffers. What it did not choose sizes itself.
    chosen: Chosen,
}

#[derive(Clone, Copy, Debug, Default)]
struct Chosen {
    flow_window: bool,
    send_buffer: bool,
    recv_buffer: bool,
}

impl Default for Options {
    /// Those of libudt 4.11.
    fn default() -> Self {
        Self {
            mss: 1500,
            send_blocks: true,
            recv_blocks: true,
            flow_window: 25_600,
            send_buffer: 8192,
            recv_buffer: 8192,
            linger: Some(Duration::from_secs(180)),
            linger_seconds: 180,
            udp_send_buffer: 65_536,
            udp_recv_buffer: 12_288_000,
            rendezvous: false,
            send_timeout: -1,
            recv_timeout: -1,
            reuse_address: true,
            max_bandwidth: -1,
            factory: None,
            chosen: Chosen::default(),
        }
    }
}

impl Options {
    /// Sets an option of a socket that is this far.
    ///
    /// # Errors
    /// The socket is too far, the value is out of its range, or the option can only be read.
    pub(crate) fn set(&mut self, name: Name, value: Value, stage: Stage) -> Result<()> {
        match name {
            Name::Mss | Name::SendBuffer | Name::RecvBuffer | Name::UdpSendBuffer | Name::UdpRecvBuffer
                if stage > Stage::Unbound =>
            {
                return Err(Code::AlreadyBound.into());
            }
            Name::ReuseAddress if stage > Stage::Unbound => return Err(Code::AlreadyBound.into()),
            Name::Rendezvous if stage > Stage::Bound => return Err(Code::AlreadyBound.into()),
            Name::FlowWindow if stage > Stage::Bound => return Err(Code::AlreadyConnected.into()),
            _ => {}
        }
        match (name, value) {
            (Name::SendBlocks, Value::Bool(on)) => self.send_blocks = on,
            (Name::RecvBlocks, Value::Bool(on)) => self.recv_blocks = on,
            (Name::Rendezvous, Value::Bool(on)) => self.rendezvous = on,
            (Name::ReuseAddress, Value::Bool(on)) => self.reuse_address = on,
            (Name::SendTimeout, Value::Int(time)) => self.send_timeout = time,
            (Name::RecvTimeout, Value::Int(time)) => self.recv_timeout = time,
            (Name::MaxBandwidth, Value::Long(rate)) => self.max_bandwidth = rate,
            (Name::Linger, Value::Linger { on, seconds }) => {
                self.linger_seconds = seconds;
                self.linger = on.then(|| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
            }
            (_, Value::Int(size)) => self.set_size(name, size)?,
            _ => return Err(Code::InvalidOperation.into()),
        }
        Ok(())
    }

    fn set_size(&mut self, name: Name, size: i32) -> Result<()> {
        let least = if name == Name::Mss { LEAST_MSS } else { 1 };
        if size < least {
            return Err(Code::InvalidParameter.into());
        }
        let packets = size / (self.mss - IP_UDP_HEADER);
        match name {
            Name::Mss => self.mss = size.min(self.udp_send_buffer).min(self.udp_recv_buffer),
            Name::FlowWindow => (self.flow_window, self.chosen.flow_window) = (size.max(LEAST_WINDOW), true),
            Name::SendBuffer => (self.send_buffer, self.chosen.send_buffer) = (packets, true),
            Name::RecvBuffer => {
                self.recv_buffer = packets.max(LEAST_WINDOW).min(self.flow_window);
                self.chosen.recv_buffer = true;
            }
            Name::UdpSendBuffer => self.udp_send_buffer = size.max(self.mss),
            Name::UdpRecvBuffer => self.udp_recv_buffer = size.max(self.mss),
            _ => return Err(Code::InvalidOperation.into()),
        }
        Ok(())
    }

    /// The value of an option that was set, or its default. `None` for what only a socket knows.
    pub(crate) fn get(&self, name: Name) -> Option<Value> {
        let bytes = |packets: i32| packets.saturating_mul(self.mss - IP_UDP_HEADER);
        Some(match name {
            Name::Mss => Value::Int(self.mss),
            Name::SendBlocks => Value::Bool(self.send_blocks),
            Name::RecvBlocks => Value::Bool(self.recv_blocks),
            Name::FlowWindow => Value::Int(self.flow_window),
            Name::SendBuffer => Value::Int(bytes(self.send_buffer)),
            Name::RecvBuffer => Value::Int(bytes(self.recv_buffer)),
            Name::Linger => Value::Linger { on: self.linger.is_some(), seconds: self.linger_seconds },
            Name::UdpSendBuffer => Value::Int(self.udp_send_buffer),
            Name::UdpRecvBuffer => Value::Int(self.udp_recv_buffer),
            Name::Rendezvous => Value::Bool(self.rendezvous),
            Name::SendTimeout => Value::Int(self.send_timeout),
            Name::RecvTimeout => Value::Int(self.recv_timeout),
            Name::ReuseAddress => Value::Bool(self.reuse_address),
            Name::MaxBandwidth => Value::Long(self.max_bandwidth),
            Name::Controller | Name::State | Name::Events | Name::SendData | Name::RecvData => return None,
        })
    }

    /// The settings of a port for a socket with these options.
    pub(crate) fn builder(&self, backlog: Option<usize>) -> Builder {
        let mut builder = Endpoint::builder()
            .plain()
            .sends_as_libudt()
            .mss(self.mss.max(LEAST_FARHAUL_MSS).unsigned_abs())
            .connect_timeout(CONNECT_TIMEOUT)
            .rendezvous_timeout(RENDEZVOUS_TIMEOUT)
            .peer_timeout(PEER_TIMEOUT)
            // Closing bounds the time as a whole.
            .linger(self.linger.unwrap_or(PEER_TIMEOUT).max(PEER_TIMEOUT))
            .udp_recv_buffer(UDP_RECV_BUFFER.max(self.udp_recv_buffer.unsigned_abs() as usize));
        let bytes = |packets: i32| u64::from(packets.unsigned_abs()) * u64::from(self.mss.unsigned_abs());
        if self.chosen.send_buffer {
            builder = builder.send_buffer(bytes(self.send_buffer.max(1)));
        }
        if self.chosen.recv_buffer {
            builder = builder.recv_buffer(bytes(self.recv_buffer));
        }
        if self.chosen.flow_window {
            builder = builder.max_flow_window(self.flow_window.unsigned_abs());
        }
        if let Some(rate) = self.max_rate() {
            builder = builder.max_rate(rate);
        }
        if let Some(backlog) = backlog {
            builder = builder.backlog(backlog);
        }
        match std::env::var(CONTROLLER_VARIABLE) {
            Ok(name) if !name.is_empty() => builder.controller(name),
            _ => builder,
        }
    }

    /// The cap on the sending rate.
    pub(crate) fn max_rate(&self) -> Option<Rate> {
        let bytes = u64::try_from(self.max_bandwidth).ok().filter(|bytes| *bytes > 0)?;
        Rate::from_bytes_in(bytes, Duration::from_secs(1))
    }

    /// Bytes of payload that the send buffer of libudt holds. No message is longer.
    pub(crate) fn send_room(&self) -> usize {
        let payload = (self.mss - IP_UDP_HEADER - 16).unsigned_abs() as usize;
        self.send_buffer.unsigned_abs() as usize * payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(result: Result<T>) -> Option<Code> {
        result.err().map(|failure| failure.code)
    }

    #[test]
    fn the_defaults_are_those_of_libudt() {
        let options = Options::default();
        assert_eq!(options.get(Name::SendBuffer), Some(Value::Int(12_058_624)));
        assert_eq!(options.get(Name::RecvBuffer), Some(Value::Int(12_058_624)));
        assert_eq!(options.get(Name::Linger), Some(Value::Linger { on: true, seconds: 180 }));
        assert_eq!(options.send_room(), 8192 * 1456);
    }

    #[test]
    fn a_bound_socket_keeps_its_buffers_and_a_connected_one_its_window() {
        let mut options = Options::default();
        for name in [Name::Mss, Name::SendBuffer, Name::RecvBuffer, Name::UdpSendBuffer, Name::UdpRecvBuffer] {
            assert_eq!(code(options.set(name, Value::Int(9000), Stage::Bound)), Some(Code::AlreadyBound));
        }
        assert_eq!(code(options.set(Name::FlowWindow, Value::Int(9000), Stage::Bound)), None);
        assert_eq!(
            code(options.set(Name::FlowWindow, Value::Int(9000), Stage::Connected)),
            Some(Code::AlreadyConnected)
        );
        assert_eq!(code(options.set(Name::MaxBandwidth, Value::Long(9000), Stage::Connected)), None);
    }

    #[test]
    fn values_out_of_range_are_refused_or_cut() {
        let mut options = Options::default();
        let mut set = |name, value| code(options.set(name, Value::Int(value), Stage::Unbound));
        assert_eq!([set(Name::Mss, 75), set(Name::Mss, 76)], [Some(Code::InvalidParameter), None]);
        assert_eq!(set(Name::FlowWindow, 0), Some(Code::InvalidParameter));
        assert_eq!([set(Name::FlowWindow, 5), set(Name::RecvBuffer, 1 << 20)], [None, None]);
        assert_eq!(set(Name::State, 1), Some(Code::InvalidOperation));
        assert_eq!(options.get(Name::FlowWindow), Some(Value::Int(32)));
        assert_eq!(options.get(Name::RecvBuffer), Some(Value::Int(32 * 48)));
        assert_eq!(code(Name::from_number(10)), Some(Code::InvalidOperation));
    }
}
