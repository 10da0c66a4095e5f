//! Debian's example programs of libudt.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::library::{Headers, LONGEST, Library, Running, compile_to, peer, scratch, skip, source};

use Library::{Farhaul, Reference};

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
        // The reference library answers from the address of its routes alone.
        let address = if matches!(one, Farhaul) { "127.0.0.2" } else { "127.0.0.1" };
        two.output(&client, &[address, &port, file.to_str().unwrap(), copy.to_str().unwrap()]);
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

/// A library that has a program's TCP connections wait until their port is open, and opens ports again at once.
fn patient_tcp() -> PathBuf {
    let library = scratch().join("patient_tcp.so");
    let unfinished = library.with_extension(std::process::id().to_string());
    let mut command = Command::new(std::env::var_os("CC").unwrap_or("gcc".into()));
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&unfinished);
    let output = command.arg(source("tests/programs/patient_tcp.c")).arg("-ldl").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(unfinished, &library).unwrap();
    library
}

/// Its second test calls a TCP port that its other thread may not have opened yet, and then waits for ever, on every library.
#[test]
fn libudts_own_test_passes() {
    let Some(program) = example("test") else { return };
    let mut command = Farhaul.command_for(&program, LONGEST).unwrap();
    let output = command.env("LD_PRELOAD", patient_tcp()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let completed = |number: usize| text.contains(&format!("Test # {number} completed."));
    assert!((1..=4).all(completed), "{output:?}");
}
