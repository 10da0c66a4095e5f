//! `doctor HOST:` examines the path as a copy over SSH would use it. Needs what the other tests over SSH need.

use crate::doctor::{finding, says};
use crate::over_ssh::Far;
use crate::process::{Run, farhaul};
use crate::udp_blocked::{DEV, DROP_UDP, can_drop};

fn doctor(far: &Far, arguments: &str) -> Run {
    far.near(&format!("exec $F doctor --json --ssh \"$S\" {arguments}"))
}

#[test]
fn a_host_of_ssh_is_examined_by_udp_without_a_server_there() {
    let Some(far) = Far::new("") else { return };
    let run = doctor(&far, "--remote-path $F --port-range 47200-47201 far:");
    assert!(matches!(run.code, 0 | 1), "{}", run.stderr);
    says(&finding(&run, "ssh"), "ok", &["ssh reaches far", "UDP port 4720"]);
    says(&finding(&run, "udp"), "ok", &[":4720", "answers: encrypted"]);
    says(&finding(&run, "encryption"), "ok", &["TLS1.3", "keys of this examination"]);
    assert!(finding(&run, "round_trip")["round_trip_us"].as_u64().unwrap() >= 10_000);
    assert_eq!(finding(&run, "path_mtu")["mtu_bytes"], 1_500, "that of the emulated path");
    assert_eq!(run.records()[0]["host"], "far:");
    assert!(!run.records().iter().any(|record| record["id"] == "host_key"), "the key is new in each run");
    // Behind a jump host, too.
    let run = doctor(&far, "--remote-path $F behind:");
    says(&finding(&run, "udp"), "ok", &["answers: encrypted"]);
}

#[test]
fn udp_that_vanishes_on_the_path_to_a_host_of_ssh_is_a_problem_with_its_mend() {
    let (Some(()), Some(far)) = (can_drop(), Far::new("")) else { return };
    let far = far.after(&format!("{DEV}; {DROP_UDP}"));
    let run = doctor(&far, "--remote-path $F far:");
    assert_eq!((run.code, &run.end()["error"]["code"]), (4, &"UDP_BLOCKED".into()), "{}", run.stderr);
    let udp = finding(&run, "udp");
    says(&udp, "problem", &["ssh reaches far", "UDP does not reach", "--port-range"]);
    assert!(udp["fix_side"] == "there" && udp["fix"].as_str().unwrap().contains("ufw allow"), "{udp}");
}

#[test]
fn a_host_that_ssh_does_not_reach_or_without_the_program_is_a_problem_with_its_mend() {
    let Some(far) = Far::new("") else { return };
    let run = doctor(&far, "stranger:");
    assert_eq!((run.code, &run.end()["error"]["code"]), (5, &"SSH_FAILED".into()), "{}", run.stderr);
    assert!(finding(&run, "ssh")["fix"].as_str().unwrap().ends_with("/config stranger true"));
    let run = doctor(&far, "far:");
    assert_eq!((run.code, &run.end()["error"]["code"]), (5, &"REMOTE_PROGRAM_MISSING".into()), "{}", run.stderr);
    assert_eq!(finding(&run, "ssh")["fix"], "farhaul copy --install FILE far:");
    assert!(!finding(&run, "ssh")["message"].as_str().unwrap().contains("--install"));
}

#[test]
fn options_of_ssh_need_a_host_of_ssh() {
    for host in ["localhost", "localhost:9"] {
        farhaul(&["doctor", "-P", "22", host]).fails(2, &["-P", "farhaul doctor HOST:"]);
    }
    farhaul(&["doctor", "--port-range", "5-6"]).fails(2, &["--port-range", "farhaul doctor HOST:"]);
}
