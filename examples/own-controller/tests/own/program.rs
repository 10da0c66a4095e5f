//! The example as its user runs it: `farhaul` that knows one controller more.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_own-farhaul");

/// The program, run by `timeout`, so that a run that hangs is ended.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "60", PROGRAM]).args(arguments);
    among_tests(command)
}

/// The settings of whoever runs the tests are not ours.
fn among_tests(mut command: Command) -> Command {
    command.env("XDG_CONFIG_HOME", "/dev/null").env("XDG_CONFIG_DIRS", "/dev/null").env("NO_COLOR", "1");
    command.env("XDG_CACHE_HOME", folder("cache")).env("XDG_RUNTIME_DIR", folder("run"));
    command.stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// What a run that succeeded has printed.
#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = run(arguments);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// A folder of this process.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("own-{}", std::process::id())).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A listener that ends with the test.
struct Server(Child, String);

impl Server {
    fn begin(arguments: &[&str]) -> Self {
        let all = [arguments, &["--plain", "--json", "--listen", "127.0.0.1:0"]].concat();
        let mut command = Command::new(PROGRAM);
        command.args(all);
        let mut child = among_tests(command).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let start: Value = serde_json::from_str(&line).unwrap();
        Self(child, start["local"].as_str().unwrap().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The last record.
fn end(records: &str) -> Value {
    serde_json::from_str(records.lines().last().unwrap()).unwrap()
}

#[test]
fn the_controller_is_listed_and_named_to_those_who_misspell_it() {
    assert!(printed(&["controllers"]).contains("aimd     additive increase, multiplicative decrease"));
    let Output { status, stderr, .. } = run(&["bench", "--connect", "127.0.0.1:9", "--controller", "aidm"]);
    assert_eq!(status.code(), Some(2));
    let message = String::from_utf8(stderr).unwrap();
    assert!(message.contains("'aidm'") && message.contains("aimd"), "{message}");
}

#[test]
fn bench_and_copy_run_under_it() {
    let server = Server::begin(&["bench"]);
    let bench = ["bench", "--plain", "--json", "--controller", "aimd", "--connect", &server.1, "--bytes", "2MB"];
    let records = printed(&bench);
    assert_eq!(end(&records)["exit_code"], 0);
    assert!(records.lines().next().unwrap().contains("\"aimd\""), "{records}");

    let root = folder("root");
    // The controller is a setting of the sender.
    let server = Server::begin(&["serve", "--controller", "aimd", "--root", root.to_str().unwrap()]);
    let source = folder("source").join("data");
    let content: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
    fs::write(&source, &content).unwrap();
    let (there, copied) = (format!("udt://{}/data", server.1), folder("back").join("data"));
    printed(&["copy", "--plain", "--controller", "aimd", source.to_str().unwrap(), &there]);
    printed(&["copy", "--plain", &there, copied.to_str().unwrap()]);
    assert!(fs::read(&copied).unwrap() == content);
}

#[test]
fn the_lab_runs_scenarios_with_it() {
    let scenario = folder("lab").join("mine.toml");
    let text =
        "title = 'Mine'\nduration = '3s'\n[link]\nrate = '20mbit'\nrtt = '20ms'\n[[flow]]\ncontroller = 'aimd'\n";
    fs::write(&scenario, text).unwrap();
    let out = folder("lab").join("out");
    let table = printed(&["lab", "run", scenario.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert!(table.contains("goodput.total"), "{table}");
    let records = fs::read_to_string(out.join("mine/records.ndjson")).unwrap();
    let record: Value = serde_json::from_str(records.lines().next().unwrap()).unwrap();
    let goodput = record["metrics"]["goodput.total"].as_f64().unwrap();
    assert!(goodput > 10e6, "the window reaches the path of 34 packets: {goodput}");
}

#[test]
fn the_book_shows_files_that_are_compiled() {
    let page = include_str!("../../../../docs/book/controllers.md");
    let files = [
        include_str!("../../src/lib.rs"),
        include_str!("../../src/main.rs"),
        include_str!("conformance.rs"),
        include_str!("../../../../crates/cli/examples/own_options.rs"),
        include_str!("../../../../crates/farhaul/examples/switch.rs"),
    ];
    for file in files {
        assert!(page.contains(file), "{file}");
    }
    let lines = |text: &str| text.lines().count();
    assert!(lines(include_str!("../../src/lib.rs")) <= 30 && lines(include_str!("../../src/main.rs")) <= 3);
}
