//! Sessions that begin in any state of the dialogue, fed with bytes, records, datagrams and time.

use farhaul_originals::tsunami::{
    Client, ClientEvent, ClientOptions, Listed, Losses, Server, ServerEvent, ServerOptions,
};
use farhaul_originals::{DatagramOutcome, OriginalSession};
use farhaul_proto::ChannelEnd;
use farhaul_units::{Duration, Instant, Rate};
use farhaul_wire::tsunami::{HEADER_LEN, Header, Kind, PORT, Parameters, Proof, REVISION, Ratio, Request, Sizes};

use crate::original::train;

/// Bytes of a block.
const BLOCK: u32 = 100;
/// Most datagrams that leave between two operations.
const MAX_DATAGRAMS: usize = 20_000;
/// Most bytes that wait for the channel after one operation: a list, or requests for all that is missing.
const MAX_WAITING: usize = 40 << 10;

/// A list of operations as bytes. It ends with zeros.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A number that is mostly small or near the end of its range.
    fn number(&mut self) -> u32 {
        let (shape, value) = (self.byte(), u32::from(self.byte()));
        match shape % 4 {
            0 | 1 => value,
            2 => value << (shape >> 3),
            _ => u32::MAX - value,
        }
    }
}

fn files() -> [Listed; 2] {
    [Listed { name: b"a".to_vec(), size: 5 }, Listed { name: b"../b".to_vec(), size: u64::MAX }]
}

fn record(script: &mut Script<'_>) -> [u8; Request::LEN] {
    let kind = script.byte();
    let (block, more) = (script.number(), script.number());
    let mut bytes = match kind % 8 {
        0..=2 => Request::Retransmit(block),
        3 => Request::Restart(block),
        4 | 5 => Request::ErrorRate(more),
        6 => Request::Stop,
        _ => Request::RetransmitRange { first: block, last: more },
    }
    .bytes();
    bytes[2] = kind;
    bytes
}

/// The first byte chooses how far an honest client went before.
pub(super) fn run_server(input: &[u8]) {
    let mut script = Script(input);
    let mut now = Instant::from_nanos(1);
    let options = ServerOptions { max_rate: Some(Rate::from_megabits_per_second(100)), ..ServerOptions::default() };
    let mut server = Server::new(options, [7; 64], now);
    let (progress, size) = (script.byte() % 8, u64::from(script.number()));
    let ratio = Ratio { numerator: script.byte().into(), denominator: u16::from(script.byte()) | 1 };
    let mut parameters = Vec::new();
    let (target_rate, error_threshold) = (script.number().max(1), script.number() % 100_000);
    Parameters { block_size: BLOCK, target_rate, error_threshold, slower: ratio, faster: ratio }
        .encode(&mut parameters);
    let mut over = false;
    let steps = [&REVISION.to_be_bytes()[..], &Proof::of(&[7; 64], b"").0, b"a\n", &parameters, b"\xb4\x90"];
    for step in &steps[..usize::from(progress).min(steps.len())] {
        over |= server.handle_channel(now, step).is_err();
        answer(&mut server, now, size);
    }
    while !script.0.is_empty() {
        let step = match script.byte() % 8 {
            0 => {
                let length = usize::from(script.byte());
                server.handle_channel(now, script.bytes(length))
            }
            1..=3 => server.handle_channel(now, &record(&mut script)),
            4 => server.handle_channel(
                now,
                [&b"*\n"[..], b"!#DIR??\n", b"got size", b"got list", b"a\n", b"../a\n"]
                    [usize::from(script.byte() % 6)],
            ),
            5 if script.byte() == 0 => server.channel_ended(now, ChannelEnd::Finished),
            5 => Ok(()),
            _ => {
                now += Duration::from_millis(u64::from(script.byte()));
                Ok(())
            }
        };
        let failed = step.is_err() | server.handle_timeout(now).is_err();
        assert!(!over || !failed, "nothing follows the end");
        over |= failed | answer(&mut server, now, size);
        let sent = send(&mut server, now);
        assert!(!over || (sent == 0 && server.deadline().is_none()), "a session that is over does nothing");
        assert!(server.deadline().is_none_or(|deadline| deadline > now), "a deadline that is due was served");
    }
}

/// What a server's host does. Returns whether the session is over.
fn answer(server: &mut Server, now: Instant, size: u64) -> bool {
    let mut over = false;
    while let Some(event) = server.poll_event() {
        assert!(!over, "nothing follows the end");
        match event {
            ServerEvent::Asked(name) => {
                assert!(!name.is_empty() && !name.split(|byte| *byte == b'/').any(|part| part == b".."));
                if name.len() % 3 == 0 { server.refuse(now) } else { server.grant(now, size, 0) }
            }
            ServerEvent::ListAsked => server.give_list(now, &files()),
            ServerEvent::Started { port, block_size, rate } => {
                assert!(port > 0 && block_size > 0 && rate.bits_per_second() <= 100_000_000);
            }
            ServerEvent::Ended => over = true,
            _ => {}
        }
    }
    let mut out = Vec::new();
    server.poll_channel(now, &mut out);
    assert!(out.len() <= MAX_WAITING, "{} bytes wait", out.len());
    over
}

/// Sends what may leave, and checks its form. Returns how many datagrams that were.
fn send(server: &mut Server, now: Instant) -> usize {
    let (mut sent, mut scratch) = (0, Vec::new());
    while let Some((size, out)) = train(server, now, &mut scratch) {
        assert!(size > HEADER_LEN && !out.is_empty() && out.len() % size == 0 && out.len() <= 65_507);
        for datagram in out.chunks(size) {
            let (header, block) = Header::split(datagram).expect("a header");
            // An empty file has the last block alone, with the number 0.
            assert!(header.block >= 1 || (header.kind == Kind::Last && block.iter().all(|&byte| byte == 0)));
            sent += 1;
        }
        assert!(sent <= MAX_DATAGRAMS, "an endless train");
    }
    sent
}

/// The first byte chooses how far an honest server went before.
pub(super) fn run_client(input: &[u8]) {
    let mut script = Script(input);
    let mut now = Instant::from_nanos(1);
    let losses = [Losses::Repair, Losses::Window(Duration::from_millis(200)), Losses::Accept];
    let losses = losses[usize::from(script.byte() % 3)];
    let options = ClientOptions { block_size: BLOCK, losses, ..ClientOptions::default() };
    let mut client = Client::new(options, now);
    let (progress, request, size) = (script.byte() % 6, script.byte(), u64::from(script.number()));
    let mut sizes = Vec::new();
    Sizes::new(size, BLOCK, 0).expect("32 bits of bytes make few blocks").encode(&mut sizes);
    let mut over = false;
    let steps = [&REVISION.to_be_bytes()[..], &[7; 64], b"\0", b"\0", &sizes];
    for (step, bytes) in steps[..usize::from(progress).min(steps.len())].iter().enumerate() {
        if step == 3 {
            ask(&mut client, now, if progress == 5 { 0 } else { request });
        }
        over |= client.handle_channel(now, bytes).is_err();
        while client.poll_event().is_some() {}
    }
    while !script.0.is_empty() {
        let step = match script.byte() % 8 {
            0 => {
                let length = usize::from(script.byte());
                client.handle_channel(now, script.bytes(length))
            }
            1..=4 => {
                datagrams(&mut client, now, &mut script);
                Ok(())
            }
            5 => {
                ask(&mut client, now, script.byte());
                Ok(())
            }
            6 if script.byte() == 0 => client.channel_ended(now, ChannelEnd::Finished),
            6 => Ok(()),
            _ => {
                now += Duration::from_millis(u64::from(script.byte()) * 2);
                Ok(())
            }
        };
        let failed = step.is_err() | client.handle_timeout(now).is_err();
        assert!(!over || !failed, "nothing follows the end");
        while let Some(event) = client.poll_event() {
            assert!(!over, "nothing follows the end");
            over |= event == ClientEvent::Ended;
        }
        over |= failed;
        let mut out = Vec::new();
        client.poll_channel(now, &mut out);
        assert!(out.len() <= MAX_WAITING, "{} bytes wait", out.len());
        assert!(client.deadline().is_none_or(|deadline| deadline > now), "a deadline that is due was served");
    }
}

fn ask(client: &mut Client, now: Instant, request: u8) {
    // A request that is out of turn is refused, and that is no fault.
    let _ = match request % 4 {
        0 | 1 => client.get(now, b"a", 46_224),
        2 => client.list(now),
        _ => client.list_all(now),
    };
}

/// A run of datagrams, of the right form or not.
fn datagrams(client: &mut Client, now: Instant, script: &mut Script<'_>) {
    let (first, count, shape) = (script.number(), script.byte(), script.byte());
    let kind = [Kind::Original, Kind::Original, Kind::Retransmission, Kind::Last][usize::from(shape % 4)];
    for block in (first..=u32::MAX).take(usize::from(count) * 4) {
        let mut datagram = Header { block, kind }.bytes().to_vec();
        datagram.resize(HEADER_LEN + BLOCK as usize - usize::from(shape == 0xFF), shape);
        if let DatagramOutcome::Block(placed) = client.handle_datagram(now, PORT, &datagram) {
            assert!(placed.bytes.len() <= BLOCK as usize && !placed.bytes.is_empty());
            assert!(placed.offset.is_multiple_of(u64::from(BLOCK)));
        }
    }
    client.end_batch(now);
}
