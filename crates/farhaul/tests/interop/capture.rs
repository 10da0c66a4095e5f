//! Captures of transfers in an independent dissector: tshark finds no malformed packet of Farhaul.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use farhaul::{ConnectOptions, Endpoint, SendOptions};
use rustix::process::{Pid, Signal, kill_process};

use crate::content::{recv, recv_messages, send, send_messages};
use crate::here::Here;
use crate::libudt::Libudt;
use crate::requirement::{capture_tools, skip};
use crate::stream::exchange;

/// Least number of packets in the smallest of the transfers: 2 MB in pieces of 1456 bytes.
const LEAST: usize = 1_300;

/// A running capture of one UDP port.
struct Capture {
    tcpdump: Child,
    file: PathBuf,
    port: u16,
}

/// The result of the dissector.
struct Dissection {
    /// Types of the packets identified as UDT; empty for data.
    types: Vec<String>,
    /// Lines about malformed packets and about packets that are not UDT.
    faults: Vec<String>,
}

impl Capture {
    /// Captures the port of `address`. Returns `None` after a line with the reason for not capturing.
    fn start(name: &str, address: SocketAddr) -> Option<Self> {
        let port = address.port();
        let file = std::env::temp_dir().join(format!("farhaul-{name}-{}.pcap", std::process::id()));
        let mut tcpdump = Command::new("tcpdump")
            .args(["-i", "lo", "-U", "--immediate-mode", "-B", "32768", "-Z", "root", "-w"])
            .arg(&file)
            .args(["udp", "port", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(tcpdump.stderr.take().unwrap()).lines().map_while(Result::ok);
        if !said.by_ref().any(|line| line.contains("listening on")) {
            tcpdump.wait().unwrap();
            return skip("tcpdump may not capture on lo");
        }
        // Without a reader, the full pipe would stop tcpdump.
        thread::spawn(move || said.for_each(drop));
        Some(Self { tcpdump, file, port })
    }

    fn end(mut self) -> Dissection {
        kill_process(Pid::from_child(&self.tcpdump), Signal::INT).unwrap();
        self.tcpdump.wait().unwrap();
        let types = self.ask("udt", &["udt.iscontrol", "udt.type"]);
        let faults =
            self.ask("_ws.malformed || !udt || _ws.expert.severity >= 0x600000", &["frame.number", "_ws.col.info"]);
        Dissection { types, faults }
    }

    /// The fields of all packets that pass `filter`.
    fn ask(&self, filter: &str, fields: &[&str]) -> Vec<String> {
        let decode_as = format!("udp.port=={},udt", self.port);
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&self.file).args(["-d", &decode_as, "-Y", filter, "-T", "fields"]);
        let output = tshark.args(fields.iter().flat_map(|field| ["-e", field])).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        // It still runs only if the test failed.
        let _ = self.tcpdump.kill();
        let _ = self.tcpdump.wait();
        let _ = fs::remove_file(&self.file);
    }
}

impl Dissection {
    fn assert_sound(&self) {
        assert!(self.types.len() >= LEAST, "only {} packets", self.types.len());
        assert_eq!(self.faults, [""; 0], "of {} packets", self.types.len());
    }
}

/// Without offload, every packet is captured as it is. With it, the loopback device shows whole trains as one datagram.
fn plain() -> Here {
    Here::with(Endpoint::builder().plain().offload(false))
}

#[test]
fn a_transfer_with_libudt_has_no_malformed_packet() {
    let Some(libudt) = Libudt::find() else { return };
    let Some(()) = capture_tools() else { return };
    let here = plain();
    let listener = here.listen().unwrap();
    let Some(capture) = Capture::start("libudt", here.local_addr()) else { return };
    let peer = libudt.connect(here.local_addr(), "both --bytes 2000000 --expect 2000000");
    exchange(&Here::accept(&listener), 1, 2_000_000);
    peer.report();
    capture.end().assert_sound();
}

#[test]
fn a_transfer_between_our_own_has_no_malformed_packet() {
    let Some(()) = capture_tools() else { return };
    let (here, there) = (plain(), plain());
    let listener = here.listen().unwrap();
    let Some(capture) = Capture::start("own", here.local_addr()) else { return };
    let caller = there.connect(here.local_addr()).unwrap();
    let accepted = Here::accept(&listener);
    thread::scope(|scope| {
        scope.spawn(|| {
            send(&caller, 2, 2_000_000).unwrap();
            caller.finish().unwrap();
        });
        recv(&accepted, None).unwrap();
    });
    drop(listener);
    let listener = here.listen_for_messages().unwrap();
    let caller = there.connect_with(here.local_addr(), ConnectOptions::messages()).unwrap();
    let accepted = Here::accept_messages(&listener);
    thread::scope(|scope| {
        scope.spawn(|| {
            send_messages(&caller, 3, 100, 5_000, SendOptions::default().in_order()).unwrap();
            caller.finish().unwrap();
        });
        recv_messages(&accepted, None).unwrap();
    });
    capture.end().assert_sound();
}
