//! Copies over SSH that do not begin: what ssh and login shells say is shown, and `--install` fixes a program that is of another
//! version or does not run. Needs what the other tests over SSH need.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::thread;

use crate::over_ssh::{Far, fails, lines, same};
use crate::process::{Run, farhaul};

const SIZE: usize = 300_000;
/// The home directory is first on the PATH of the remote host.
const HOME_ON_PATH: &str = "ForceCommand PATH='HOME_FOLDER':$PATH && export PATH && eval \"$SSH_ORIGINAL_COMMAND\"";

/// A program on the PATH of the remote host.
fn there(far: &Far, script: &str, mode: u32) {
    let place = far.scratch.at("home/farhaul");
    fs::write(&place, script).unwrap();
    fs::set_permissions(&place, Permissions::from_mode(mode)).unwrap();
}

/// A copy that takes the program from its usual places.
fn copy(far: &Far, options: &str) -> Run {
    let (file, there) = (far.scratch.at("file"), far.scratch.dir("there"));
    far.near(&format!("exec $F copy --ssh \"$S\" {options} '{file}' far:'{there}/'"))
}

#[test]
fn install_mends_a_program_of_another_version_and_one_that_does_not_run() {
    let said = "{\"failed\":{\"code\":\"PROTOCOL\",\"message\":\"farhaul 9 there speaks version 9\"}}";
    let newer =
        format!("#!/bin/sh\nprintf '\\001farhaul-bootstrap\\n{:08x}%s' '{said}'\nexec cat > /dev/null\n", said.len());
    let older = "#!/bin/sh\necho \"error: unrecognized subcommand 'bootstrap'\" >&2\nexit 2\n";
    // Side by side, since most of the time goes into logins.
    thread::scope(|scope| {
        for (script, mode, code, words) in [
            (newer.as_str(), 0o755, 9, "speaks version 9"),
            (older, 0o755, 9, "no farhaul of this version"),
            ("\x7fELF of another processor", 0o755, 5, "cannot start the program farhaul"),
        ] {
            let Some(far) = Far::new(HOME_ON_PATH).map(Far::fast) else { return };
            scope.spawn(move || {
                let file = far.scratch.file("file", SIZE);
                there(&far, script, mode);
                let run = copy(&far, "");
                fails(&run, code, &[words, "--install"]);
                copy(&far, "--install").succeeds();
                assert!(same(&file, &far.scratch.at("there/file")), "{words}");
                // The copy there wins over the PATH from now on.
                copy(&far, "").succeeds();
            });
        }
    });
}

// Slow: three runs with logins, in two of which the program goes to the remote host, with its many megabytes.
#[test]
fn a_damaged_copy_in_the_cache_is_replaced() {
    let Some(far) = Far::new("").map(Far::fast) else { return };
    far.scratch.file("file", SIZE);
    copy(&far, "--install").succeeds();
    let installed = fs::read_dir(far.scratch.at("cache/farhaul/bin")).unwrap().next().unwrap().unwrap().path();
    fs::write(&installed, "#!/bin/sh\nexit 2\n").unwrap();
    fails(&copy(&far, ""), 5, &["the copy of this program in the cache folder on far does not run", "--install"]);
    copy(&far, "--install").succeeds();
}

#[test]
fn settings_of_ssh_for_sessions_of_a_person_stop_no_copy() {
    let person = "HostName PEER\n RemoteCommand echo hello; exit 3\n RequestTTY force\n SessionType none\n StdinNull yes\n \
                  LocalForward 192.0.2.1:7 localhost:7\n ExitOnForwardFailure yes\n PermitLocalCommand yes\n \
                  LocalCommand echo noise; cat";
    let Some(far) = Far::new("").map(|far| far.fast().knows("person", person)) else { return };
    let (file, there) = (far.scratch.file("file", SIZE), far.scratch.dir("there"));
    let run = far.copies(&format!("'{file}' person:'{there}/'"));
    run.succeeds();
    assert!(same(&file, &format!("{there}/file")));
    fs::remove_file(format!("{there}/file")).unwrap();
    // The same with the program to be copied there first.
    far.near(&format!("exec $F copy --ssh \"$S\" --install '{file}' person:'{there}/'")).succeeds();
    assert!(same(&file, &format!("{there}/file")));
}

#[test]
fn a_login_shell_that_starts_nothing_is_quoted_and_not_taken_for_an_old_program() {
    thread::scope(|scope| {
        for settings in [
            "ForceCommand echo 'This account is currently not available.'; exit 1",
            "ForceCommand echo 'This account is currently not available.' >&2; exit 1",
        ] {
            let Some(far) = Far::new(settings) else { return };
            scope.spawn(move || {
                far.scratch.file("file", 10);
                for options in ["", "--install"] {
                    let run = copy(&far, options);
                    fails(&run, 5, &["the login shell on far ended with code 1"]);
                    assert!(run.stderr.contains("This account is currently not available."), "{}", run.stderr);
                    assert!(!run.stderr.contains("version"), "{}", run.stderr);
                }
            });
        }
    });
}

#[test]
fn what_ssh_says_is_shown_whatever_the_user_is_called() {
    let scratch = crate::process::Scratch::new();
    let ssh = scratch.at("ssh");
    fs::write(&ssh, "#!/bin/sh\necho 'farhaul@far: Permission denied (password).' >&2\nexit 255\n").unwrap();
    fs::set_permissions(&ssh, Permissions::from_mode(0o755)).unwrap();
    let run = farhaul(&["copy", "--ssh", &ssh, "/etc/hostname", "farhaul@far:"]);
    run.fails(5, &["ssh cannot reach farhaul@far or log in"]);
    assert_eq!((lines(&run)[0], lines(&run).len()), ("farhaul@far: Permission denied (password).", 2));
}
