//! Scenarios that are accepted, and messages about mistakes.

use farhaul_cc::Spec;
use farhaul_protocols::registry::protocols;
use farhaul_sim::agent::tcp::Recovery;

use super::expand::{Experiment, Overrides};
use super::flow::Protocol;
use super::*;

const HEAD: &str = "title = 'x'\nduration = '10s'\n";
const LINK: &str = "[link]\nrate = '100mbit'\nrtt = '10ms'\n";
const FLOW: &str = "[[flow]]\n";

fn experiment(text: &str) -> Result<Experiment, ScenarioError> {
    Experiment::read("x", "x.toml", text, &Overrides::default())
}

fn jobs(text: &str) -> Result<Vec<Job>, ScenarioError> {
    experiment(text)?.jobs("build")
}

/// The message of a scenario that cannot be run, with its line.
#[track_caller]
fn refused(text: &str) -> String {
    let error = jobs(text).err().unwrap_or_else(|| panic!("this is accepted: {text}"));
    assert_eq!(error.file, "x.toml");
    format!("{}: {}", error.line, error.message)
}

#[test]
fn ten_lines_are_a_scenario() {
    let text = "title = 'My first link'\nduration = '10s'\n\n[link]\nrate = '100mbit'\nrtt = '20ms'\n\n[[flow]]\n";
    let jobs = jobs(text).unwrap();
    assert_eq!((jobs.len(), jobs[0].seed, jobs[0].curve.as_str()), (1, 1, ""));
    assert_eq!(experiment(text).unwrap().scenario.flows, ["udt"]);
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_allowed_keys() {
    let message = refused(&format!("{HEAD}[link]\nrate = '1gbit'\nrtt = '1ms'\nquue = 'bdp'\n{FLOW}"));
    assert!(message.starts_with("6: unknown key `quue` (`queue`?) in [link]"), "{message}");
    assert!(message.contains("policer, queue, rate"), "{message}");
    let message = refused(&format!("{HEAD}warmpu = '1s'\n{LINK}{FLOW}"));
    assert!(message.starts_with("3: unknown key `warmpu` (`warmup`?)"), "{message}");
    let message = refused(&format!("{HEAD}{LINK}{FLOW}colour = 'red'\n"));
    assert!(message.starts_with("7: unknown key `colour` in [[flow]]"), "{message}");
    let message = refused(&format!("{HEAD}{LINK}{FLOW}[[curve]]\nname = 'a'\nset = {{ \"lnik.rate\" = '1mbit' }}\n"));
    assert!(message.starts_with("9: unknown key `lnik` (`link`?)"), "{message}");
}

#[test]
fn a_missing_key_is_shown_in_an_example() {
    let plot = "[[plot]]\nx = 'rate'\ny = 'jain'\n";
    let reordering = format!("{HEAD}{LINK}reorder = {{ share = '1%' }}\n{FLOW}");
    let policer = format!("{HEAD}{LINK}policer = 'none'\n{FLOW}");
    for (text, words) in [
        (format!("duration = '1s'\n{LINK}{FLOW}"), "1: the scenario needs `title`"),
        (reordering, "6: [link.reorder] needs `by`, as in { share = \"1%\", by = \"5ms\" }"),
        (
            policer,
            "6: `policer` in [link]: expected a table such as { rate = \"100mbit\", burst = \"15kB\" }, found a text",
        ),
        (format!("{HEAD}{LINK}loss = {{ kind = 'ber' }}\n{FLOW}"), "6: [link.loss] needs `rate`, as in rate = 1e-4"),
        (
            format!("{HEAD}{LINK}loss = {{ kind = 'bear' }}\n{FLOW}"),
            "6: `kind` in [link.loss]: 'bear' is not one of bernoulli",
        ),
        (format!("{HEAD}{LINK}{FLOW}protocol = 'cbr'\n"), "6: [[flow]] needs `rate`, as in { protocol = \"cbr\""),
        (format!("{HEAD}{LINK}{FLOW}disk = {{ block = '1MB' }}\n"), "7: `disk` of [[flow]] needs `rate`, as in {"),
        (
            format!("{HEAD}{LINK}{FLOW}disk = 3\n"),
            "7: `disk` in [[flow]]: expected a table or \"none\", found a number",
        ),
        (format!("{HEAD}{LINK}{FLOW}count = 'two'\n"), "7: `count` in [[flow]]: expected a whole number, found a text"),
        (format!("{HEAD}{LINK}{FLOW}{plot}"), "7: [[plot]] needs `kind`, as in { kind = \"lines\""),
        (format!("{HEAD}{LINK}{FLOW}{plot}kind = 'pie'\n"), "10: `kind` in [[plot]]: 'pie' is not one of lines, time"),
    ] {
        let message = refused(&text);
        assert!(message.starts_with(words), "{message}");
    }
}

#[test]
fn a_unit_that_makes_no_sense_is_refused() {
    let message = refused(&format!("{HEAD}[link]\nrate = '100ms'\n{FLOW}"));
    assert!(message.starts_with("4: `rate` in [link]") && message.contains("mbit"), "{message}");
    let message = refused(&format!("{HEAD}[link]\nrate = 100\n{FLOW}"));
    assert!(message.contains("100mbit") && message.contains("100MB/s"), "{message}");
    let message = refused(&format!("title = 'x'\nduration = 60\n{LINK}{FLOW}"));
    assert!(message.starts_with("2: ") && message.contains("60s"), "{message}");
    let message = refused(&format!("{HEAD}{LINK}loss = '3'\n{FLOW}"));
    assert!(message.starts_with("6: ") && message.contains("100%"), "{message}");
}

#[test]
fn a_rate_of_zero_is_refused() {
    let message = refused(&format!("{HEAD}[link]\nrate = '0mbit'\n{FLOW}"));
    assert!(message.starts_with("4: ") && message.contains("above zero"), "{message}");
    let message = refused(&format!("{HEAD}{LINK}{FLOW}[[axis]]\nname = 'r'\nset = 'link.rate'\nvalues = ['0bit']\n"));
    assert!(message.starts_with("10: ") && message.contains("above zero"), "{message}");
}

#[test]
fn a_seed_out_of_range_is_refused() {
    for (seeds, words) in
        [("0", "1 to 10000"), ("10001", "1 to 10000"), ("[-1]", "0 to"), ("'one'", "a number of seeds")]
    {
        let message = refused(&format!("{HEAD}seeds = {seeds}\n{LINK}{FLOW}"));
        assert!(message.starts_with("3: ") && message.contains(words), "{message}");
    }
    let seeds = experiment(&format!("{HEAD}seeds = [7, 0]\n{LINK}{FLOW}")).unwrap().scenario.seeds;
    assert_eq!(seeds, [7, 0]);
}

#[test]
fn an_unreachable_host_is_named() {
    let links = "[[links]]\nfrom = 'a'\nto = 'b'\nrate = '1mbit'\nsimplex = true\n";
    let flow = |from: &str, to: &str| format!("{HEAD}{links}[[flow]]\nfrom = '{from}'\nto = '{to}'\n");
    let message = refused(&flow("a", "c"));
    assert!(message.starts_with("8: ") && message.contains("host 'c'") && message.contains("a and b"), "{message}");
    // The answers find no return path.
    let message = refused(&flow("a", "b"));
    assert!(message.starts_with("8: ") && message.contains("no links lead from b to a"), "{message}");
    assert!(jobs(&flow("a", "b").replace("simplex = true", "")).is_ok());
}

#[test]
fn a_grid_has_every_point_with_every_seed_and_curve() {
    let text = format!(
        "{HEAD}seeds = 2\n{LINK}{FLOW}[[axis]]\nname = 'rate'\nset = 'link.rate'\nvalues = ['1mbit', '2mbit', '3mbit']\n\
         [[axis]]\nname = 'rtt'\nset = 'link.rtt'\nvalues = ['1ms', '2ms']\n\
         [[curve]]\nname = 'native'\nset = {{ \"flow.udt.controller\" = 'udt' }}\n[[curve]]\nname = 'udt'\n"
    );
    let jobs = jobs(&text).unwrap();
    assert_eq!(jobs.len(), 24);
    let first = &jobs[0];
    assert_eq!(
        (first.curve.as_str(), first.point["rate"].number, first.point["rtt"].number),
        ("native", Some(1e6), Some(0.001))
    );
    assert_eq!((jobs[2].point["rate"].text.as_str(), jobs[2].point["rtt"].text.as_str()), ("1mbit", "2ms"));
    let mut keys: Vec<&str> = jobs.iter().map(|job| job.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 24);
}

#[test]
fn keys_depend_on_the_run_and_not_on_the_layout_of_the_file() {
    let key = |text: &str| jobs(text).unwrap()[0].key.clone();
    let text = format!("{HEAD}{LINK}{FLOW}");
    let same = format!("# A comment.\ntitle = 'y'\nduration = '10s'\n[link]\nrtt = '10ms'\nrate = '100mbit'\n{FLOW}");
    assert_eq!(key(&text), key(&same));
    assert_ne!(key(&text), key(&text.replace("10ms", "11ms")));
    let build = |build| experiment(&text).unwrap().jobs(build).unwrap()[0].key.clone();
    assert_ne!(build("1"), build("2"));
}

#[test]
fn a_run_is_repeated_once_the_code_of_a_controller_outside_the_program_has_changed() {
    let make = |_: &farhaul_cc::options::Settings, _| Ok("reno".parse::<Spec>()?.build(1));
    for (name, revision) in [("elsewhere", Some("abc")), ("here", None)] {
        let mut registration = farhaul_cc::Registration::new(name, "for a test", make);
        if let Some(text) = revision {
            registration = registration.revision(text);
        }
        registration.register().unwrap();
        let jobs = jobs(&format!("{HEAD}{LINK}{FLOW}controller = '{name}'\n")).unwrap();
        // The key of a run has the program, which has the code of all others.
        let expected = revision.map_or_else(String::new, |text| format!("revision {text:?}\n"));
        assert_eq!(jobs[0].setup.revisions(), expected);
    }
}

#[test]
fn the_quick_form_replaces_what_it_names() {
    let text = format!(
        "{HEAD}seeds = 5\n{LINK}{FLOW}[[axis]]\nname = 'rate'\nset = 'link.rate'\nvalues = ['1mbit', '2mbit']\n\
         [quick]\nseeds = 1\nduration = '2s'\n\"axis.rate.values\" = ['1mbit']\n"
    );
    let overrides = Overrides { quick: true, ..Overrides::default() };
    let experiment = Experiment::read("x", "x.toml", &text, &overrides).unwrap();
    assert_eq!((experiment.jobs("").unwrap().len(), experiment.scenario.duration), (1, 2.0));
    assert_eq!(jobs(&text).unwrap().len(), 10);
}

#[test]
fn the_command_line_replaces_axes_and_seeds() {
    let text = format!("{HEAD}{LINK}{FLOW}[[axis]]\nname = 'rate'\nset = 'link.rate'\nvalues = ['1mbit', '2mbit']\n");
    let overrides = Overrides {
        seeds: vec![9],
        axes: vec![
            ("rate".to_owned(), vec!["5mbit".to_owned()]),
            ("link.loss".to_owned(), vec!["0".to_owned(), "1%".to_owned()]),
        ],
        ..Overrides::default()
    };
    let jobs = Experiment::read("x", "x.toml", &text, &overrides).unwrap().jobs("").unwrap();
    assert_eq!(jobs.len(), 2);
    assert_eq!((jobs[0].seed, jobs[1].point["link.loss"].number), (9, Some(0.01)));
    let bad = Overrides { axes: vec![("rate".to_owned(), vec!["fast".to_owned()])], ..Overrides::default() };
    assert!(Experiment::read("x", "x.toml", &text, &bad).unwrap_err().message.contains("'fast'"));
}

#[test]
fn an_axis_can_change_several_things_at_once() {
    let text = format!(
        "{HEAD}{LINK}{FLOW}[[axis]]\nname = 'case'\nvalues = [{{ label = 'lan', \"link.rate\" = '1gbit', \"link.rtt\" = '1ms' }},\n\
         {{ label = 'wan', \"link.loss\" = 0.01 }}]\n"
    );
    let jobs = jobs(&text).unwrap();
    let link = |job: &Job| job.setup.topology.links[0].path.clone();
    assert_eq!(jobs[0].point["case"].text, "lan");
    assert_eq!(link(&jobs[0]).rate.map(|rate| rate.bits_per_second()), Some(1_000_000_000));
    assert_eq!(
        (link(&jobs[1]).rate.map(|rate| rate.bits_per_second()), link(&jobs[1]).loss.is_some()),
        (Some(100_000_000), true)
    );
}

#[test]
fn flows_of_one_kind_start_one_after_the_other() {
    let text = format!("{HEAD}{LINK}{FLOW}name = 'f'\ncount = 3\nstart = '1s'\nevery = '2s'\n");
    let job = jobs(&text).unwrap().remove(0);
    let flows: Vec<(&str, u64)> = job.setup.flows.iter().map(|f| (f.name.as_str(), f.start.as_secs())).collect();
    assert_eq!(flows, [("f-1", 1), ("f-2", 3), ("f-3", 5)]);
}

#[test]
fn round_trips_are_exact_to_the_nanosecond() {
    let text = format!(
        "{HEAD}[link]\nrate = '1mbit'\nrtt = '7ns'\n[[flow]]\nname = 'near'\n[[flow]]\nname = 'far'\nrtt = '1000003ns'\n"
    );
    let topology = jobs(&text).unwrap().remove(0).setup.topology.clone();
    let graph = topology.graph();
    let nanos: Vec<_> =
        topology.places.iter().map(|&place| topology.round_trip(&graph, place).unwrap().as_nanos()).collect();
    assert_eq!(nanos, [7, 1_000_003]);
    let message = refused(&text.replace("1000003ns", "5ns"));
    assert!(message.starts_with("8: flow 'far'"), "{message}");
}

#[test]
fn losses_are_those_of_the_forward_path_unless_said_otherwise() {
    let text = format!("{HEAD}{LINK}loss = 0.01\n[link.back]\nrate = '1mbit'\n{FLOW}");
    let links = jobs(&text).unwrap()[0].setup.topology.links.clone();
    assert!(links[0].path.loss.is_some() && links[1].path.loss.is_none());
    assert_eq!(links[1].path.rate.map(|rate| rate.bits_per_second()), Some(1_000_000));
    assert_eq!(links[0].path.delay, links[1].path.delay);
}

#[test]
fn names_that_nothing_has_are_refused() {
    let plot = "[[plot]]\nkind = 'lines'\nx = 'rate'\ny = 'utilisation'\n";
    let message = refused(&format!("{HEAD}{LINK}{FLOW}{plot}by = 'rtt'\n"));
    assert!(message.starts_with("7: there is no axis 'rtt'"), "{message}");
    let score = "[[score]]\nid = 'a'\nsays = 'b'\nsource = 'ours'\nmust = 'jain > 0'\ncurve = 'c'\n";
    let message = refused(&format!("{HEAD}{LINK}{FLOW}{score}"));
    assert!(message.starts_with("7: there is no curve 'c'"), "{message}");
}

#[test]
fn a_flow_cannot_have_the_name_of_a_statistic() {
    for name in ["total", "max", "mean", "all"] {
        let message = refused(&format!("{HEAD}{LINK}{FLOW}name = '{name}'\n"));
        assert!(message.starts_with("7: ") && message.contains("statistic"), "{message}");
    }
}

#[test]
fn a_unit_of_a_drawing_that_does_not_exist_is_refused() {
    let plot = "[[plot]]\nkind = 'time'\ny = 'queue'\ny_unit = 'Mbits'\n";
    let message = refused(&format!("{HEAD}{LINK}{FLOW}{plot}"));
    assert!(message.starts_with("10: ") && message.contains("Mbit/s"), "{message}");
    assert!(experiment(&format!("{HEAD}{LINK}{FLOW}{}", plot.replace("Mbits", "packets"))).is_ok());
}

#[test]
fn the_protocols_of_flows_are_those_of_the_registry_and_the_other_kinds() {
    for entry in protocols() {
        let jobs = jobs(&format!("{HEAD}{LINK}[[flow]]\nprotocol = '{}'\n", entry.name)).unwrap();
        let flow = &jobs[0].setup.flows[0];
        let Protocol::Bulk(bulk) = &flow.protocol else { panic!("{flow:?}") };
        assert_eq!((bulk.protocol.to_string().as_str(), flow.name.as_str()), (entry.name, entry.name));
        assert_eq!(bulk.controller, bulk.protocol.controller());
    }
    let jobs = jobs(&format!("{HEAD}{LINK}[[flow]]\nprotocol = 'udt-2004:delay-warnings=off'\n")).unwrap();
    assert_eq!(jobs[0].setup.flows[0].name, "udt-2004", "a name has no options");
}

#[test]
fn an_unknown_protocol_is_refused_with_file_and_line_and_the_known_ones() {
    let error = jobs(&format!("{HEAD}{LINK}[[flow]]\nname = 'f'\nprotocol = 'udp'\n")).err().unwrap();
    assert_eq!((error.file.as_str(), error.line), ("x.toml", 8));
    let registered = protocols().iter().map(|entry| entry.name);
    for name in registered.chain(["tcp", "libudt", "cbr", "on-off", "poisson", "stable", "probe"]) {
        assert!(error.message.contains(name), "{name}: {error}");
    }
    for (protocol, words) in [
        ("udt:blast=rtt", "it takes none"),
        ("udt-2004:blast=rtt", "it takes delay-warnings=on"),
        ("tcp:blast=rtt", "'tcp' is not one of"),
    ] {
        let message = refused(&format!("{HEAD}{LINK}[[flow]]\nname = 'f'\nprotocol = '{protocol}'\n"));
        assert!(message.starts_with("8: ") && message.contains(words), "{message}");
    }
}

#[test]
fn a_tcp_has_the_law_of_any_window_and_no_other() {
    let flow = |law: &str| format!("{HEAD}{LINK}[[flow]]\nprotocol = 'tcp'\ncontroller = '{law}'\n");
    for (controller, recovery, law) in [
        ("tahoe", Recovery::Tahoe, "tahoe"),
        ("newreno", Recovery::NewReno, "reno"),
        ("sack", Recovery::Sack, "reno"),
        ("vegas:alpha=1,beta=3", Recovery::Sack, "vegas:alpha=1,beta=3"),
    ] {
        let Protocol::Tcp(tcp) = &jobs(&flow(controller)).unwrap()[0].setup.flows[0].protocol else { panic!("TCP") };
        assert_eq!((tcp.recovery, tcp.law.to_string().as_str()), (recovery, law));
    }
    for (controller, words) in [("bbr", "no law of a window"), ("warp", "choose one of"), ("bic:x=1", "takes none")] {
        let message = refused(&flow(controller));
        assert!(message.starts_with("8: ") && message.contains(words), "{message}");
    }
}

#[test]
fn mistakes_in_lists_of_transfers_name_the_missing_key() {
    let flow = format!("{HEAD}{LINK}[[flow]]\nname = 'f'\nprotocol = 'tcp'\ntransfers = 500\n");
    let names = |text: &str| -> Vec<String> {
        jobs(text).unwrap()[0].setup.flows.iter().map(|flow| flow.name.clone()).collect()
    };
    assert_eq!(names(&format!("{flow}bytes = '1MB'\nconcurrent = 3\n")), ["f-1", "f-2", "f-3"]);
    assert_eq!(names(&format!("{flow}bytes = '1MB'\n")), ["f"]);
    for (rest, begin, words) in [
        ("", "9: ", "bytes = \"1MB\""),
        ("bytes = '1MB'\ncount = 3\n", "11: ", "`count` does not go with `transfers`"),
        ("bytes = '1MB'\nstop = '3s'\n", "11: ", "`stop` does not go with `transfers`"),
        ("bytes = '1MB'\nconcurrent = 0\n", "11: ", "1 to"),
    ] {
        let message = refused(&format!("{flow}{rest}"));
        assert!(message.starts_with(begin) && message.contains(words), "{message}");
    }
    let message = refused(&format!("{flow}bytes = '1MB'\n").replace("tcp", "udt"));
    assert!(message.starts_with("9: ") && message.contains("for TCP"), "{message}");
    let message = refused(&format!("{HEAD}{LINK}{FLOW}protocol = 'tcp'\nconcurrent = 3\n"));
    assert!(message.starts_with("8: ") && message.contains("`transfers`"), "{message}");
}

#[test]
fn measured_streams_need_a_target_or_a_sleep() {
    let flow = |protocol: &str, keys: &str| format!("{HEAD}{LINK}[[flow]]\nprotocol = '{protocol}'\n{keys}");
    assert!(jobs(&flow("stable", "target = '1mbit'\nwindow = 12\nsleep = '100ms'\ngain = 0.8\n")).is_ok());
    assert!(jobs(&flow("probe", "window = 8\nsleep = '5ms'\nspaced = true\n")).is_ok());
    assert!(jobs(&flow("probe", "window = 8\nrate = '10mbit'\nmessages = true\n")).is_ok());
    for (protocol, keys, words) in [
        ("stable", "", "needs `target`"),
        ("stable", "target = '1mbit'\nexponent = 0.4\n", "0.5"),
        ("probe", "window = 8\n", "either `sleep`"),
        ("probe", "sleep = '5ms'\nrate = '10mbit'\n", "either `sleep`"),
    ] {
        let message = refused(&flow(protocol, keys));
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_window_is_packets_or_bandwidth_delay_products() {
    let flow = |window: &str| format!("{HEAD}{LINK}[[flow]]\nprotocol = 'tcp'\nwindow = {window}\n");
    for right in ["20", "'bdp'", "'1.5bdp'", "{ limit = 'bdp', at_least = 20 }", "{ limit = 7 }"] {
        assert!(jobs(&flow(right)).is_ok(), "{right}");
    }
    for (wrong, words) in [
        ("0", "1 to"),
        ("'1MB'", "not a window"),
        ("'xbdp'", "not a multiple"),
        ("true", "expected a window"),
        ("{ at_least = 20 }", "needs `limit`"),
        ("{ limit = 'bdp', at_most = 20 }", "unknown key `at_most`"),
    ] {
        let message = refused(&flow(wrong));
        assert!(message.starts_with("8: ") && message.contains(words), "{message}");
    }
}

#[test]
fn a_load_that_leaves_no_time_is_refused() {
    let host = |load: &str| format!("{HEAD}{LINK}{FLOW}sender = {{ load = {load} }}\n");
    assert!(jobs(&host("{ busy = '4ms', every = '10ms' }")).is_ok());
    for load in ["{ busy = '10ms', every = '10ms' }", "{ busy = '4ms' }", "{ every = '4ms' }"] {
        let message = refused(&host(load));
        assert!(message.starts_with("7: ") && message.contains("longer `every`"), "{message}");
    }
}

#[test]
fn a_host_is_late_by_stated_times() {
    let host = |keys: &str| format!("{HEAD}{LINK}{FLOW}receiver = {{ {keys} }}\n");
    let late = "every = '100ms', least = '1ms', most = '9ms', pause = '50ms', pauses = '10%'";
    let setup = jobs(&host(&format!("receive_buffer = '1MB', late = {{ {late} }}"))).unwrap().remove(0).setup;
    let [sender, receiver] = setup.flows[0].hosts;
    assert_eq!((sender, receiver.unwrap().cost), (None, None), "being late costs no processor time");
    let late = receiver.unwrap().late.unwrap();
    assert_eq!((late.buffer, late.pauses), (Some(1_000_000), 0.1));
    assert!((late.share() - 9.5 / 109.5).abs() < 1e-12);
    let costs = jobs(&host("per_data = '8us', late = { every = '100ms', most = '9ms' }")).unwrap().remove(0).setup;
    let costs = costs.flows[0].hosts[1].unwrap();
    assert!(costs.cost.is_some() && costs.late.is_some_and(|late| late.pauses == 0.0 && late.least.is_zero()));
    for (keys, words) in [
        ("late = { most = '9ms' }", "needs `every` and `most`"),
        ("late = { every = '0ms', most = '9ms' }", "above zero"),
        ("late = { every = '1s', most = '1ms', least = '2ms' }", "not above `most`"),
        ("late = { every = '1s', most = '1ms', pause = '50ms' }", "go together"),
        ("late = { every = '1s', most = '1ms', pauses = '3' , pause = '1s' }", "100%"),
        ("late = { every = '1s', most = '1ms', by = '2ms' }", "unknown key `by`"),
    ] {
        let message = refused(&host(keys));
        assert!(message.starts_with("7: ") && message.contains(words), "{message}");
    }
}

#[test]
fn a_flow_may_name_a_controller_of_the_program() {
    let text =
        "title = 'mine'\nduration = '1s'\nlink = { rate = '1mbit', rtt = '1ms' }\n[[flow]]\ncontroller = 'mine'\n";
    let mine = Spec::made("mine", |seed| Spec::default().build(seed));
    let overrides = Overrides { controllers: [("mine".to_owned(), mine.clone())].into(), ..Overrides::default() };
    let jobs = Experiment::read("mine", "mine.toml", text, &overrides).unwrap().jobs("").unwrap();
    let Protocol::Bulk(bulk) = &jobs[0].setup.flows[0].protocol else { panic!("it is a bulk flow") };
    assert_eq!(bulk.controller, Some(mine));
    let unknown = Experiment::read("mine", "mine.toml", text, &Overrides::default()).unwrap_err().to_string();
    assert!(
        unknown.starts_with("mine.toml:5: `controller` in [[flow]]: unknown congestion controller 'mine'"),
        "{unknown}"
    );
}

#[test]
fn a_class_of_a_program_may_have_the_name_of_a_model_of_tcp() {
    let law = |name: &str, controllers: &Controllers| {
        let text = format!("{HEAD}{LINK}[[flow]]\nprotocol = 'tcp'\ncontroller = '{name}'\n");
        let overrides = Overrides { controllers: controllers.clone(), ..Overrides::default() };
        let jobs = Experiment::read("x", "x.toml", &text, &overrides).unwrap().jobs("").unwrap();
        let Protocol::Tcp(tcp) = &jobs[0].setup.flows[0].protocol else { panic!("it is TCP") };
        (tcp.law.to_string(), jobs[0].key.clone())
    };
    let mine = |revision| Spec::made("mine", |seed| Spec::default().build(seed)).revised(revision);
    let own = |revision| Controllers::from([("cubic".to_owned(), mine(revision))]);
    assert_eq!((law("cubic", &own("1")).0.as_str(), law("sack", &own("1")).0.as_str()), ("mine", "reno"));
    assert_ne!(law("cubic", &own("1")).1, law("cubic", &own("2")).1, "other code is another run");
}
