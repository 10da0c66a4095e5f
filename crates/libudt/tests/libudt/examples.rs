//! Debian's example programs of libudt.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::library::{Headers, Library, Running, compile_to, peer, scratch, skip};

use Library::{Farhaul, Reference};

/// Seconds for an attempt at libudt's own test, which takes two.
const OWN_TEST_TIME: &str = "20";
/// Most attempts at it.
const ATTEMPTS: usize = 5;
const FOLDER: &str = "/usr/share/doc/libudt-dev/examples";

/// Builds an example. `None` after a line with the reason why there is none.
fn example(name: &str) -> Option<PathBuf> {
    peer()?;
    if !Path::new(FOLDER).exists() {
        return skip("libudt's examples are not installed (Debian: apt install libudt-dev)");
    }
    let folder = scratch().join("examples");
    std::fs::create_dir_all(&folder).unwrap();
    // The package has some of them compressed.
    for file in ["cc.h", "test_util.h", &format!("{name}.cpp")] {
        let (packed, plain) = (Path::new(FOLDER).join(format!("{file}.gz")), Path::new(FOLDER).join(file));
        let to = folder.join(file);
        if to.exists() {
            continue;
        }
        let content = if packed.exists() {
            Command::new("zcat").arg(packed).output().unwrap().stdout
        } else {
            std::fs::read(plain).unwrap()
        };
        let unfinished = folder.join(format!("{file}.{}", std::process::id()));
        std::fs::write(&unfinished, content).unwrap();
        std::fs::rename(unfinished, to).unwrap();
    }
    let program = folder.join(name);
    compile_to(&folder.join(format!("{name}.cpp")), &program, Headers::Reference)?;
    Some(program)
}

fn free_port() -> String {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// Starts a server, and waits for the line in which it says that it is ready.
fn serve(library: Library, program: &Path, port: &str) -> Option<(Running, impl Read)> {
    let mut command = library.command(program)?;
    let mut running = Running(command.arg(port).stdout(Stdio::piped()).spawn().unwrap());
    let mut output = BufReader::new(running.0.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains("ready"), "{line}");
    Some((running, output))
}

#[test]
fn sendfile_and_recvfile_carry_a_file() {
    let Some((server, client)) = example("sendfile").zip(example("recvfile")) else { return };
    let (file, copy) = (scratch().join("sent"), scratch().join("received"));
    let content: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 249) as u8).collect();
    std::fs::write(&file, &content).unwrap();
    for [one, two] in [[Farhaul, Farhaul], [Farhaul, Reference], [Reference, Farhaul]] {
        let port = free_port();
        let Some(_server) = serve(one, &server, &port) else { return };
        two.output(&client, &["127.0.0.1", &port, file.to_str().unwrap(), copy.to_str().unwrap()]);
        assert!(std::fs::read(&copy).unwrap() == content, "{one:?} {two:?}");
    }
}

#[test]
fn appclient_shows_the_rate_of_its_stream_to_appserver() {
    let Some((server, client)) = example("appserver").zip(example("appclient")) else { return };
    for [one, two] in [[Farhaul, Farhaul], [Farhaul, Reference], [Reference, Farhaul]] {
        let port = free_port();
        let Some(_server) = serve(one, &server, &port) else { return };
        let mut command = two.command(&client).unwrap();
        let mut running = Running(command.args(["127.0.0.1", &port]).stdout(Stdio::piped()).spawn().unwrap());
        let lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
        // A headline, and then a line a second.
        let figures = lines.map_while(Result::ok).nth(1).expect("a line of figures");
        let rate: f64 = figures.split_whitespace().next().and_then(|rate| rate.parse().ok()).unwrap_or_default();
        assert!(rate > 1.0, "{one:?} {two:?}: {figures}");
    }
}

/// The program calls a TCP port that its other thread may not have opened yet, and then waits for ever, on every library. So
/// it has several attempts.
#[test]
fn libudts_own_test_passes() {
    let Some(program) = example("test") else { return };
    let mut command = Farhaul.command_for(&program, OWN_TEST_TIME).unwrap();
    let outputs = (0..ATTEMPTS).map(|_| command.output().unwrap());
    let completed = |number: usize, output: &str| output.contains(&format!("Test # {number} completed."));
    let texts = outputs.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let last = texts.inspect(|text| assert!(completed(1, text), "{text}")).find(|text| completed(2, text));
    assert!(last.is_some_and(|text| completed(3, &text) && completed(4, &text)));
}
