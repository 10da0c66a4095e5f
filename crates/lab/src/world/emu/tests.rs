//! Parts of the emulated world, and short runs in it. Runs need root, at least in a user namespace, and TUN devices.
//! Without them the tests say so and pass.

use std::net::UdpSocket;

use farhaul_emu::EmulateError;

use super::network::{Network, SHORTEST_DELAY};
use super::*;
use crate::record::{Record, World};
use crate::run::run;
use crate::scenario::{Experiment, Overrides};
use crate::world::Venue;
use crate::world::requirement::skip;

fn experiment(text: &str) -> Experiment {
    Experiment::read("x", "x.toml", text, &Overrides::default()).unwrap()
}

fn job(text: &str) -> Job {
    experiment(text).jobs("").unwrap().remove(0)
}

/// The result of a run, if this machine permits one.
fn tried(text: &str, choices: Choices, over: &dyn Fn() -> bool) -> Option<Result<Record, LabError>> {
    match run("x", &job(text), &Venue::Emulator(choices), None, over) {
        Err(LabError::Emulate(error @ (EmulateError::NoPermission(_) | EmulateError::NoTun(_)))) => skip(error),
        result => Some(result),
    }
}

/// The record of a run, if this machine permits one.
fn record(text: &str, choices: Choices) -> Option<Record> {
    Some(tried(text, choices, &|| false)?.unwrap_or_else(|error| panic!("{error}")))
}

/// The record of a run in which this machine kept time. On a busy one it has some tries, and the last record may be invalid.
fn punctual(text: &str) -> Option<Record> {
    let mut last = record(text, Choices::default())?;
    for _ in 1..TRIES {
        if last.emulation.as_ref().is_some_and(|emulation| emulation.valid) {
            break;
        }
        last = record(text, Choices::default())?;
    }
    Some(last)
}

/// The failure of a run, if this machine permits one.
fn failure(text: &str, choices: Choices) -> Option<String> {
    Some(tried(text, choices, &|| false)?.expect_err("it cannot be run").to_string())
}

/// Runs until one is valid.
const TRIES: usize = 4;

const LINK: &str = "title = 'x'\nduration = '1200ms'\nwarmup = '200ms'\n[link]\nrate = '40mbit'\nrtt = '10ms'\n";

#[test]
fn nodes_where_flows_begin_or_end_are_hosts_and_the_others_routers() {
    let access = "[access]\nrate = '1gbit'\ndelay = '1ms'\n";
    let flows = "[[flow]]\nname = 'near'\n[[flow]]\nname = 'far'\nrtt = '30ms'\npacket = 9000\n";
    let job = job(&format!("{LINK}{access}{flows}"));
    let network = Network::of(&job.setup, 1);
    assert_eq!(network.places.len(), 2);
    assert_eq!(network.hosts.len(), 4, "two for each flow, behind the two ends of the bottleneck");
    assert_eq!(network.passes_bottleneck, [true, true]);
    let [near, far] = [0, 1].map(|flow| network.places[flow].map(|host| network.spec.ipv4(host)));
    assert!(near.iter().all(|address| !far.contains(address)));
}

#[test]
fn flows_at_the_ends_of_a_link_share_its_hosts() {
    let job = job(&format!("{LINK}[[flow]]\ncount = 5\n"));
    let network = Network::of(&job.setup, 1);
    assert_eq!((network.hosts.len(), network.places.len()), (2, 5));
    assert!(network.places.iter().all(|place| *place == network.places[0]));
}

#[test]
fn data_that_take_another_path_are_not_counted_at_the_bottleneck() {
    let links = "title = 'x'\nduration = '1s'\nbottleneck = 'slow'\n\
                 [[links]]\nname = 'slow'\nfrom = 'a'\nto = 'b'\nrate = '10mbit'\ndelay = '5ms'\n\
                 [[links]]\nname = 'fast'\nfrom = 'b'\nto = 'c'\nrate = '100mbit'\ndelay = '5ms'\n\
                 [[flow]]\nname = 'both'\nfrom = 'a'\nto = 'c'\n[[flow]]\nname = 'behind'\nfrom = 'b'\nto = 'c'\n\
                 [[flow]]\nname = 'back'\nfrom = 'b'\nto = 'a'\n";
    let job = job(links);
    let network = Network::of(&job.setup, 1);
    assert_eq!(network.passes_bottleneck, [true, false, false]);
    assert_eq!(network.hosts.len(), 3, "a host may lie on the path of others");
}

#[test]
fn delays_that_the_emulator_has_by_itself_are_left_out() {
    let of = |rtt: &str| {
        let job = job(&format!("{}[[flow]]\n", LINK.replace("10ms", rtt)));
        format!("{:?}", Network::of(&job.setup, 1).spec)
    };
    assert!(SHORTEST_DELAY > Duration::from_micros(20));
    assert!(of("40us").contains("delay: 0ns") && !of("40us").contains("delay: 20µs"));
    assert!(of("1ms").contains("delay: 500µs"));
}

#[test]
fn features_that_real_sockets_lack_are_refused_with_their_line() {
    for (key, word) in [("receiver = { per_data = '8us' }", "receiver"), ("sender = { per_sent = '8us' }", "sender")] {
        let experiment = experiment(&format!("{LINK}[[flow]]\nname = 'f'\n{key}\n"));
        let venue = Venue::Emulator(Choices::default());
        let (possible, refusals) = venue.possible(&experiment, experiment.jobs("").unwrap());
        assert!(possible.is_empty());
        let [refusal] = &refusals[..] else { panic!("{refusals:?}") };
        assert_eq!((refusal.file.as_str(), refusal.line), ("x.toml", 7));
        assert!(refusal.message.contains(word) && refusal.message.contains("--world sim"), "{refusal}");
        let (possible, refusals) = Venue::Simulator.possible(&experiment, experiment.jobs("").unwrap());
        assert_eq!((possible.len(), refusals.len()), (1, 0));
    }
}

#[test]
fn only_the_curves_that_cannot_be_run_are_refused() {
    let curve = "[[curve]]\nname = 'a'\n[[curve]]\nname = 'b'\nset = { 'flow.f.sender' = { per_sent = '8us' } }\n";
    let experiment = experiment(&format!("{LINK}[[flow]]\nname = 'f'\n{curve}"));
    let (possible, refusals) = Venue::Emulator(Choices::default()).possible(&experiment, experiment.jobs("").unwrap());
    assert_eq!(possible.iter().map(|job| job.curve.as_str()).collect::<Vec<_>>(), ["a"]);
    assert!(refusals[0].message.ends_with("(curve b)"), "{}", refusals[0]);
}

#[test]
fn flows_of_the_kernel_have_the_scenarios_congestion_control_or_the_one_that_is_chosen() {
    let names = |controllers: &[&str], chosen: Option<&str>| {
        let flow = |name: &&str| format!("[[flow]]\nprotocol = 'tcp'\ncontroller = '{name}'\n");
        let text: String = controllers.iter().map(flow).collect();
        tcp::congestion_controls(
            &job(&format!("{LINK}[[flow]]\n{text}")).setup,
            &Choices { tcp: chosen.map(str::to_owned), ..Choices::default() },
        )
    };
    assert_eq!(names(&["tahoe", "sack", "newreno"], None).as_deref(), Some("reno"));
    assert_eq!(names(&["cubic", "reno"], None).as_deref(), Some("cubic, reno"));
    assert_eq!(names(&["vegas:alpha=1,beta=3", "bic"], None).as_deref(), Some("bic, vegas"));
    assert_eq!(names(&["cubic", "reno"], Some("bbr")).as_deref(), Some("bbr"));
    assert_eq!(names(&[], Some("bbr")), None);
}

#[test]
fn a_scenario_runs_between_real_sockets_and_is_measured_as_in_the_simulator() {
    let flows = "[[flow]]\nname = 'old'\nprotocol = 'udt-2004'\n[[flow]]\nname = 'new'\nbytes = '100kB'\n\
                 [[flow]]\nname = 'tcp'\nprotocol = 'tcp'\n[[flow]]\nname = 'cbr'\nprotocol = 'cbr'\nrate = '4mbit'\n";
    let Some(record) = record(&format!("{LINK}{flows}"), Choices::default()) else { return };
    assert_eq!(record.world, World::Emulated);
    let emulation = record.emulation.as_ref().expect("it says how it went");
    assert_eq!(emulation.valid, emulation.flaws.is_empty());
    assert_eq!(emulation.tcp.as_deref(), Some("reno"));
    let metrics = &record.metrics;
    for flow in ["old", "tcp", "cbr"] {
        assert!(metrics[&format!("goodput.{flow}")] > 0.0, "{flow}: {metrics:?}");
    }
    assert_eq!(metrics["completed"], 1.0, "100 kB take a few round trips");
    assert!(metrics["rtt.tcp"] >= 0.01 && metrics["rtt.old"] >= 0.01, "{metrics:?}");
    assert!(metrics["utilisation"] > 0.1 && metrics["utilisation"] < 1.2, "{metrics:?}");
    assert!(record.packet_hops > 100);
}

#[test]
fn datagrams_of_cross_traffic_that_nobody_reads_are_counted() {
    let setup = job(&format!("{LINK}[[flow]]\nprotocol = 'cbr'\nrate = '1mbit'\n")).setup;
    let network = Network::of(&setup, 1);
    let emulation = match Emulation::start(&network.spec) {
        Err(error @ (EmulateError::NoPermission(_) | EmulateError::NoTun(_))) => {
            return skip(error).unwrap_or_default();
        }
        emulation => emulation.unwrap(),
    };
    let [from, to] = network.places[0];
    let bind = || UdpSocket::bind("0.0.0.0:7000");
    let (sender, receiver) = (emulation.enter(from, bind).unwrap(), emulation.enter(to, bind).unwrap());
    let drops = || drops::count(&emulation, &network, &setup).unwrap();
    assert_eq!(drops(), 0);
    // The buffer fills up at some time.
    while drops() == 0 {
        sender.send_to(&[7; 1_000], (emulation.ipv4(to), 7_000)).unwrap();
    }
    drop(receiver);
    assert_eq!(drops(), 0, "a socket takes what it knows with it");
}

#[test]
fn a_file_from_a_disk_has_the_rate_of_the_disk_and_less_if_reading_and_sending_alternate() {
    let flow = |name: &str, more: &str| {
        format!("[[flow]]\nname = '{name}'\nbytes = '600kB'\ndisk = {{ rate = '8mbit', block = '100kB'{more} }}\n")
    };
    let flows = flow("coupled", "") + &flow("ahead", ", ahead = '400kB'");
    let text = format!("{LINK}{flows}").replace("1200ms", "2s");
    let Some(record) = record(&text, Choices::default()) else { return };
    let metrics = &record.metrics;
    assert_eq!(metrics["completed"], 1.0, "{metrics:?}");
    // Both disks take 0.6 s to read 600 kB.
    assert!(metrics["completion.ahead"] >= 0.6, "{metrics:?}");
    assert!(metrics["completion.coupled"] >= 0.65, "six blocks, and a round trip after each: {metrics:?}");
}

#[test]
fn flows_have_the_processor_time_of_their_own_threads() {
    let flows = "[[flow]]\nname = 'ours'\n[[flow]]\nname = 'tcp'\nprotocol = 'tcp'\n\
                 [[flow]]\nname = 'probe'\nprotocol = 'probe'\nwindow = 2\nsleep = '8ms'\n\
                 [[flow]]\nname = 'cbr'\nprotocol = 'cbr'\nrate = '1mbit'\n";
    let Some(record) = record(&format!("{LINK}{flows}"), Choices::default()) else { return };
    let metrics = &record.metrics;
    for flow in ["ours", "tcp", "probe"] {
        let [sender, receiver, both] = ["cpu_of_sender", "cpu_of_receiver", "cpu_per_gigabyte"]
            .map(|metric| *metrics.get(&format!("{metric}.{flow}")).unwrap_or_else(|| panic!("{flow}: {metrics:?}")));
        assert!(sender > 0.0 && receiver > 0.0 && (sender + receiver - both).abs() < 1e-9, "{flow}: {metrics:?}");
    }
    assert_eq!(metrics.get("cpu_per_gigabyte.cbr"), None);
}

#[test]
fn a_run_whose_hosts_wait_for_processors_is_invalid() {
    assert_eq!(too_long(farhaul_emu::MAX_LATENESS, "f"), None);
    let flaw = too_long(Duration::from_micros(2_340), "f").unwrap();
    assert_eq!(flaw, "the hosts of flow 'f' waited 2.34 ms for a processor in the mean (limit 1.00 ms)");
}

#[test]
fn a_form_for_real_sockets_replaces_what_they_lack() {
    let text = format!(
        "{LINK}[[flow]]\nname = 'f'\nsender = {{ per_sent = '8us' }}\n\
                        [quick]\n'link.rate' = '1mbit'\n\
                        [emulated]\n'flow.f.sender' = 'none'\n'link.rate' = '2mbit'\n"
    );
    let read = |quick, emulated| {
        let overrides = Overrides { quick, emulated, ..Overrides::default() };
        let experiment = Experiment::read("x", "x.toml", &text, &overrides).unwrap();
        let (jobs, refusals) = Venue::Emulator(Choices::default()).possible(&experiment, experiment.jobs("").unwrap());
        let rate = experiment.jobs("").unwrap()[0].demand().unwrap().0;
        (jobs.len(), refusals.len(), rate.bits_per_second())
    };
    assert_eq!(read(false, false), (0, 1, 40_000_000));
    assert_eq!(read(false, true), (1, 0, 2_000_000));
    assert_eq!(read(true, true), (1, 0, 2_000_000), "it comes after the quick form");
    let wrong = format!("emulated = 3\n{LINK}[[flow]]\n");
    let error = Experiment::read("x", "x.toml", &wrong, &Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("`emulated` in the scenario: expected a table"), "{error}");
}

#[test]
fn measured_streams_run_between_real_sockets_and_are_counted_at_both_ends() {
    let flows = "[[flow]]\nname = 'steady'\nprotocol = 'stable'\ntarget = '4mbit'\nsleep = '5ms'\n\
                 [[flow]]\nname = 'point'\nprotocol = 'probe'\nwindow = 2\nsleep = '8ms'\nstop = '1s'\n\
                 [[flow]]\nname = 'message'\nprotocol = 'probe'\nwindow = 3\nsleep = '20ms'\nmessages = true\n";
    let Some(record) = punctual(&format!("{LINK}{flows}")) else { return };
    let metrics = &record.metrics;
    for flow in ["steady", "point", "message"] {
        assert!(metrics[&format!("goodput.{flow}")] > 0.0 && metrics[&format!("sent.{flow}")] > 0.0, "{metrics:?}");
    }
    // A burst of two packets every 8 ms is 3 Mbit/s on the wire, and less if the host is late.
    assert!(metrics["sent.point"] < 4e6, "{metrics:?}");
    if record.emulation.as_ref().is_some_and(|emulation| emulation.valid) {
        assert!(metrics["sent.point"] > 1e6, "{metrics:?}");
        for flow in ["steady", "point", "message"] {
            assert!(metrics[&format!("loss.{flow}")] < 0.2, "{metrics:?}");
        }
    }
    assert!(metrics["rtt.steady"] >= 0.01 && metrics["rtt.message"] >= 0.01 && metrics["jitter.message"] >= 0.0);
    assert_eq!(metrics.get("rtt.point"), None, "nobody acknowledges it");
}

#[test]
fn transfers_of_a_list_are_connections_one_after_the_other() {
    let flow = "[[flow]]\nname = 't'\nprotocol = 'tcp'\nbytes = '20kB'\ntransfers = 9\nconcurrent = 3\n";
    let choices = Choices { tcp: Some("reno".to_owned()), ..Choices::default() };
    let Some(record) = record(&format!("{LINK}{flow}"), choices) else { return };
    assert_eq!(record.metrics["completed"], 1.0, "{:?}", record.metrics);
    assert!(record.metrics["completion.all"] > record.metrics["completion.max"]);
}

#[test]
fn packets_of_tcp_flows_are_as_large_as_the_scenario_says() {
    let sizes = [576, 1_500, 4_000];
    let flow = |packet| format!("[[flow]]\nname = 'of{packet}'\nprotocol = 'tcp'\nwindow = 20\npacket = {packet}\n");
    let flows: String = sizes.into_iter().map(flow).collect();
    let Some(record) = record(&format!("{LINK}queue = 2000\n{flows}"), Choices::default()) else { return };
    for packet in sizes {
        let of = |metric: &str| record.metrics[&format!("{metric}.of{packet}")];
        // The data of a second without losses. Some packets wait at its end that did not at its beginning.
        let (payload, full) = (of("goodput") / 8.0 / of("packets"), f64::from(packet - tcp::HEADER));
        assert!(payload > 0.85 * full && payload < 1.05 * full, "{payload} in packets of {packet}");
    }
}

#[test]
fn packets_that_tcp_cannot_be_held_to_are_refused_beside_larger_ones() {
    let refusals = |packets: &[u32]| {
        let flow = |packet: &u32| format!("[[flow]]\nprotocol = 'tcp'\npacket = {packet}\n");
        let experiment = experiment(&format!("{LINK}{}", packets.iter().map(flow).collect::<String>()));
        Venue::Emulator(Choices::default()).possible(&experiment, experiment.jobs("").unwrap()).1
    };
    assert_eq!(refusals(&[40_000, 1_500]), []);
    assert_eq!(refusals(&[32_807, 40_000]), []);
    let refusals = refusals(&[32_808, 40_000]);
    assert!(refusals[0].message.contains("32807"), "{refusals:?}");
}

#[test]
fn a_window_of_the_scenario_bounds_the_kernels_connection() {
    let flow = "[[flow]]\nname = 'w'\nprotocol = 'tcp'\nwindow = 40\n";
    let Some(record) = record(&format!("{}{flow}", LINK.replace("10ms", "40ms")), Choices::default()) else { return };
    // The most data of a window without scaling, in each RTT of at least 40 ms. The link has 40 Mbit/s.
    let most = f64::from(u16::MAX) * 8.0 / 0.040;
    let goodput = record.metrics["goodput.w"];
    assert!(goodput > 0.2 * most && goodput < 1.05 * most, "{goodput} of {most}");
}

#[test]
fn an_unknown_congestion_control_breaks_the_run_off_with_its_name() {
    let text = format!("{LINK}[[flow]]\nname = 't'\nprotocol = 'tcp'\n");
    let choices = Choices { tcp: Some("warp".to_owned()), ..Choices::default() };
    let Some(error) = failure(&text, choices) else { return };
    assert!(error.contains("'warp'"), "{error}");
}

#[test]
fn a_run_that_is_told_to_stop_stops() {
    let text = format!("{LINK}[[flow]]\n[[flow]]\nprotocol = 'tcp'\n").replace("1200ms", "600s");
    let Some(result) = tried(&text, Choices::default(), &|| true) else { return };
    assert!(matches!(result, Err(LabError::Stopped)), "{result:?}");
}

#[test]
fn flows_of_libudt_are_refused_without_its_program_and_in_the_simulator() {
    let refusals = |keys: &str, venue: Venue| {
        let experiment = experiment(&format!("{LINK}[[flow]]\nprotocol = 'libudt'\n{keys}"));
        let (_, refusals) = venue.possible(&experiment, experiment.jobs("").unwrap());
        refusals.into_iter().map(|refusal| refusal.to_string()).collect::<String>()
    };
    let with = || Venue::Emulator(Choices { libudt: Some("libudt-peer".into()), ..Choices::default() });
    assert!(refusals("", Venue::Simulator).contains("--world emu"));
    assert!(refusals("", Venue::Emulator(Choices::default())).contains("--libudt"));
    assert!(refusals("bytes = '1MB'", with()).contains("`bytes`"));
    assert_eq!(refusals("", with()), "");
}

#[test]
fn a_program_that_is_not_there_breaks_the_run_off_with_its_name() {
    let text = format!("{LINK}[[flow]]\nprotocol = 'libudt'\n");
    let choices = Choices { libudt: Some("/nowhere/libudt-peer".into()), ..Choices::default() };
    let Some(error) = failure(&text, choices) else { return };
    assert!(error.contains("/nowhere/libudt-peer"), "{error}");
}
