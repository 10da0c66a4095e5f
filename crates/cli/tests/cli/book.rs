//! Every command of the README and of the book, as a reader types it: on two hosts with the names of the pages, each with a home of its own.
//!
//! A block of commands is one that is indented or a fence of `sh`, and begins with a program. In a block with `$ ` in front, the other lines
//! are output. A comment such as `# on far.example` sends a line to the other host, where servers run until the end of the block. A block
//! that does not run has a comment above it: `<!-- not run: REASON -->`. Needs what the other tests over SSH need.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process;

use crate::over_ssh::Far;
use crate::process::Scratch;
use crate::requirement::{runs, skip};

/// What begins a command.
const PROGRAMS: [&str; 22] = [
    "farhaul ",
    "cargo ",
    "rsync ",
    "tar ",
    "git ",
    "GIT_SSH_COMMAND=",
    "pg_dump ",
    "pip ",
    "apt ",
    "systemctl ",
    "cd ",
    "path=",
    "export ",
    "useradd ",
    "install ",
    "mkdir ",
    "LD_LIBRARY_PATH=",
    "cc ",
    "crates/",
    "target/",
    "globus-xioperf ",
    "find ",
];
/// Words of comments that send a line to the other host.
const THERE: [&str; 2] = ["on far.example", "on the other host"];
const NOT_RUN: &str = "<!-- not run: ";

/// A block of commands on a page.
struct Block {
    /// The line of the page.
    line: usize,
    commands: Vec<Command>,
}

struct Command {
    text: String,
    is_there: bool,
}

impl Command {
    fn read(line: &str) -> Self {
        let (text, comment) = line.split_once(" # ").unwrap_or((line, ""));
        let is_there = THERE.iter().any(|words| comment.contains(words));
        Self { text: text.trim().to_owned(), is_there }
    }

    /// It goes on until somebody ends it.
    fn serves(&self) -> bool {
        self.text.contains(" --listen ") || self.text.starts_with("farhaul serve ")
    }

    /// What stands on the page for what the reader has, and times that a test need not wait for.
    fn as_typed(&self, key: &str) -> String {
        let mut text = self.text.replace("ssh-ed25519 AAAA…", key).replace("ssh-ed25519 AAAAC3NzaC1l…", key);
        for seconds in ["--seconds 10", "--seconds 12", "--seconds 8", "--seconds 6", "--seconds 4", "--seconds 3"] {
            text = text.replace(seconds, "--seconds 1");
        }
        text
    }
}

/// The blocks of a page, and the lines of those that are marked.
fn blocks(page: &str) -> (Vec<Block>, usize) {
    let (mut found, mut marked) = (Vec::new(), 0);
    let (mut lines, mut begin, mut fence, mut mark) = (Vec::new(), 0, None, false);
    for (number, line) in (1..).zip(page.lines().chain([""])) {
        let is_fence = line.starts_with("```");
        let inside = match fence {
            Some(is_shell) if !is_fence => is_shell,
            _ => !is_fence && line.starts_with("    "),
        };
        if inside {
            if lines.is_empty() {
                begin = number;
            }
            lines.push(line.strip_prefix("    ").unwrap_or(line));
            continue;
        }
        if let Some(commands) = commands(&std::mem::take(&mut lines)) {
            match std::mem::take(&mut mark) {
                true => marked += 1,
                false => found.push(Block { line: begin, commands }),
            }
        }
        if is_fence {
            fence = match fence {
                None => Some(line == "```sh"),
                Some(_) => None,
            };
        } else if let Some(reason) = line.trim().strip_prefix(NOT_RUN) {
            assert!(reason.trim_end_matches("-->").trim().len() > 5, "line {number}: a mark without a reason");
            mark = true;
        } else if !line.trim().is_empty() {
            mark = false;
        }
    }
    (found, marked)
}

/// The commands of a block, if it is one of commands.
fn commands(lines: &[&str]) -> Option<Vec<Command>> {
    let is_command = |line: &str| PROGRAMS.iter().any(|program| line.trim_start().starts_with(program));
    let has_prompts = lines.iter().any(|line| line.starts_with("$ "));
    let mut all: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        let typed = match has_prompts {
            true if !goes_on => line.strip_prefix("$ "),
            _ => Some(*line),
        };
        let Some(typed) = typed else { continue };
        let (text, more) = typed.strip_suffix('\\').map_or((typed, false), |text| (text, true));
        match all.last_mut().filter(|_| goes_on) {
            Some(last) => last.push_str(text),
            None => all.push(text.to_owned()),
        }
        goes_on = more;
    }
    let begins = all.first().is_some_and(|first| is_command(first));
    begins.then(|| all.iter().filter(|line| !line.trim().is_empty()).map(|line| Command::read(line)).collect())
}

/// Programs of a block that this machine lacks.
fn missing(block: &Block) -> Option<String> {
    let here = block.commands.iter().flat_map(|command| command.text.split(['|', ';', '&']));
    let mut programs = here.filter_map(|part| part.split_whitespace().find(|word| !word.contains('=')));
    programs
        .find(|program| {
            let known = ["farhaul", "cd", "export", "tar", "pg_dump"].contains(program) || program.contains('/');
            let is_program = program.chars().all(|each| each.is_ascii_alphanumeric() || "-_.".contains(each));
            let is_there = || process::Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
            !known && is_program && !program.starts_with('-') && is_there().is_ok_and(|it| !it.status.success())
        })
        .map(ToOwned::to_owned)
}

/// Enters a root of its own over that of this machine, which stays as it is, and runs a script there: `enter.sh SIDE SCRIPT`.
const ENTER: &str = "set -e; R=$SCRATCH/root-$1; mkdir -p $R; mount -t tmpfs tmpfs $R; mkdir $R/up $R/work $R/root\n\
    mount -t overlay overlay -o lowerdir=/,upperdir=$R/up,workdir=$R/work $R/root\n\
    for place in proc sys dev tmp; do mount --rbind /$place $R/root/$place; done\n\
    mkdir -p $R/root$SCRATCH; mount --bind $SCRATCH $R/root$SCRATCH; exec chroot $R/root sh $2\n";

/// What both hosts have: homes, names, and the program on their paths.
fn furniture(scratch: &Scratch, side: &str) -> String {
    format!(
        "set -e; mkdir -p /home/reader /srv /data /usr/local/bin; ln -sf '{program}' /usr/local/bin/farhaul\n\
         sed -i 's|^root:.*|root:x:0:0:root:/home/reader:/bin/sh|' /etc/passwd\n\
         cat '{hosts}' > /etc/hosts; mkdir -p /etc/ssh; cp '{config}' /etc/ssh/ssh_config 2> /dev/null || true\n\
         unset XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_CACHE_HOME; export HOME=/home/reader PATH=/usr/local/bin:$PATH; cd\n\
         export FARHAUL_HOST_KEY_POLICY=accept-new; mkdir -p .config/farhaul; cp '{key}'key* .config/farhaul/\n",
        program = env!("CARGO_BIN_EXE_farhaul"),
        hosts = scratch.at("hosts"),
        config = scratch.at("config"),
        key = scratch.at(&format!("key-{side}/")),
    )
}

/// What the pages suppose to exist here, and there.
const HERE: &str = "mkdir -p photos run42/cache data in results out far\n\
    for name in photos/a.jpg photos/b.jpg run42/a.dat run42/b.dat run42/x.tmp run42/cache/c data/d notes.txt; do echo $name > $name; done\n\
    for name in results.tar big.iso bigfile run7.dat video.mkv far/run7.dat; do head -c 3000000 /dev/urandom > $name; done\n\
    mkdir -p /data/sub; touch -d 2020-01-01 /data/stamp; echo new > /data/sub/new\n\
    printf '#!/bin/sh\\necho a database\\n' > /usr/local/bin/pg_dump; chmod +x /usr/local/bin/pg_dump\n";
const THERE_IS: &str = "mkdir -p backup logs run42 data scratch /srv/in /srv/out /srv/data/incoming /srv/data/in /srv/data/run1 /data/run42 /backup project.git\n\
    for name in run42/log logs/a.gz logs/b.gz /data/run42/a.dat scratch/x /srv/data/incoming/results.tar /srv/data/in/a; do echo $name > $name; done\n\
    head -c 3000000 /dev/urandom > /srv/out/run42.dat; git init -q --bare project.git || true\n";

/// The script of the other host: it runs the lines that come through a pipe, one at a time.
fn there(scratch: &Scratch) -> String {
    let at = scratch.at("there");
    format!(
        "{furniture}{THERE_IS}\n\
         mkfifo {at}.in; ${{SSHD}} &\n\
         while read -r line < {at}.in; do\n\
           PORT=$(echo \"$line\" | grep -o -- '--listen [^ ]*' | grep -o '[0-9]*$' || true)\n\
           eval OLD=\\${{SERVER_$PORT:-}}; test -z \"$OLD\" || {{ kill -TERM -$OLD; wait $OLD; }} 2> /dev/null || true\n\
           setsid sh -c \"cd; $line\" > {at}.log 2>&1 & PID=$!\n\
           if test -n \"$PORT\"; then\n\
             for i in $(seq 200); do ss -Huln \"sport = :$PORT\" | grep -q . && break; kill -0 $PID 2> /dev/null || break; sleep 0.05; done\n\
             kill -0 $PID 2> /dev/null && eval SERVER_$PORT=$PID && echo \"code 0\" > {at}.out.new || {{ cat {at}.log; echo 'code 1'; }} > {at}.out.new\n\
           else\n\
             wait $PID && CODE=0 || CODE=$?; {{ cat {at}.log; echo \"code $CODE\"; }} > {at}.out.new\n\
           fi; mv {at}.out.new {at}.out\n\
         done",
        furniture = furniture(scratch, "far"),
    )
}

/// The script of this host, whose user has this key: the blocks of a page.
fn here(scratch: &Scratch, key: &str, blocks: &[Block]) -> String {
    let at = scratch.at("there");
    let mut script = format!(
        "{furniture}{HERE}\n\
         FAILED=0\n\
         fails() {{ FAILED=1; printf '%s\\n' \"line $1 fails:\" \"$2\"; cat {out}; echo 'on the other host:'; cat {at}.log; }}\n\
         there() {{ echo \"line $1\"; rm -f {at}.out; printf '%s\\n' \"$2\" > {at}.in; for i in $(seq 800); do test -e {at}.out && break; sleep 0.05; done\n\
           test \"$(tail -n 1 {at}.out)\" = 'code 0' || fails \"$1\" \"$2\"; }}\n\
         here() {{ echo \"line $1\"; timeout -k 5 40 sh -ec \"$2\" > {out} 2>&1 < /dev/null || fails \"$1\" \"$2\"; }}\n",
        furniture = furniture(scratch, "near"),
        out = scratch.at("out"),
    );
    for block in blocks {
        // A reader keeps what a line sets, so the lines of one host in a row are typed as one.
        for group in block.commands.chunk_by(|one, other| one.is_there == other.is_there && !other.is_there) {
            let typed: Vec<_> = group.iter().map(|command| command.as_typed(key)).collect();
            let typed = typed.join("\n").replace('\'', "'\\''");
            let host = if group[0].is_there { "there" } else { "here" };
            let _ = writeln!(script, "{host} {} '{typed}'", block.line);
        }
        for command in &block.commands {
            let ends = command.is_there || command.text.ends_with('&') || command.text.contains("emulate");
            assert!(!command.serves() || ends, "line {}: a server without an end", block.line);
        }
    }
    script.push_str("exit $FAILED\n");
    script
}

/// Runs the blocks of a page. `own_key` gives both hosts the key of one user.
fn runs_as_written(page: &str, own_key: bool) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let (blocks, marked) = blocks(&fs::read_to_string(&path).unwrap());
    assert!(!blocks.is_empty() || marked > 0, "{page} has no commands");
    let (blocks, lacking): (Vec<Block>, Vec<Block>) = blocks.into_iter().partition(|block| missing(block).is_none());
    for block in &lacking {
        let program = missing(block).unwrap_or_default();
        let _ = skip::<()>(&format!("{program} is missing: line {} of {page}", block.line));
    }
    const OVERLAY: &str = "mount -t tmpfs tmpfs /mnt; mkdir /mnt/up /mnt/work /mnt/root; \
        mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/up,workdir=/mnt/work /mnt/root";
    if blocks.is_empty() || runs(&["unshare", "-m", "sh", "-ec", OVERLAY], "roots of one's own").is_none() {
        return;
    }
    let Some(far) = Far::new("") else { return };
    let far = far.knows("far.example one.example two.example other.example", "HostName PEER");
    let scratch = &far.scratch;
    for side in ["near", "far"] {
        scratch.dir(&format!("key-{side}"));
    }
    let make = |side: &str| {
        let made = process::Command::new(env!("CARGO_BIN_EXE_farhaul"))
            .args(["key", "new", &scratch.at(&format!("key-{side}/key"))])
            .output();
        assert!(made.unwrap().status.success());
    };
    make("near");
    match own_key {
        true => ["key", "key.pub"].into_iter().for_each(|name| {
            fs::copy(scratch.at(&format!("key-near/{name}")), scratch.at(&format!("key-far/{name}"))).unwrap();
        }),
        false => make("far"),
    }
    let names =
        "127.0.0.1 localhost\n10.77.0.1 near.example\n10.77.0.2 far.example one.example two.example other.example\n";
    fs::write(scratch.at("hosts"), names).unwrap();
    fs::write(scratch.at("far.sh"), there(scratch)).unwrap();
    let public = fs::read_to_string(scratch.at("key-near/key.pub")).unwrap();
    let key: Vec<_> = public.split_whitespace().take(2).collect();
    fs::write(scratch.at("near.sh"), here(scratch, &key.join(" "), &blocks)).unwrap();
    fs::write(scratch.at("enter.sh"), ENTER).unwrap();
    let enter = |side: &str| {
        let at = |name: &str| scratch.at(name);
        format!(
            "export SCRATCH='{}' SSHD; exec unshare -m sh '{}' {side} '{}'",
            at(""),
            at("enter.sh"),
            at(&format!("{side}.sh"))
        )
    };
    let (there, here) = (enter("far"), enter("near"));
    let far = far.instead(&there);
    let run = far.near(&here);
    assert_eq!(run.code, 0, "{page}:\n{}\n{}", String::from_utf8_lossy(&run.stdout), run.stderr);
}

#[test]
fn the_commands_of_the_readme_run_in_their_order() {
    runs_as_written("README.md", false);
}

macro_rules! pages {
    ($($name:ident: $page:literal),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                runs_as_written(concat!("docs/book/", $page), true);
            }
        )*

        #[test]
        fn each_page_with_commands_is_run() {
            let listed = [$($page),*];
            for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book")).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "md") {
                    let (found, marked) = blocks(&fs::read_to_string(&path).unwrap());
                    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                    assert_eq!(found.len() + marked > 0, listed.contains(&name.as_str()), "{name}");
                }
            }
        }
    };
}

pages! {
    bench_as_written: "bench.md",
    benchmarks_as_written: "benchmarks.md",
    c_as_written: "c.md",
    copy_as_written: "copy.md",
    controllers_as_written: "controllers.md",
    ctl_as_written: "ctl.md",
    daemon_as_written: "daemon.md",
    dedicated_as_written: "dedicated.md",
    doctor_as_written: "doctor.md",
    emulate_as_written: "emulate.md",
    encryption_as_written: "encryption.md",
    exit_codes_as_written: "exit-codes.md",
    install_as_written: "install.md",
    introduction_as_written: "introduction.md",
    key_as_written: "key.md",
    lab_as_written: "lab.md",
    library_as_written: "library.md",
    libudt_as_written: "libudt.md",
    originals_as_written: "originals.md",
    pipe_as_written: "pipe.md",
    profile_as_written: "profile.md",
    protocols_as_written: "protocols.md",
    python_as_written: "python.md",
    records_as_written: "records.md",
    relay_as_written: "relay.md",
    remote_files_as_written: "remote-files.md",
    rsh_as_written: "rsh.md",
    settings_as_written: "settings.md",
    stream_as_written: "stream.md",
    trees_as_written: "trees.md",
    which_protocol_as_written: "which-protocol.md",
}

/// The words between backquotes.
fn names(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The text of all files with this ending below a folder of the project.
fn sources(folder: &str, ending: &str) -> String {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                Some(extension) if extension == ending => text.push_str(&fs::read_to_string(&path).unwrap()),
                None if path.is_dir() && !path.ends_with("target") => folders.push(path),
                _ => {}
            }
        }
    }
    text
}

#[test]
fn each_form_and_each_test_of_the_table_of_controllers_exists() {
    let page = include_str!("../../../../docs/book/controllers.md");
    let section = page.split_once("## Every callback, setting and figure\n").unwrap().1;
    let (before, table) = section.split_once("| C++ |").unwrap();
    let (rust, python) = (sources("crates", "rs"), sources("python/tests", "py"));
    let (cpp, rust_api) = (sources("crates/libudt/tests/programs", "cpp"), sources("crates/cc/src", "rs"));
    let python_api = ["pyi", "py"].map(|ending| sources("python/farhaul", ending)).concat();
    let is_test = |text: &str, name: &str| text.contains(&format!("{name}("));
    let of_all = names(before).into_iter().filter(|name| name.matches('_').count() > 2);
    assert!(of_all.map(|name| assert!(is_test(&rust, &format!("fn {name}")), "{name}")).count() >= 2);
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<&str>> = rows.map(|line| line.trim_matches('|').split('|').collect()).collect();
    let named = |row: &Vec<&str>, column: usize| names(row[column]).join(" ");
    let rows: Vec<_> = rows.iter().filter(|row| !row[0].contains("**")).collect();
    assert!(rows.len() >= 23);
    for row in rows {
        assert!(cpp.contains(&named(row, 0)), "{row:?}");
        let item = named(row, 1);
        let item = item.split(' ').next().and_then(|path| path.split("::").last()).unwrap_or_default();
        assert!(rust_api.contains(&format!(" {item}")), "{row:?}");
        let item = named(row, 2);
        let item = item.split([' ', '(']).next().and_then(|path| path.split('.').next_back()).unwrap_or_default();
        assert!(python_api.contains(&format!(" {item}")), "{row:?}");
        let test = named(row, 4);
        assert!(is_test(&rust, &format!("fn {test}")) && is_test(&python, &format!("def test_{test}")), "{row:?}");
    }
}

#[test]
fn blocks_of_commands_are_told_from_other_ones() {
    let page = "Text\n\n    farhaul copy a b   # on far.example\n    tar c x | \\\n        farhaul copy - c\n\n    key = 1\n\n\
        <!-- not run: it takes minutes -->\n\n    cargo build\n\n    $ farhaul ls\n    output\n    $ farhaul cat\n\n```sh\nfarhaul demo\n```\n```toml\nfarhaul = 1\n```\n";
    let (found, marked) = blocks(page);
    assert_eq!((found.len(), marked), (3, 1));
    let texts: Vec<_> = found
        .iter()
        .map(|block| block.commands.iter().map(|command| command.text.as_str()).collect::<Vec<_>>())
        .collect();
    assert_eq!(
        texts,
        [
            vec!["farhaul copy a b", "tar c x |     farhaul copy - c"],
            vec!["farhaul ls", "farhaul cat"],
            vec!["farhaul demo"]
        ]
    );
    assert!(found[0].commands[0].is_there && !found[0].commands[1].is_there);
    assert_eq!(found[0].line, 3);
}
